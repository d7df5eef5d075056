package controlplane

import (
	"fmt"
	"os"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
)

// DefaultVersions are the Kubernetes versions of a control plane that names none:
// two neighbours of which the older serves API versions that the newer does not.
func DefaultVersions() []string { return []string{"1.31.14", "1.32.13"} }

// maxServers is how many names there are, from a to z.
const maxServers = 26

func parseVersions(versions []string) ([]binaries.Version, error) {
	if len(versions) > maxServers {
		return nil, fmt.Errorf("%d kube-apiservers are too many: at most %d", len(versions), maxServers)
	}
	var parsed []binaries.Version
	for _, s := range versions {
		v, err := binaries.ParseVersion(s)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, v)
	}
	return parsed, nil
}

// The version of a server is a file of its own, because an upgrade changes it.

func (c *ControlPlane) version(name string) (binaries.Version, error) {
	data, err := os.ReadFile(c.versionFile(name))
	if err != nil {
		return binaries.Version{}, fmt.Errorf("cannot read the version of server %s: %w", name, err)
	}
	return binaries.ParseVersion(strings.TrimSpace(string(data)))
}

// versions returns the versions of all kube-apiservers.
func (c *ControlPlane) versions() ([]binaries.Version, error) {
	var versions []binaries.Version
	for _, name := range c.Names() {
		v, err := c.version(name)
		if err != nil {
			return nil, err
		}
		versions = append(versions, v)
	}
	return versions, nil
}

func (c *ControlPlane) setVersion(name string, v binaries.Version) error {
	return cache.WriteFile(c.versionFile(name), []byte(v.String()+"\n"), 0o600)
}

func (c *ControlPlane) versionFile(name string) string { return c.path("run", name+".version") }

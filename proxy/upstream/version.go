package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// serverVersion is what /version says, in numbers.
type serverVersion struct {
	gitVersion          string
	major, minor, patch int
	emulation           Emulation
}

// version reads /version.
func (d *discovery) version(ctx context.Context) (serverVersion, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	doc, err := d.get(ctx, "/version", nil, maxVersionBytes)
	if err != nil {
		return serverVersion{}, err
	}
	if doc.Status != 200 {
		return serverVersion{}, fmt.Errorf("GET /version answered %d", doc.Status)
	}
	return parseVersion(doc.Body)
}

// parseVersion takes the numbers from gitVersion (v1.32.13, v1.31.5-eks-1a2b), which
// unlike minor ("31+") has the patch too, and from major and minor otherwise.
func parseVersion(body []byte) (serverVersion, error) {
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return serverVersion{}, fmt.Errorf("cannot parse the answer to GET /version: %w", err)
	}
	v := serverVersion{gitVersion: info.GitVersion}
	core, _, _ := strings.Cut(strings.TrimPrefix(info.GitVersion, "v"), "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.SplitN(core, ".", 3)
	if len(parts) == 3 {
		v.major, v.minor, v.patch = number(parts[0]), number(parts[1]), number(parts[2])
	} else {
		v.major, v.minor = number(info.Major), number(info.Minor)
	}
	if v.major == 0 {
		return serverVersion{}, fmt.Errorf("cannot use the answer to GET /version: no version in %q", preview(info.GitVersion))
	}
	v.emulation = Emulation{v.major, v.minor}
	if info.EmulationMajor != "" && info.EmulationMinor != "" {
		v.emulation = Emulation{number(info.EmulationMajor), number(info.EmulationMinor)}
	}
	return v, nil
}

// number parses the digits s begins with, 0 without any.
func number(s string) int {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return 0
	}
	return n
}

func (v serverVersion) differs(s *State) bool {
	return v.gitVersion != s.GitVersion || v.emulation != s.Emulation
}

func (v serverVersion) apply(s *State) {
	s.GitVersion, s.Emulation = v.gitVersion, v.emulation
	s.Major, s.Minor, s.Patch = v.major, v.minor, v.patch
}

package binaries

import (
	"fmt"
	"regexp"
	"strconv"
)

// A Version is a released version of Kubernetes 1.
type Version struct {
	Minor, Patch int
}

var versionPattern = regexp.MustCompile(`^v?1\.(0|[1-9]\d{0,3})\.(0|[1-9]\d{0,3})$`)

// ParseVersion reads a version such as 1.31.14 or v1.31.14.
func ParseVersion(s string) (Version, error) {
	m := versionPattern.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("bad Kubernetes version %.40q: want a full version such as 1.31.14", s)
	}
	minor, _ := strconv.Atoi(m[1]) // both are up to four digits
	patch, _ := strconv.Atoi(m[2])
	return Version{Minor: minor, Patch: patch}, nil
}

func (v Version) String() string { return fmt.Sprintf("1.%d.%d", v.Minor, v.Patch) }

// stagingVersion is the version of the modules that Kubernetes publishes out of
// its staging directory, such as k8s.io/api.
func (v Version) stagingVersion() string { return fmt.Sprintf("v0.%d.%d", v.Minor, v.Patch) }

// ldflags make a server report v. Without them it reports v0.0.0, and clients
// that compare versions misbehave.
func (v Version) ldflags() string {
	flags := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, x := range [][2]string{
			{"gitVersion", "v" + v.String()},
			{"gitMajor", "1"},
			{"gitMinor", strconv.Itoa(v.Minor)},
			{"gitCommit", "0000000000000000000000000000000000000000"}, // not known here, but some clients want one
			{"gitTreeState", "clean"},
			{"buildDate", "1970-01-01T00:00:00Z"}, // the same each time, so that builds can be cached
		} {
			flags += fmt.Sprintf(" -X %s.%s=%s", pkg, x[0], x[1])
		}
	}
	return flags
}

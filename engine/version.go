package engine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Version is the version of a kube-apiserver. The zero Version is not known.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads what a server reports as gitVersion: "v1.32.4",
// "v1.31.14-gke.100", "v1.35.0-alpha.1+4f2e". What follows the patch is ignored.
func ParseVersion(gitVersion string) (Version, error) {
	numbers := strings.TrimPrefix(gitVersion, "v")
	if i := strings.IndexAny(numbers, "-+"); i >= 0 {
		numbers = numbers[:i]
	}
	var v Version
	parts := strings.SplitN(numbers, ".", 4)
	if len(parts) != 3 || !parseNumbers(parts, &v.Major, &v.Minor, &v.Patch) {
		return Version{}, fmt.Errorf("cannot read server version %s: want one such as \"v1.32.4\"", source.Quote(gitVersion))
	}
	return v, nil
}

// IsZero reports whether v is not known.
func (v Version) IsZero() bool { return v == Version{} }

// Compare returns -1, 0 or 1: v is older than, the same as or newer than o.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch))
}

// String returns "1.32.4", or "" for the zero Version.
func (v Version) String() string {
	if v.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// minorString returns "1.32", or "" for the zero Version.
func (v Version) minorString() string {
	if v.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// VersionPattern is a server version, or all patches of a minor version.
type VersionPattern struct {
	Major, Minor, Patch int
	AnyPatch            bool
}

// ParseVersionPattern reads "v1.32.y" and "v1.32" (any patch of 1.32) and
// "v1.32.4". The "v" may be left out. A number has no zeros before it: no server
// reports such a version, so it would never match.
func ParseVersionPattern(s string) (VersionPattern, error) {
	var p VersionPattern
	parts := strings.SplitN(strings.TrimPrefix(s, "v"), ".", 4)
	if len(parts) == 3 && parts[2] == "y" {
		parts = parts[:2]
	}
	for _, number := range parts {
		if len(number) > 1 && number[0] == '0' {
			return VersionPattern{}, fmt.Errorf("cannot read server version %s: a number has no zeros before it; want \"v1.32.y\", \"v1.32\" or \"v1.32.4\"", source.Quote(s))
		}
	}
	p.AnyPatch = len(parts) == 2
	if len(parts) < 2 || len(parts) > 3 || !parseNumbers(parts, &p.Major, &p.Minor, &p.Patch) {
		return VersionPattern{}, fmt.Errorf("cannot read server version %s: want \"v1.32.y\", \"v1.32\" or \"v1.32.4\"", source.Quote(s))
	}
	return p, nil
}

// Matches reports whether v is of the pattern.
func (p VersionPattern) Matches(v Version) bool {
	return v.Major == p.Major && v.Minor == p.Minor && (p.AnyPatch || v.Patch == p.Patch)
}

// String returns the pattern as it may be written: "v1.32.y" or "v1.32.4".
func (p VersionPattern) String() string {
	if p.AnyPatch {
		return fmt.Sprintf("v%d.%d.y", p.Major, p.Minor)
	}
	return fmt.Sprintf("v%d.%d.%d", p.Major, p.Minor, p.Patch)
}

// maxVersionDigits bounds one number of a version, so that it fits into an int
// of 32 bits.
const maxVersionDigits = 9

// parseNumbers reads parts as plain decimal numbers into the first of numbers.
func parseNumbers(parts []string, numbers ...*int) bool {
	for i, part := range parts {
		if len(part) > maxVersionDigits || strings.Trim(part, "0123456789") != "" {
			return false
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		*numbers[i] = n
	}
	return true
}

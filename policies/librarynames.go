package policies

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Names that stand for more than one directory of the library.
const (
	libraryAll = "all"

	// bundlePrefix begins the name of a bundle, what servers of one release do not
	// serve: "kubernetes-1.32". With libraryAll in place of the release it is
	// libraryAll.
	bundlePrefix = "kubernetes-"
)

// release is the minor number of a Kubernetes release: 32 for 1.32.
type release int

func (r release) String() string { return "1." + strconv.Itoa(int(r)) }

// parseRelease reads "1.32", and nothing that is written differently.
func parseRelease(s string) (release, bool) {
	minor, err := strconv.Atoi(strings.TrimPrefix(s, "1."))
	r := release(minor)
	return r, err == nil && minor >= 0 && r.String() == s
}

// selectLibrary says which of parts names stand for. A name that stands for none is a
// mistake without a place.
//
// With a conversion goes the one that goes on from where it ends: a version that
// replaced a removed one may itself be removed, or be turned off, as beta versions are.
func selectLibrary(parts []libraryPart, names []string) (wanted []bool, errs source.Errors) {
	wanted = make([]bool, len(parts))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		known := false
		for i, part := range parts {
			if part.named(name) {
				wanted[i], known = true, true
			}
		}
		if !known {
			errs = append(errs, &source.Error{Msg: "cannot load the shipped policies " + source.Quote(name) + ": " + notShipped(parts, name)})
		}
	}
	for grown := true; grown; {
		grown = false
		for i, part := range parts {
			if !wanted[i] && part.goesOn(parts, wanted) {
				wanted[i], grown = true, true
			}
		}
	}
	return wanted, errs
}

// named reports whether name stands for the part, alone or among others.
func (p libraryPart) named(name string) bool {
	bundle, ok := strings.CutPrefix(name, bundlePrefix)
	if !ok {
		return name == p.name || name == libraryAll
	}
	target, ok := parseRelease(bundle)
	return ok && p.release <= target || bundle == libraryAll
}

// goesOn reports whether the part converts what one of the wanted parts converts to.
func (p libraryPart) goesOn(parts []libraryPart, wanted []bool) bool {
	for i, part := range parts {
		if !wanted[i] {
			continue
		}
		for _, first := range part.policies {
			for _, next := range p.policies {
				if first.Convert != nil && next.Convert != nil && sameResource(first.Convert.To, next.Convert.From) {
					return true
				}
			}
		}
	}
	return false
}

func sameResource(a, b convert.Version) bool {
	return a.Group == b.Group && a.Version == b.Version && a.Resource == b.Resource
}

// notShipped says why name stands for none of parts, which are ordered by release,
// and which name may be meant.
func notShipped(parts []libraryPart, name string) string {
	bundle, ok := strings.CutPrefix(name, bundlePrefix)
	if _, isRelease := parseRelease(bundle); ok && isRelease {
		return "no policy is for versions that Kubernetes removed before " + parts[0].release.String()
	}
	if i := strings.LastIndexByte(bundle, '.'); ok && i > 0 {
		if _, isRelease := parseRelease(bundle[:i]); isRelease {
			return "a bundle is for all patch releases of a minor version; did you mean " + strconv.Quote(bundlePrefix+bundle[:i]) + "?"
		}
	}
	known := []string{libraryAll, bundlePrefix + libraryAll}
	for _, part := range parts {
		known = append(known, part.name, bundlePrefix+part.release.String())
	}
	if best := source.Closest(name, known); best != "" {
		return "there are none of that name; did you mean " + strconv.Quote(best) + "?"
	}
	return "there are none of that name; give kubernetes-1.N, the release of the servers, or a name that 'mvp library' lists"
}

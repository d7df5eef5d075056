package dryrun

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/engine"
)

// createTarget is where m would be posted.
func createTarget(set *engine.Set, m *Manifest) string {
	gv, err := schema.ParseGroupVersion(m.APIVersion)
	if err != nil {
		// Left to ParseRequest, which finds no resource in it.
		return "/apis/" + url.PathEscape(m.APIVersion)
	}
	var path strings.Builder
	if gv.Group == "" {
		path.WriteString("/api/" + url.PathEscape(gv.Version))
	} else {
		path.WriteString("/apis/" + url.PathEscape(gv.Group) + "/" + url.PathEscape(gv.Version))
	}
	if m.Namespace != "" {
		path.WriteString("/namespaces/" + url.PathEscape(m.Namespace))
	}
	path.WriteString("/" + url.PathEscape(resourceOf(set, gv, m.Kind)))
	return path.String()
}

// resourceOf finds the resource of a kind: the one a policy names with it, else
// the plural by the rules of English that kubectl knows.
func resourceOf(set *engine.Set, gv schema.GroupVersion, kind string) string {
	for _, c := range set.Conversions() {
		if c.From.Group == gv.Group && c.From.Version == gv.Version && c.From.Kind == kind {
			return c.From.Resource
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
	return plural.Resource
}

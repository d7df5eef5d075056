package policytest

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

// TestLibraryCases runs the cases of the shipped policies. Each policy acts in one of
// them at least.
func TestLibraryCases(t *testing.T) {
	files, err := Files("../../testdata/kubernetes")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	acted := map[string]bool{}
	for _, file := range files {
		cases, err := Load(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, c := range cases {
			t.Run(strings.TrimPrefix(c.File, "../../testdata/kubernetes/")+"/"+c.Name, func(t *testing.T) {
				o := c.Run(Options{Schemas: ownSchemas})
				if o.Err != nil {
					t.Fatal(o.Err)
				}
				for _, problem := range o.Problems {
					t.Error(problem)
				}
				for _, name := range actedIn(t, c) {
					acted[name] = true
				}
			})
		}
	}
	for _, shipped := range policies.Library() {
		for _, p := range shipped.Policies {
			if !acted[p.Name] {
				t.Errorf("%s acts in no case of %s", p.Name, "policies/testdata/kubernetes/"+shipped.Release+"/"+shipped.Name)
			}
		}
	}
}

// actedIn returns the policies that act on the requests of c.
func actedIn(t *testing.T, c *Case) []string {
	t.Helper()
	set, err := policies.LoadFiles(c.policies.files, policies.Options{Dirs: c.policies.dirs, Library: c.policies.library})
	if err != nil {
		t.Fatal(err)
	}
	results, err := c.results(set, Options{Schemas: ownSchemas})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Policies...)
	}
	return names
}

// ownSchemas tells the types of fields of Kubernetes' own kinds, which a proxy knows, too:
// values that rules move take the type that the other version has.
func ownSchemas([]dryrun.Manifest) func(convert.Version) convert.Schema {
	return func(v convert.Version) convert.Schema {
		object, err := scheme.Scheme.New(schema.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: v.Kind})
		if err != nil {
			return nil // gone from client-go
		}
		return convert.Named{Types: kindschema.OfType(reflect.TypeOf(object))}
	}
}

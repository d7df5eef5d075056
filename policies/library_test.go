package policies

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// shippedConversion returns the conversion of resource in the library.
func shippedConversion(t *testing.T, resource string) *engine.Conversion {
	t.Helper()
	set, err := Load(Options{Library: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Conversions() {
		if c.From.Resource == resource {
			return c
		}
	}
	t.Fatalf("the library converts no %s", resource)
	return nil
}

// The rows are what kube-apiserver answers in one version for an object written
// in the other, while it serves both.
func TestLibraryConverts(t *testing.T) {
	const (
		none = `{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}`
		all  = `{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"DoesNotExist"}]}`
		key  = `"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""`
		up   = convert.ToServer
		down = convert.ToClient
	)
	tests := []struct {
		name     string
		resource string
		dir      convert.Direction
		in, want string // what differs from the template of the resource
	}{
		{"an empty selector selects none", "poddisruptionbudgets", up, `"spec":{"selector":{}}`, `"spec":{"selector":` + none + `}`},
		{"so does one with empty parts", "poddisruptionbudgets", up, `"spec":{"selector":{"matchLabels":{},"matchExpressions":null}}`, `"spec":{"selector":` + none + `}`},
		{"a null selector is null", "poddisruptionbudgets", up, `"spec":{"selector":null}`, `"spec":{"selector":null}`},
		{"no selector stays away", "poddisruptionbudgets", up, `"spec":{"minAvailable":1}`, `"spec":{"minAvailable":1}`},
		{"no spec stays away", "poddisruptionbudgets", up, `"status":{}`, `"status":{}`},
		{"a null spec is null", "poddisruptionbudgets", up, `"spec":null`, `"spec":null`},
		{"a selector stays", "poddisruptionbudgets", up, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`},
		{"the selector of all pods", "poddisruptionbudgets", up, `"spec":{"selector":` + all + `}`, `"spec":{"selector":{"matchExpressions":[]}}`},
		{
			"the label is no requirement of a user's", "poddisruptionbudgets", up,
			`"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"x","operator":"Exists"},{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}}`,
			`"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"x","operator":"Exists"}]}}`,
		},
		{"all pods, for an old client", "poddisruptionbudgets", down, `"spec":{"selector":{}}`, `"spec":{"selector":` + all + `}`},
		{"no pod, for an old client", "poddisruptionbudgets", down, `"spec":{"selector":` + none + `}`, `"spec":{"selector":{}}`},
		{"a selector comes back", "poddisruptionbudgets", down, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`},
		{"no selector comes back", "poddisruptionbudgets", down, `"spec":{"maxUnavailable":"10%"},"status":{"currentHealthy":9007199254740993}`, `"spec":{"maxUnavailable":"10%"},"status":{"currentHealthy":9007199254740993}`},

		{"a cron job", "cronjobs", up, `"spec":{"schedule":"* * * * *","suspend":false}`, `"spec":{"schedule":"* * * * *","suspend":false}`},
		{"a cron job comes back", "cronjobs", down, `"spec":{"schedule":"* * * * *"}`, `"spec":{"schedule":"* * * * *"}`},

		{"a flow schema", "flowschemas", up, `"spec":{"matchingPrecedence":1000}`, `"spec":{"matchingPrecedence":1000}`},
		{"a flow schema comes back", "flowschemas", down, `"spec":{"matchingPrecedence":1000}`, `"spec":{"matchingPrecedence":1000}`},

		{"shares of 0 are the default", "prioritylevelconfigurations", up, `"spec":{"limited":{"nominalConcurrencyShares":0}}`, `"spec":{"limited":{"nominalConcurrencyShares":30}}`},
		{"other shares stay", "prioritylevelconfigurations", up, `"spec":{"limited":{"nominalConcurrencyShares":7}}`, `"spec":{"limited":{"nominalConcurrencyShares":7}}`},
		{"no shares are the server's to default", "prioritylevelconfigurations", up, `"spec":{"limited":{}}`, `"spec":{"limited":{}}`},
		{
			"shares of 0 that are meant", "prioritylevelconfigurations", up,
			`"metadata":{"name":"n","annotations":{"a":"b",` + key + `}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
			`"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{
			"no shares are 0 with the annotation", "prioritylevelconfigurations", up,
			`"metadata":{"name":"n","annotations":{"a":"b",` + key + `}},"spec":{"limited":{}}`,
			`"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{
			"the annotation alone goes", "prioritylevelconfigurations", up,
			`"metadata":{"name":"n","annotations":{"a":"b",` + key + `}},"spec":{"type":"Exempt"}`,
			`"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"type":"Exempt"}`,
		},
		{
			"an exempt level's 0 is 0 in both", "prioritylevelconfigurations", up,
			`"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":0}}`, `"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":0}}`,
		},
		{
			"0 comes back with the annotation", "prioritylevelconfigurations", down,
			`"metadata":{"name":"n"},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
			`"metadata":{"name":"n","annotations":{` + key + `}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{
			"an annotation that is there stays", "prioritylevelconfigurations", down,
			`"metadata":{"name":"n","annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":"x"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
			`"metadata":{"name":"n","annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":"x"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{"absent shares are not 0 in v1", "prioritylevelconfigurations", down, `"spec":{"limited":{}}`, `"spec":{"limited":{}}`},
		{"others come back without", "prioritylevelconfigurations", down, `"spec":{"limited":{"nominalConcurrencyShares":1}}`, `"spec":{"limited":{"nominalConcurrencyShares":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := shippedConversion(t, tt.resource)
			src, dst := c.From, c.To
			if tt.dir == down {
				src, dst = dst, src
			}
			got, err := c.Object(nil, []byte(object(src, tt.in)), tt.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := object(dst, tt.want); !sameJSON(t, string(got), want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// object returns an object of the version with fields.
func object(v convert.Version, fields string) string {
	return `{"apiVersion":"` + v.APIVersion() + `","kind":"` + v.Kind + `",` + fields + `}`
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	decode := func(s string) (v any) {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v in %s", err, s)
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}

func TestLibraryIsDescribed(t *testing.T) {
	want := map[string]string{
		"batch-v1beta1":       "cronjobs: batch/v1beta1 as batch/v1",
		"flowcontrol-v1beta3": "flowschemas: flowcontrol.apiserver.k8s.io/v1beta3 as flowcontrol.apiserver.k8s.io/v1; prioritylevelconfigurations: flowcontrol.apiserver.k8s.io/v1beta3 as flowcontrol.apiserver.k8s.io/v1",
		"policy-v1beta1":      "poddisruptionbudgets: policy/v1beta1 as policy/v1",
	}
	shipped := Library()
	if len(shipped) != len(want) {
		t.Errorf("%d shipped policies, want %d", len(shipped), len(want))
	}
	for _, s := range shipped {
		if s.Summary != want[s.Name] {
			t.Errorf("%s: summary %q, want %q", s.Name, s.Summary, want[s.Name])
		}
		if !strings.Contains(s.Doc, "Covers ") || !strings.Contains(s.Doc, "Cannot ") {
			t.Errorf("%s says not what it covers and what it cannot:\n%s", s.Name, s.Doc)
		}
		for _, p := range s.Policies {
			if p.Origin != engine.OriginLibrary || !strings.HasPrefix(p.Name, s.Name+"/") || p.Convert.Policy != p.Name {
				t.Errorf("%s: policy %q of origin %q, conversion %q", s.Name, p.Name, p.Origin, p.Convert.Policy)
			}
		}
	}
}

// A user's policy for a version of the library's takes its place.
func TestLibraryGivesWay(t *testing.T) {
	files := []File{{Name: "10-pdb.convert.cel", Data: []byte(`{'resource': 'poddisruptionbudgets', 'from': 'policy/v1beta1', 'to': 'policy/v1'}`)}}
	set, errs := compile(files, Options{Library: []string{"policy-v1beta1"}}, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	conversions := set.Conversions()
	if len(conversions) != 1 || conversions[0].Policy != "10-pdb" {
		t.Errorf("%d conversions, the first by %s; want one, by 10-pdb", len(conversions), conversions[0].Policy)
	}
}

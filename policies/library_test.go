package policies

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// wholeLibrary compiles all that is shipped.
var wholeLibrary = sync.OnceValues(func() (*engine.Set, error) { return Load(Options{Library: []string{"all"}}) })

// shippedConversion returns the conversion by the shipped policy called name.
func shippedConversion(t *testing.T, name string) *engine.Conversion {
	t.Helper()
	set, err := wholeLibrary()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Conversions() {
		if c.Policy == name && len(c.Via) == 0 {
			return c
		}
	}
	t.Fatalf("the library has no %s", name)
	return nil
}

// The rows are what kube-apiserver answers in one version for an object written
// in the other, while it serves both.
func TestLibraryConverts(t *testing.T) {
	const (
		none  = `{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}`
		all   = `{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"DoesNotExist"}]}`
		key   = `"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""`
		pdb   = "policy-v1beta1/poddisruptionbudgets"
		cron  = "batch-v1beta1/cronjobs"
		flow  = "flowcontrol-v1beta3/flowschemas"
		level = "flowcontrol-v1beta3/prioritylevelconfigurations"
		up    = convert.ToServer
		down  = convert.ToClient
	)
	tests := []struct {
		name     string
		policy   string
		dir      convert.Direction
		in, want string // what differs from the template of the resource
	}{
		{"an empty selector selects none", pdb, up, `"spec":{"selector":{}}`, `"spec":{"selector":` + none + `}`},
		{"so does one with empty parts", pdb, up, `"spec":{"selector":{"matchLabels":{},"matchExpressions":null}}`, `"spec":{"selector":` + none + `}`},
		{"a null selector is null", pdb, up, `"spec":{"selector":null}`, `"spec":{"selector":null}`},
		{"no selector stays away", pdb, up, `"spec":{"minAvailable":1}`, `"spec":{"minAvailable":1}`},
		{"no spec stays away", pdb, up, `"status":{}`, `"status":{}`},
		{"a null spec is null", pdb, up, `"spec":null`, `"spec":null`},
		{"a selector stays", pdb, up, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`},
		{"the selector of all pods", pdb, up, `"spec":{"selector":` + all + `}`, `"spec":{"selector":{"matchExpressions":[]}}`},
		{
			"the label is no requirement of a user's", pdb, up,
			`"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"x","operator":"Exists"},{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}]}}`,
			`"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"x","operator":"Exists"}]}}`,
		},
		{"all pods, for an old client", pdb, down, `"spec":{"selector":{}}`, `"spec":{"selector":` + all + `}`},
		{"no pod, for an old client", pdb, down, `"spec":{"selector":` + none + `}`, `"spec":{"selector":{}}`},
		{"a selector comes back", pdb, down, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`, `"spec":{"selector":{"matchLabels":{"a":"b"}}}`},
		{"no selector comes back", pdb, down, `"spec":{"maxUnavailable":"10%"},"status":{"currentHealthy":9007199254740993}`, `"spec":{"maxUnavailable":"10%"},"status":{"currentHealthy":9007199254740993}`},

		{"a cron job", cron, up, `"spec":{"schedule":"* * * * *","suspend":false}`, `"spec":{"schedule":"* * * * *","suspend":false}`},
		{"a cron job comes back", cron, down, `"spec":{"schedule":"* * * * *"}`, `"spec":{"schedule":"* * * * *"}`},

		{"a flow schema", flow, up, `"spec":{"matchingPrecedence":1000}`, `"spec":{"matchingPrecedence":1000}`},
		{"a flow schema comes back", flow, down, `"spec":{"matchingPrecedence":1000}`, `"spec":{"matchingPrecedence":1000}`},

		{"shares of 0 are the default", level, up, `"spec":{"limited":{"nominalConcurrencyShares":0}}`, `"spec":{"limited":{"nominalConcurrencyShares":30}}`},
		{"other shares stay", level, up, `"spec":{"limited":{"nominalConcurrencyShares":7}}`, `"spec":{"limited":{"nominalConcurrencyShares":7}}`},
		{"no shares are the server's to default", level, up, `"spec":{"limited":{}}`, `"spec":{"limited":{}}`},
		{
			"shares of 0 that are meant", level, up,
			`"metadata":{"name":"n","annotations":{"a":"b",` + key + `}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
			`"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{
			"no shares are 0 with the annotation", level, up,
			`"metadata":{"name":"n","annotations":{"a":"b",` + key + `}},"spec":{"limited":{}}`,
			`"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{
			"the annotation alone goes", level, up,
			`"metadata":{"name":"n","annotations":{"a":"b",` + key + `}},"spec":{"type":"Exempt"}`,
			`"metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"type":"Exempt"}`,
		},
		{
			"an exempt level's 0 is 0 in both", level, up,
			`"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":0}}`, `"spec":{"type":"Exempt","exempt":{"nominalConcurrencyShares":0}}`,
		},
		{
			"0 comes back with the annotation", level, down,
			`"metadata":{"name":"n"},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
			`"metadata":{"name":"n","annotations":{` + key + `}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{
			"an annotation that is there stays", level, down,
			`"metadata":{"name":"n","annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":"x"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
			`"metadata":{"name":"n","annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":"x"}},"spec":{"limited":{"nominalConcurrencyShares":0}}`,
		},
		{"absent shares are not 0 in v1", level, down, `"spec":{"limited":{}}`, `"spec":{"limited":{}}`},
		{"others come back without", level, down, `"spec":{"limited":{"nominalConcurrencyShares":1}}`, `"spec":{"limited":{"nominalConcurrencyShares":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := shippedConversion(t, tt.policy)
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

// Each policy has a name of its own, which begins with its directory's, and says at the
// head of its first file what it covers and what it cannot.
func TestLibraryIsDescribed(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Library() {
		for _, p := range s.Policies {
			if p.Origin != engine.OriginLibrary || !strings.HasPrefix(p.Name, s.Name+"/") || p.Convert != nil && p.Convert.Policy != p.Name {
				t.Errorf("%s %s: policy %q of origin %q", s.Release, s.Name, p.Name, p.Origin)
			}
			if names[p.Name] {
				t.Errorf("two policies are called %s", p.Name)
			}
			names[p.Name] = true
		}
		for _, p := range s.Policies {
			i := slices.IndexFunc(s.Docs, func(d ShippedDoc) bool { return d.isOf(p.Name) })
			if i < 0 {
				t.Errorf("%s has no comment at its head with a paragraph that begins with %q", p.Name, coversBegins)
				continue
			}
			if d := s.Docs[i]; (d.Limits == "") != strings.HasSuffix(d.Text, "\n\n"+noLimit) {
				t.Errorf("%s has no paragraph that begins with %q, nor is the last one %q:\n%s", p.Name, limitsBegins, noLimit, d.Text)
			}
			if want := "Kubernetes " + s.Release; !strings.Contains(strings.ReplaceAll(s.Docs[i].Text, "\n", " "), want) {
				t.Errorf("%s does not say that it is about %s:\n%s", p.Name, want, s.Docs[i].Text)
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

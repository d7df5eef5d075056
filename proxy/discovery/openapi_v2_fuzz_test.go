package discovery

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/munnerz/goautoneg"
)

// FuzzAcceptV2 compares with the loop of kube-openapi's handler.
func FuzzAcceptV2(f *testing.F) {
	f.Add("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	f.Add("application/json;q=0.1,application/com.github.proto-openapi.spec.v2.v1.0+protobuf;q=0.2")
	f.Add("text/html,*/*;q=0.8")
	f.Add("*/json, application/*;q=0")
	f.Fuzz(func(t *testing.T, accept string) {
		want := ""
		for _, clause := range goautoneg.ParseAccept(accept) {
			for _, offered := range []string{"json", "com.github.proto-openapi.spec.v2@v1.0+protobuf", "com.github.proto-openapi.spec.v2.v1.0+protobuf"} {
				if want == "" && slices.Contains([]string{"application", "*"}, clause.Type) && slices.Contains([]string{offered, "*"}, clause.SubType) {
					want = "application/" + strings.Replace(offered, "@", ".", 1)
				}
			}
		}
		if accept == "" {
			want = "application/json"
		}
		form, ok := negotiateV2(accept)
		if strings.Count(accept, ",") >= maxAcceptClauses {
			return // beyond what is looked at: an answer, whichever
		}
		if ok != (want != "") || ok && contentTypesV2[form] != want {
			t.Errorf("Accept: %s is answered %v, %v, want %q", accept, form, ok, want)
		}
	})
}

// FuzzMergeOpenAPIV2 merges whatever servers may send: nothing is lost, nothing is
// invented, the order of the servers does not matter, merging again changes nothing,
// and references that led somewhere still do, also with a conversion added.
func FuzzMergeOpenAPIV2(f *testing.F) {
	f.Add(customV2, `{"paths":{"/apis/acme.io/v2/namespaces/{namespace}/things":{"post":{}}},"definitions":{"Meta":{"x-kubernetes-group-version-kind":[{"kind":"M"}]}}}`, `{}`, uint64(1))
	f.Add(`{"paths":{"/a":1},"definitions":{"D":[],"<&>":{}}}`, `{"paths":{"/a":{"get":{}}},"definitions":{"D":{"x-kubernetes-group-version-kind":7}}}`, `{"paths":null,"x":"`+"\u2028"+`"}`, uint64(2))
	convert := []DerivedV2{{Conversions: conversions(f, "acme.io/v1 things -> acme.io/v2 things")}}
	f.Fuzz(func(t *testing.T, a, b, c string, seed uint64) {
		var sources []OpenAPIV2Source
		for i, text := range []string{a, b, c} {
			if d, err := ParseOpenAPIV2([]byte(text)); err == nil {
				sources = append(sources, OpenAPIV2Source{string(rune('a' + i)), "v1.3" + string(rune('0'+i)), d})
			}
		}
		if len(sources) == 0 {
			return
		}
		merged := MergeOpenAPIV2(sources)
		text := merged.JSON()
		if !json.Valid(text) {
			t.Fatalf("no JSON: %s", text)
		}
		checkUnionV2(t, sources, merged)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
		if again := MergeOpenAPIV2(sources).JSON(); !bytes.Equal(again, text) {
			t.Errorf("in another order\n%s\n%s", text, again)
		}
		sources = append(sources, OpenAPIV2Source{"z", "v2.0", merged})
		if again := MergeOpenAPIV2(sources).JSON(); !bytes.Equal(again, text) {
			t.Errorf("merged again\n%s\n%s", text, again)
		}
		if whole, err := merged.WithConversions(convert); err == nil {
			checkRefsV2(t, merged, whole)
		}
	})
}

func checkUnionV2(t *testing.T, sources []OpenAPIV2Source, merged *OpenAPIV2) {
	t.Helper()
	for _, section := range sectionsV2 {
		known := map[string]bool{}
		for _, s := range sources {
			for key := range s.Document.sections[section] {
				known[key] = true
				if _, ok := merged.sections[section][key]; !ok {
					t.Errorf("%s %q is lost", section, key)
				}
			}
		}
		if len(merged.sections[section]) != len(known) {
			t.Errorf("%s has %d entries of %d", section, len(merged.sections[section]), len(known))
		}
	}
	for _, s := range sources {
		for path, item := range s.Document.sections["paths"] {
			var have, in map[string]json.RawMessage
			if json.Unmarshal(item, &in) != nil || json.Unmarshal(merged.sections["paths"][path], &have) != nil {
				continue
			}
			for operation := range in {
				if _, ok := have[operation]; !ok && have != nil {
					t.Errorf("%s of %s is lost", operation, path)
				}
			}
		}
	}
}

func checkRefsV2(t *testing.T, before, after *OpenAPIV2) {
	t.Helper()
	for section, entries := range before.sections {
		for key := range entries {
			if _, ok := after.sections[section][key]; !ok {
				t.Errorf("%s %q is gone", section, key)
			}
		}
	}
	for _, section := range []string{"paths", "definitions"} {
		for key, raw := range after.sections[section] {
			if !json.Valid(raw) {
				t.Errorf("%s %q is %q", section, key, raw)
			}
			if _, old := before.sections[section][key]; old {
				continue
			}
			for _, ref := range refsIn(raw) {
				section, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
				_, now := after.sections[section][name]
				_, then := before.sections[section][name]
				if !now && then {
					t.Errorf("%s of the new %s leads nowhere", ref, key)
				}
			}
		}
	}
}

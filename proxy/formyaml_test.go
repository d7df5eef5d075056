package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

func TestWriteYAML(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		var got bytes.Buffer
		if err := writeYAML(&got, strings.NewReader(doc)); err != nil || got.String() != want {
			t.Errorf("%s became %v\n%s\nwant\n%s", doc, err, &got, want)
		}
	}

	f(`{"b":1.50,"a":{"c":[]},"d":{},"e":null}`, "b: 1.50\na:\n  c: []\nd: {}\ne: null\n")
	f(`{"a":[1e3,-0,{"b":"c d","e":[true]},[[2],{"f":"g"}]]}`,
		"a:\n- 1e3\n- -0\n- b: c d\n  e:\n  - true\n- - - 2\n  - f: g\n")
	f(`{"on":"off","a/b":"x:y"}`, "\"on\": \"off\"\na/b: \"x:y\"\n")
	f(`{}`, "{}\n")
}

func TestWriteYAMLErrors(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		if err := writeYAML(io.Discard, strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s gave %v, want %s", doc, err, want)
		}
	}

	f(`{"a":[1`, "unexpected EOF")
	f(`{"a"`, "unexpected EOF")
	f(``, "unexpected EOF")
	f(`{"a":x}`, "invalid character")
	f(strings.Repeat(`[`, convert.MaxDepth+2)+`1`, "deeper than 10000 levels")
}

// A string, as a key and as a value, is the same string to a reader of YAML.
func FuzzYAMLString(f *testing.F) {
	for _, s := range []string{"", "yes", "1_000", "0o7", "12:30:45", "a\u0085b", "\U0001f600", "- ", "key: value", "\ufffe", "a\\\"b\r\n"} {
		f.Add(s)
	}
	f.Add(strings.Repeat("a\x00", 1000))
	f.Fuzz(func(t *testing.T, s string) {
		doc, err := json.Marshal(map[string][]string{s: {s, s}})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := writeYAML(&text, bytes.NewReader(doc)); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		var got, want map[string][]string
		if err := yaml.Unmarshal(text.Bytes(), &got); err != nil {
			t.Fatalf("%s became %q: %v", doc, &text, err)
		}
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %q, which is %q", doc, &text, got)
		}
	})
}

package policies

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestJSON reads what is JSON and no YAML, or not the same in both.
func TestJSON(t *testing.T) {
	rule := func(value string) string {
		return `{"apiVersion": "mvp.k8s.io/v1", "kind": "TransformationRules", "metadata": {"name": "a"},
	"spec": {"apiMigrationRules": [{"apiGroup": "a", "resource": "b", "fromVersion": "v1", "toVersion": "v2",
	"transformations": [{"path": "spec.a", "action": "modify", "replaceValue": ` + value + `}]}]}}`
	}
	longKey := strings.Repeat("k", 2000)
	tests := []struct{ name, value, want string }{
		{"surrogate pair", `"\ud83d\ude00"`, `"😀"`},
		{"lone surrogate", `"\ud83d"`, `"` + "\ufffd" + `"`},
		{"every escape", `"\"\\\/\b\f\n\r\t\u00e9"`, `"\"\\/\b\f\n\r\té"`},
		{"tabs", "{\n\t\"a\":\t1\n\t}", `{"a":1}`},
		{"no space after a colon", `{"a":1,"b":[true,null]}`, `{"a":1,"b":[true,null]}`},
		{"a colon on the next line", "{\"a\"\n:\n1}", `{"a":1}`},
		{"a long key", `{"` + longKey + `": 1}`, `{"` + longKey + `":1}`},
		{"a number is as written", `1.50`, `1.50`},
		{"a number beyond every float", `1E400`, `1E400`},
		{"text that YAML reads otherwise", `["yes", "~", "1", "2026-01-01", "<<"]`, `["yes","~","1","2026-01-01","\u003c\u003c"]`},
		{"line separators of Unicode", "\"a\u2028b\u0085\"", "\"a\\u2028b\u0085\""},
		{"delete", "\"\x7f\"", "\"\x7f\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policies, errs := Parse([]File{{Name: "a.json", Data: []byte(rule(tt.value))}})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := asJSON(policies[0].Convert.Rules[0].ReplaceValue); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestJSONMistakes checks the places of mistakes in JSON, in and after lines with
// characters of several bytes.
func TestJSONMistakes(t *testing.T) {
	f := func(data, want string) {
		t.Helper()
		_, errs := Parse([]File{{Name: "a.json", Data: []byte(data)}})
		if got := errs.Error(); got != want {
			t.Errorf("%s\n got %s\nwant %s", data, got, want)
		}
	}

	f("{\"a\": é}", "a.json:1:7: not JSON: unexpected 'é': a value is wanted; JSON has no comments, and texts stand in double quotes\n  {\"a\": é}\n        ^")
	f("{\"é\": 1,\n \"b\": }", "a.json:2:7: not JSON: unexpected '}': a value is wanted; JSON has no comments, and texts stand in double quotes\n   \"b\": }\n        ^")
	f(`{"a": 1`, "a.json:1:7: not JSON: unexpected end of JSON input\n  {\"a\": 1\n        ^")
	f("{} {}", "a.json:1:4: not JSON: unexpected '{': a .json file holds one document; write several in YAML\n  {} {}\n     ^")
	f("# a comment", "a.json:1:1: not JSON: unexpected '#': a value is wanted; JSON has no comments, and texts stand in double quotes\n  # a comment\n  ^")
	f("null", "a.json:1:1: the file holds no document: write TransformationRules or remove the file\n  null\n  ^")
	f(strings.Repeat("[", 20_000), "a.json:1:10001: not JSON: unexpected '[' exceeded max depth\n  "+strings.Repeat("[", 160)+"\n  "+strings.Repeat(" ", 80)+"^")

	// The same field twice, after text of several bytes in the same line.
	f(`{"é": 1, "kind": "x", "apiVersion": "mvp.k8s.io/v1", "kind": 2}`,
		"a.json:1:19: kind is \"x\": it must be TransformationRules\n"+
			`  {"é": 1, "kind": "x", "apiVersion": "mvp.k8s.io/v1", "kind": 2}`+"\n                   ^\n"+
			"a.json:1:55: \"kind\" is given twice, first in line 1\n"+
			`  {"é": 1, "kind": "x", "apiVersion": "mvp.k8s.io/v1", "kind": 2}`+"\n"+strings.Repeat(" ", 55)+"^")
}

// FuzzJSON compares what is made of JSON with what encoding/json makes of it, and
// the places with the text.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, -2.5e3, "x", null, true, {}], "b": {"c": []}}`, "[\n1,\n\t\"é\", 2]", `"\ud83d\ude00"`, `{"a":1,"a":2}`, `{"a":}`, "\ufeff1", "1 2",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkText(File{Name: "f.json", Data: data}) != nil {
			return
		}
		file, docs := readJSON(File{Name: "f.json", Data: data})
		for _, e := range file.errs {
			_ = e.Error()
		}
		var want any
		decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, utf8BOM)))
		decoder.UseNumber()
		valid := json.Valid(bytes.TrimPrefix(data, utf8BOM)) && decoder.Decode(&want) == nil
		if valid != (len(file.errs) == 0) {
			t.Fatalf("valid JSON %v, mistakes %v", valid, file.errs)
		}
		if len(docs) == 0 {
			return // null, or not JSON
		}
		checkNodePlaces(t, file, docs[0])
		got, ok := file.value(docs[0], 0)
		if ok && !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
	})
}

// checkNodePlaces checks that every value starts where its node says.
func checkNodePlaces(t *testing.T, file *yamlFile, node *yaml.Node) {
	pos := file.pos(node)
	text := file.lines[pos.Line-1][pos.Col-1:]
	start := map[string]string{"!!map": "{", "!!seq": "[", "!!str": `"`, "!!float": node.Value, "!!bool": node.Value, "!!null": "null"}[node.Tag]
	if !strings.HasPrefix(text, start) {
		t.Errorf("%s %q is at %v, where %q stands", node.Tag, node.Value, pos, text)
	}
	for _, child := range node.Content {
		checkNodePlaces(t, file, child)
	}
}

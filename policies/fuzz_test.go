package policies

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// FuzzDocuments reads arbitrary bytes as a document. Whatever they are, there is
// no panic, every mistake has a place inside the file, and every text is the
// file's own bytes at its place.
func FuzzDocuments(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if ext := filepath.Ext(file.Name); ext == ".yaml" || ext == ".json" {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		policies, errs := Parse([]File{{Name: "f.yaml", Data: data}})
		lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
		for _, e := range errs {
			_ = e.Error()
			if e.Pos.File != "f.yaml" || e.Pos.Line < 1 || e.Pos.Col < 1 || e.Caret > len(e.Line) {
				t.Errorf("a mistake at %v, caret %d in %q: %s", e.Pos, e.Caret, e.Line, e.Msg)
			}
		}
		for _, p := range policies {
			texts := []*source.Text{p.Match}
			if c := p.Convert; c != nil {
				texts = append(texts, c.Request, c.Response)
				for _, r := range c.Rules {
					if _, err := json.Marshal([]any{r.MatchValue, r.ReplaceValue, r.DefaultValue}); err != nil {
						t.Errorf("a rule's values are no JSON: %v", err)
					}
				}
			}
			for _, text := range texts {
				checkPlace(t, lines, text)
			}
		}
	})
}

// checkPlace checks that the first line of a block text stands where it says.
func checkPlace(t *testing.T, lines []string, text *source.Text) {
	if text == nil {
		return
	}
	if isBlank(text.Code) {
		t.Errorf("a blank text at %v", text.Start)
	}
	if text.Indent == 0 {
		return // quoted: the file has escapes where the text has not
	}
	for i, want := range strings.Split(text.Code, "\n") {
		pos := source.Pos{Line: text.Start.Line + i, Col: text.Indent + 1}
		if got := strings.TrimRight(lines[pos.Line-1], "\r"); !isBlank(want) && got[pos.Col-1:] != want {
			t.Errorf("line %d of the text is %q, in the file stands %q", i+1, want, got)
		}
	}
}

// FuzzValue compares the JSON value of a YAML node with what the YAML library
// itself makes of it, where both have one.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{"1", "1.50", "0x1F", "a: [1, 'x', null, true]", "- {a: b}", "2026-01-01", "yes", "!!binary aGk=", "&a [*a]", "?", "{a: 1, a: 2}", "\"\\u00e9\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, docs := readYAML(File{Name: "f.yaml", Data: []byte(text)})
		if len(docs) != 1 || len(file.errs) > 0 {
			return
		}
		got, ok := file.value(docs[0], 0)
		if ok != (len(file.errs) == 0) {
			t.Fatalf("a value %v with the mistakes %v", got, file.errs)
		}
		var want any
		if !ok || yaml.Unmarshal([]byte(text), &want) != nil {
			return
		}
		switch want := want.(type) {
		case time.Time: // JSON has no times: they stay the text they were
			_, ok = got.(string)
		case string, bool, nil:
			ok = want == got
		case []any:
			list, isList := got.([]any)
			ok = isList && len(list) == len(want)
		case int, int64, uint64, float64:
			_, ok = got.(json.Number)
		}
		if !ok {
			t.Errorf("%q is %#v, the YAML library says %#v", text, got, want)
		}
	})
}

// TestHostileYAML reads documents made to take forever or to exhaust memory.
func TestHostileYAML(t *testing.T) {
	const head = "apiVersion: mvp.k8s.io/v1\nkind: TransformationRules\nmetadata: {name: a}\nspec:\n  apiMigrationRules:\n" +
		"  - apiGroup: a\n    resource: b\n    fromVersion: v1\n    toVersion: v2\n    transformations:\n    - path: spec.a\n      action: modify\n      replaceValue: "
	laughs := "\n      - &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		prev, next := string(rune('a'+i)), string(rune('b'+i))
		laughs += "      - &" + next + " [" + strings.Repeat("*"+prev+", ", 10) + "]\n"
	}
	tests := []struct{ name, value, want string }{
		{"aliases of aliases", laughs, "the values of this file have more than 200000 parts, aliases written out"},
		{"an alias of itself", "&a [*a]", "the value nests deeper than 64"},
		{"deep flow", strings.Repeat("[", 500) + strings.Repeat("]", 500), "the value nests deeper than 64"},
		{"many open brackets", strings.Repeat("[", MaxFileBytes/2), "not YAML: exceeded max depth of 10000"},
		{"many open maps", strings.Repeat("{a: ", MaxFileBytes/8), "not YAML: exceeded max depth of 10000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := Parse([]File{{Name: "a.yaml", Data: []byte(head + tt.value + "\n")}})
			if len(errs) != 1 || errs[0].Msg != tt.want {
				t.Errorf("got %d mistakes: %.300s\nwant %s", len(errs), errs.Error(), tt.want)
			}
		})
	}
}

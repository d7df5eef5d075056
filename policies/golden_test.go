package policies

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata")

// TestFiles compiles the policy files of every archive in testdata and compares
// either all mistakes, word for word (want.error), or what the files say (want.policies)
// and all warnings, if there are any (want.warnings). To add a case, add a file.
func TestFiles(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before := string(txtar.Format(a))
			fillWant(a)
			after := string(txtar.Format(a))
			if after == before {
				return
			}
			if *update {
				if err := os.WriteFile(name, []byte(after), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got:\n%s\nwant:\n%s", after, before)
		})
	}
}

// fillWant replaces the want part of a by what comes out.
func fillWant(a *txtar.Archive) {
	var files []File
	for _, f := range a.Files {
		if !strings.HasPrefix(f.Name, "want.") {
			files = append(files, File{Name: f.Name, Data: f.Data})
		}
	}
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want.") })
	set, errs := compile(files, Options{}, nil)
	if len(errs) > 0 {
		a.Files = append(a.Files, txtar.File{Name: "want.error", Data: []byte(errs.Error() + "\n")})
		return
	}
	policies, _ := Parse(files)
	if warnings := shown(set.Warnings(), files); len(warnings) > 0 {
		a.Files = append(a.Files, txtar.File{Name: "want.warnings", Data: []byte(warnings.Error() + "\n")})
	}
	a.Files = append(a.Files, txtar.File{Name: "want.policies", Data: []byte(show(policies))})
}

// show writes out what policies say, texts with their places.
func show(policies []engine.Policy) string {
	var b strings.Builder
	for _, p := range policies {
		fmt.Fprintf(&b, "%s at %v", p.Name, p.Pos)
		if p.Audit {
			b.WriteString(", audit")
		}
		if p.OnFailure == engine.Ignore {
			b.WriteString(", ignored when it fails")
		}
		b.WriteString("\n")
		showTexts(&b, p)
		showConversion(&b, p)
		if r := p.Prefer; r != nil {
			fmt.Fprintf(&b, "  prefer %v for %s/%s %s\n", r.Server, r.Group, r.ClientVersion, r.Resource)
		}
	}
	return b.String()
}

func showTexts(b *strings.Builder, p engine.Policy) {
	texts := []struct {
		role string
		text *source.Text
	}{{"match", p.Match}, {"route", p.Route}, {"deny", p.Deny}, {"warn", p.Warn}}
	if p.Convert != nil {
		texts = append(texts, []struct {
			role string
			text *source.Text
		}{{"request", p.Convert.Request}, {"response", p.Convert.Response}}...)
	}
	for _, t := range texts {
		if t.text != nil {
			fmt.Fprintf(b, "  %s at %v, indent %d: %q\n", t.role, t.text.Start, t.text.Indent, t.text.Code)
		}
	}
}

func showConversion(b *strings.Builder, p engine.Policy) {
	c := p.Convert
	if c == nil {
		return
	}
	fmt.Fprintf(b, "  convert %s %s %q to %s %s %q, when %v\n", c.From.APIVersion(), c.From.Resource, c.From.Kind,
		c.To.APIVersion(), c.To.Resource, c.To.Kind, p.When)
	for _, r := range c.Rules {
		fmt.Fprintf(b, "    %v %s\n", r.Pos, showRule(r))
	}
}

func showRule(r convert.Rule) string {
	parts := []string{string(r.Action) + " " + r.Path}
	add := func(given bool, format string, value any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(r.TargetPath != "", "to %s", r.TargetPath)
	add(r.Type != "", "type %s", r.Type)
	add(r.HasMatch, "match %s", asJSON(r.MatchValue))
	add(r.HasReplace, "replace %s", asJSON(r.ReplaceValue))
	add(r.HasDefault, "default %s", asJSON(r.DefaultValue))
	add(r.Unless != nil, "unless %q", r.Unless)
	return strings.Join(parts, ", ")
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

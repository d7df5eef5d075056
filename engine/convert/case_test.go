package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata")

// TestCases runs every archive in testdata. To add a case, add a file. It holds
// a spec.json and bodies; the name of a body says what it is:
//
//	object      a client's object
//	merge       a client's merge patch
//	strategic   a client's strategic merge patch
//	jsonpatch   a client's JSON patch
//	apply       a client's apply configuration
//	back        a server's object
//	answer      a server's answer
//	watch       a server's watch stream
//
// followed by .1, .2 and so on when there are several. What becomes of each, or
// the error, is in the part of the same name that starts with "want.". A spec
// with mistakes has only a want.error.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runCase(t, a)
			if bytes.Equal(txtar.Format(got), txtar.Format(a)) {
				return
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got:\n%s", txtar.Format(got))
		})
	}
}

// runCase returns a with the want parts as they should be.
func runCase(t *testing.T, a *txtar.Archive) *txtar.Archive {
	t.Helper()
	got := &txtar.Archive{Comment: a.Comment}
	want := func(name string, data []byte, err error) {
		switch {
		case err != nil && len(data) > 0:
			data = append(append(data, "\nerror: "...), err.Error()...)
		case err != nil:
			data = []byte("error: " + err.Error())
		}
		data = append(bytes.TrimRight(data, "\n"), '\n')
		got.Files = append(got.Files, txtar.File{Name: "want." + name, Data: data})
	}
	var c *Converter
	for _, file := range a.Files {
		if strings.HasPrefix(file.Name, "want.") {
			continue
		}
		got.Files = append(got.Files, file)
		if file.Name == "spec.json" {
			var errs source.Errors
			if c, errs = Compile(caseSpec(t, file.Data)); errs != nil {
				want("error", []byte(errs.Error()), nil)
				return got
			}
			continue
		}
		out, err := convertBody(c, file.Name, bytes.TrimRight(file.Data, "\n"))
		want(file.Name, out, err)
	}
	return got
}

func convertBody(c *Converter, name string, body []byte) ([]byte, error) {
	var buf bytes.Buffer
	switch kind, _, _ := strings.Cut(name, "."); kind {
	case "object":
		return c.Object(nil, body, ToServer, nil)
	case "merge":
		return c.MergePatch(nil, body, nil)
	case "strategic":
		return c.StrategicMergePatch(nil, body, nil)
	case "jsonpatch":
		return c.JSONPatch(nil, body, nil)
	case "apply":
		return c.Apply(nil, body, nil)
	case "back":
		return c.Object(nil, body, ToClient, nil)
	case "answer":
		err := c.Answer(&buf, bytes.NewReader(body), nil)
		return buf.Bytes(), err
	case "watch":
		err := c.Watch(&buf, bytes.NewReader(body), nil)
		return buf.Bytes(), err
	default:
		return nil, errors.New("no such kind of body: " + kind)
	}
}

// caseRule is a rule as the test data writes it.
type caseRule struct {
	Action, Path, TargetPath, Type         string
	MatchValue, ReplaceValue, DefaultValue json.RawMessage
	Unless                                 []string
}

// caseSpec reads a spec.json.
func caseSpec(t *testing.T, data []byte) Spec {
	t.Helper()
	var file struct {
		From, To          Version
		Rules             []caseRule
		Request, Response string
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		t.Fatalf("spec.json: %v", err)
	}
	spec := Spec{Policy: "case", From: file.From, To: file.To}
	for i, r := range file.Rules {
		rule := Rule{
			Action: Action(r.Action), Path: r.Path, TargetPath: r.TargetPath, Type: r.Type, Unless: r.Unless,
		}
		rule.MatchValue, rule.HasMatch = caseValue(t, r.MatchValue)
		rule.ReplaceValue, rule.HasReplace = caseValue(t, r.ReplaceValue)
		rule.DefaultValue, rule.HasDefault = caseValue(t, r.DefaultValue)
		rule.Pos, rule.FieldPos = casePlaces(string(data), i)
		spec.Rules = append(spec.Rules, rule)
	}
	if file.Request != "" {
		spec.Request = &source.Text{Code: file.Request, Start: source.Pos{File: "request.jq", Line: 1, Col: 1}}
	}
	if file.Response != "" {
		spec.Response = &source.Text{Code: file.Response, Start: source.Pos{File: "response.jq", Line: 1, Col: 1}}
	}
	return spec
}

// casePlaces finds the rule of number i, and the values of its fields, in a
// spec.json, where each starts with its action.
func casePlaces(spec string, i int) (source.Pos, map[string]source.Pos) {
	text := source.Text{Code: spec, Start: source.Pos{File: "spec.json", Line: 1, Col: 1}}
	start, end := 0, 0
	for range i + 1 {
		start = end + strings.Index(spec[end:], `{"Action"`)
		end = start + 1
	}
	rule, _, _ := strings.Cut(spec[start:], "}")
	places := map[string]source.Pos{}
	for field, key := range map[string]string{
		"action": `"Action": `, "path": `"Path": `, "targetPath": `"TargetPath": `, "type": `"Type": `, "unless[0]": `"Unless": [`,
		"matchValue": `"MatchValue": `, "replaceValue": `"ReplaceValue": `, "defaultValue": `"DefaultValue": `,
	} {
		if i := strings.Index(rule, key); i >= 0 {
			places[field] = text.At(start + i + len(key))
		}
	}
	return text.At(start), places
}

func caseValue(t *testing.T, raw json.RawMessage) (any, bool) {
	t.Helper()
	if raw == nil {
		return nil, false
	}
	return parsed(t, raw), true
}

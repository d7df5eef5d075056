package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/docs/doctable"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

const reference = "../docs/policies-reference.md"

// TestReferenceExpressions evaluates the CEL examples of the reference, on the request
// that stands there, and looks whether anything that an expression may use is missing.
func TestReferenceExpressions(t *testing.T) {
	page, err := doctable.Read(reference)
	if err != nil {
		t.Fatal(err)
	}
	sample := readSample(t, page)
	variables, err := page.Tables("Variables", "variable", "type", "meaning", "example", "result")
	if err != nil {
		t.Fatal(err)
	}
	var documented, examples []string
	for _, row := range variables {
		name, example := row.Cells[0], row.Cells[3]
		if !strings.Contains(example, name) {
			t.Errorf("line %d: the example does not use %s", row.Line, name)
		}
		documented, examples = append(documented, name+" "+row.Cells[1]), append(examples, example)
		sample.check(t, row.Line, example, row.Cells[4])
	}
	functions, err := page.Tables("Functions", "expression", "result")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range functions {
		examples = append(examples, row.Cells[0])
		sample.check(t, row.Line, row.Cells[0], row.Cells[1])
	}
	checkVariables(t, documented)
	checkFunctions(t, examples)
}

// checkVariables compares the variables that are documented with those there are.
func checkVariables(t *testing.T, documented []string) {
	t.Helper()
	var known []string
	for _, v := range slices.Concat(requestVariables, upstreamVariables) {
		known = append(known, v.name+" "+typeText(v.typ))
	}
	if slices.Sort(known); !slices.Equal(known, slices.Sorted(slices.Values(documented))) {
		t.Errorf("the reference has the variables\n%v\nand expressions\n%v", documented, known)
	}
}

// typeText is a type as the reference writes it.
func typeText(typ *cel.Type) string {
	switch typ {
	case upstreamType:
		return "upstream"
	case cel.DurationType:
		return "duration"
	}
	return typ.String()
}

// checkFunctions looks for functions, operators and macros of which no example is.
func checkFunctions(t *testing.T, examples []string) {
	t.Helper()
	envs, err := celEnvironments()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, example := range examples {
		if parsed, issues := envs.route.Parse(example); issues.Err() == nil {
			ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
				if e.Kind() == ast.CallKind {
					call := e.AsCall()
					used[call.FunctionName()] = true
					if call.IsMemberFunction() && call.Target().Kind() == ast.IdentKind {
						used[call.Target().AsIdent()+"."+call.FunctionName()] = true
					}
				}
			}))
		}
	}
	for name := range envs.route.Functions() {
		internal := strings.Contains(name, "@") && name != "@in" || name == "_in_" || name == "in" || strings.HasPrefix(name, "__")
		if !internal && !used[name] {
			t.Errorf("the reference has no example of the function %s", name)
		}
	}
	for _, macro := range envs.route.Macros() {
		if !strings.Contains(strings.Join(examples, "\n"), macro.Function()+"(") {
			t.Errorf("the reference has no example of the macro %s", macro.Function())
		}
	}
}

// sample is the request of the reference.
type sample struct {
	Method, Target, UserAgent, ContentType, Caller string
	User                                           User
	Object                                         json.RawMessage
	Servers                                        []string
	Upstream                                       struct {
		Name, Version, Emulation, Latency, Serves string
		Inflight                                  int
	}
}

func readSample(t *testing.T, page *doctable.Page) *sample {
	t.Helper()
	text, err := page.Block("CEL", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sample) input(t *testing.T) *Input {
	t.Helper()
	request, err := ParseRequest(s.Method, s.Target)
	if err != nil {
		t.Fatal(err)
	}
	request.UserAgent, request.ContentType = s.UserAgent, s.ContentType
	lowest, highest := mustVersion(t, s.Servers[0]), mustVersion(t, s.Servers[1])
	return &Input{
		Request: &request,
		User:    func() (*User, error) { return &s.User, nil },
		Object:  func() ([]byte, error) { return s.Object, nil },
		Caller:  func() string { return s.Caller },
		Cluster: Cluster{Mixed: lowest != highest, Min: lowest, Max: highest},
	}
}

func (s *sample) upstream(t *testing.T) *Upstream {
	t.Helper()
	u := s.Upstream
	latency, err := time.ParseDuration(u.Latency)
	if err != nil {
		t.Fatal(err)
	}
	return &Upstream{
		Name: u.Name, Version: mustVersion(t, u.Version), Emulation: mustVersion(t, u.Emulation),
		Healthy: true, Inflight: u.Inflight, Latency: latency,
		Serves: func(groupVersion, resource string) bool { return groupVersion+" "+resource == u.Serves },
	}
}

// check evaluates the example in the line, which the result says the end of.
func (s *sample) check(t *testing.T, line int, example, result string) {
	t.Helper()
	code := fmt.Sprintf("dyn(%s) == dyn(%s)", example, result)
	message, refused := strings.CutPrefix(result, "refused: ")
	if !refused {
		message, _ = strings.CutPrefix(result, "error: ")
	}
	failed := message != result
	if failed {
		code = fmt.Sprintf("dyn(%s) == null", example)
	}
	start := source.Pos{File: reference, Line: line, Col: 1}
	set, err := Compile([]Policy{{Name: "example", Origin: OriginFile, Pos: start, Route: &source.Text{Code: code, Start: start}}})
	if err != nil {
		if !refused || !strings.Contains(err.Error(), message) {
			t.Errorf("line %d: %s does not compile: %v", line, example, err)
		}
		return
	}
	d, err := set.Decide(s.input(t))
	if err != nil {
		t.Errorf("line %d: %s: %v", line, example, err)
		return
	}
	_, same, err := d.Score(s.upstream(t))
	switch {
	case refused:
		t.Errorf("line %d: %s compiles, and must not", line, example)
	case failed && (err == nil || !strings.Contains(err.Error(), message)):
		t.Errorf("line %d: %s: got the error %v, want %q in it", line, example, err, message)
	case !failed && err != nil:
		t.Errorf("line %d: %s: %v", line, example, err)
	case !failed && !same:
		t.Errorf("line %d: %s is not %s", line, example, result)
	}
}

func mustVersion(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

package policytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// expectSpec is what a case expects. What is not given is not looked at.
type expectSpec struct {
	Result   dryrun.Outcome `json:"result"`   // converted, passed, denied, refused or failed
	Code     int            `json:"code"`     // the HTTP status of the proxy's own answer
	Message  string         `json:"message"`  // is in what the client is told
	Policies []string       `json:"policies"` // those that act, in order
	Warnings []string       `json:"warnings"` // all of policies
	Audited  []string       `json:"audited"`  // all that policies in audit mode would do, and the paths that they would change
	Upstream string         `json:"upstream"` // the one server that policies like best
	Target   string         `json:"target"`   // of the request to the server

	// Object is what the server is sent, Golden a file that has it.
	Object json.RawMessage `json:"object"`
	Golden string          `json:"golden"`

	// Answer is what the client gets of the response, GoldenAnswer a file that has
	// it.
	Answer       json.RawMessage `json:"answer"`
	GoldenAnswer string          `json:"goldenAnswer"`
}

// wants are what the case spec, which stands at the path at, expects.
func (l *yamlLoader) wants(spec *caseSpec, at string) []want {
	e := spec.Expect
	if e == nil {
		l.fail(at, "the case expects nothing: give it expect")
		return nil
	}
	at += ".expect"
	if e.Result != "" && !slices.Contains(dryrun.Outcomes, e.Result) {
		l.fail(at+".result", "expect.result: there is no %q%s", e.Result, source.Suggest(string(e.Result), outcomeNames()))
	}
	if e.Code != 0 && http.StatusText(e.Code) == "" {
		l.fail(at+".code", "expect.code: %d is no HTTP status", e.Code)
	}
	wants := []want{wantFields{e}}
	sent := contentSpec{"object", e.Object, "golden", e.Golden}
	answer := contentSpec{"answer", e.Answer, "goldenAnswer", e.GoldenAnswer}
	wants = append(l.bodyWants(wants, sent, sentBody), l.bodyWants(nil, answer, answerBody)...)
	if answer.isGiven() && spec.Response == nil && spec.ResponseFile == "" {
		l.fail(at+"."+answer.givenAs(), "expect.%s: %s", answer.givenAs(), noResponse)
	}
	if fields := *e; len(wants) == 1 && fields.isZero() {
		l.fail(at, "the case expects nothing: expect is empty")
	}
	return wants
}

// bodyWants appends to wants what is expected of a body.
func (l *yamlLoader) bodyWants(wants []want, content contentSpec, of body) []want {
	if content.given != nil {
		wants = append(wants, wantBody{of, content.given})
	}
	if content.file != "" {
		wants = append(wants, &goldenFile{l.path(content.file), of})
	}
	return wants
}

// noResponse is wrong with a case that expects an answer, and says none of the server.
const noResponse = "what the client is answered is made of what the server answers: give the case a response, or a responseFile"

func outcomeNames() []string {
	names := make([]string, len(dryrun.Outcomes))
	for i, outcome := range dryrun.Outcomes {
		names[i] = string(outcome)
	}
	return names
}

// isZero reports whether e has nothing for wantFields.
func (e *expectSpec) isZero() bool {
	return e.Result == "" && e.Code == 0 && e.Message == "" && e.Policies == nil && e.Warnings == nil && e.Audited == nil && e.Upstream == "" && e.Target == ""
}

// wantFields are the expectations that are a word or a list.
type wantFields struct{ e *expectSpec }

func (w wantFields) check(results []*dryrun.Result) (string, error) {
	r, e := results[0], w.e
	var problems []string
	differs := func(given bool, what string, got, want any) {
		if given && fmt.Sprint(got) != fmt.Sprint(want) {
			problems = append(problems, fmt.Sprintf("%s: got %v, want %v", what, got, want))
		}
	}
	if e.Result != "" && e.Result != r.Outcome {
		differs(true, "result", outcome(r), e.Result)
	}
	differs(e.Code != 0, "code", r.Code, e.Code)
	differs(e.Policies != nil, "policies", quoted(r.Policies), quoted(e.Policies))
	differs(e.Warnings != nil, "warnings", quoted(r.Warnings), quoted(e.Warnings))
	differs(e.Audited != nil, "audited", quoted(r.Effects), quoted(e.Audited))
	differs(e.Upstream != "", "upstream", strings.Join(r.Best(), ", "), e.Upstream)
	differs(e.Target != "", "target", r.Target, e.Target)
	if !strings.Contains(r.Message(), e.Message) {
		problems = append(problems, fmt.Sprintf("message: got %q, want %q in it", r.Message(), e.Message))
	}
	return strings.Join(problems, "\n"), nil
}

// outcome is the result, and why it is no better.
func outcome(r *dryrun.Result) string {
	if r.Err != nil {
		return fmt.Sprintf("%s (%v)", r.Outcome, r.Err)
	}
	return string(r.Outcome)
}

func quoted(list []string) string { return fmt.Sprintf("%q", list) }

// body is a body of a result.
type body struct {
	name string
	of   func(r *dryrun.Result) []byte
}

var (
	sentBody   = body{"what the server is sent", func(r *dryrun.Result) []byte { return r.Sent }}
	answerBody = body{"what the client is answered", func(r *dryrun.Result) []byte { return r.Answer }}
)

// yaml is the body of all results as YAML documents.
func (b body) yaml(results []*dryrun.Result) (string, error) {
	var texts []string
	for _, r := range results {
		if b.of(r) == nil {
			continue
		}
		text, err := dryrun.YAML(b.of(r))
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "---\n"), nil
}

// compare tells how got differs from the documents in want.
func (b body) compare(results []*dryrun.Result, want []byte) (string, error) {
	got, err := b.yaml(results)
	if err != nil {
		return "", err
	}
	wanted, err := dryrun.YAML(want)
	if err != nil {
		return "", err
	}
	if got == wanted {
		return "", nil
	}
	why := ""
	if results[0].Message() != "" && got == "" {
		why = " (" + outcome(results[0]) + ")"
	}
	return b.name + " differs" + why + ":\n" + strings.TrimSuffix(udiff.Unified("want", "got", wanted, got), "\n"), nil
}

// wantBody is a body that stands in the case.
type wantBody struct {
	body
	text json.RawMessage
}

func (w wantBody) check(results []*dryrun.Result) (string, error) { return w.compare(results, w.text) }

// goldenFile is a body that stands in a file of its own.
type goldenFile struct {
	path string
	body body
}

func (g *goldenFile) check(results []*dryrun.Result) (string, error) {
	want, err := os.ReadFile(g.path)
	if err != nil {
		return "", fmt.Errorf("cannot read the golden file, which --update writes: %w", err)
	}
	return g.body.compare(results, want)
}

func (g *goldenFile) update(results []*dryrun.Result) (bool, error) {
	if problem, err := g.check(results); err == nil && problem == "" {
		return false, nil
	}
	text, err := g.body.yaml(results)
	if err != nil {
		return false, err
	}
	data := []byte(text)
	if strings.HasSuffix(g.path, ".json") {
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return false, err
		}
		data = append(data, '\n')
	}
	if err := os.WriteFile(g.path, data, 0o666); err != nil {
		return false, fmt.Errorf("cannot write the golden file: %w", err)
	}
	return true, nil
}

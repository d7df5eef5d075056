package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// printer prints what became of requests.
type printer struct {
	out, err       io.Writer
	color          bool
	trace, explain bool
}

// print prints reports in the form that -o names. Why something failed goes to
// standard error, too.
func (p *printer) print(output string, reports []report) error {
	var err error
	switch output {
	case "junit":
		err = printJUnit(p.out, suiteOf(reports))
	case "markdown":
		err = p.markdown(reports)
	default:
		each := map[string]func(report) error{"diff": p.diff, "yaml": p.yaml, "json": p.json}[output]
		for _, r := range reports {
			if err = each(r); err != nil {
				break
			}
		}
	}
	for _, r := range reports {
		if r.Err != nil {
			fmt.Fprintf(p.err, "%s: %s: %v\n", r.name, r.Outcome, r.Err)
		}
	}
	return err
}

// diff prints for a person: what changes on the way to the server, and what of it a
// client sees.
func (p *printer) diff(r report) error {
	if r.Err != nil {
		fmt.Fprintf(p.out, "%s: %s\n", r.name, r.Outcome) // why goes to standard error
	} else {
		fmt.Fprintf(p.out, "%s: %s\n", r.name, r.Verdict())
	}
	for _, note := range resultNotes(r) {
		fmt.Fprintf(p.out, "  %s\n", note)
	}
	text, err := diffs(r)
	if err != nil {
		return err
	}
	if p.color {
		text = colorDiff(text)
	}
	fmt.Fprint(p.out, text)
	if p.trace {
		printTrace(p.out, r.Changes)
	}
	if p.explain {
		printExplained(p.out, r.Explained)
	}
	return nil
}

// resultNotes are those of the result. Where a converted manifest is created is no news.
func resultNotes(r report) []string {
	all := r.Notes()
	if len(all) > 0 && r.Back != nil && r.Request.Verb == "create" {
		all = all[1:]
	}
	for _, v := range r.Violations {
		all = append(all, fmt.Sprintf("does not fit the schema of %s: %v", r.Conversion.To.APIVersion(), v))
	}
	return all
}

// diffs are what changes on the way to the server, and on the way back.
func diffs(r report) (string, error) {
	var b strings.Builder
	unified := func(oldName, newName string, before, after []byte) error {
		text, err := unifiedDiff(oldName, newName, redacted(r, before), redacted(r, after))
		b.WriteString(text)
		return err
	}
	if r.Outcome != dryrun.Converted {
		return "", nil
	}
	from, to := r.Conversion.From.APIVersion(), r.Conversion.To.APIVersion()
	if r.Sent != nil {
		if err := unified(from, to, r.Body, r.Sent); err != nil {
			return "", err
		}
	}
	switch {
	case r.Answer != nil:
		if err := unified(to+" answered by the server", from+" answered to the client", r.Response, r.Answer); err != nil {
			return "", err
		}
	case r.Back != nil && r.Lossless():
		b.WriteString("  and back: the same object\n")
	case r.Back != nil:
		b.WriteString("  and back:\n")
		if err := unified("sent by the client", "answered to the client", r.Body, r.Back); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// redacted is a body without what Secrets hold.
func redacted(r report, body []byte) []byte { return dryrun.Redacted(body, r.Request.Resource) }

func unifiedDiff(oldName, newName string, before, after []byte) (string, error) {
	old, err := dryrun.YAML(before)
	if err != nil {
		return "", err
	}
	text, err := dryrun.YAML(after)
	if err != nil {
		return "", err
	}
	return udiff.Unified(oldName, newName, old, text), nil
}

func printTrace(w io.Writer, changes []dryrun.Change) {
	for _, change := range changes {
		fmt.Fprintf(w, "  %s, from %s to %s:\n", change.Policy, change.From, change.To)
		for _, path := range change.Paths {
			fmt.Fprintf(w, "    %s\n", path)
		}
	}
}

func printExplained(w io.Writer, explained []engine.Explanation) {
	for _, e := range explained {
		switch {
		case e.Acts && len(e.Reasons) == 0:
			fmt.Fprintf(w, "  %s: applies\n", e.Policy)
			continue
		case e.Acts:
			fmt.Fprintf(w, "  %s: applies, but %s\n", e.Policy, strings.Join(e.Reasons, "; "))
		default:
			fmt.Fprintf(w, "  %s: does nothing: %s\n", e.Policy, strings.Join(e.Reasons, "; "))
		}
		for _, part := range e.Match {
			printPart(w, part)
		}
	}
}

// operatorWords say how the parts below make a part true.
var operatorWords = map[string]string{"&&": "all of", "||": "any of", "!": "not", "? :": "the condition, then, else"}

func printPart(w io.Writer, part engine.Part) {
	text, reads := part.Text, ""
	if words, ok := operatorWords[part.Operator]; ok {
		text = words
	}
	for _, read := range part.Reads {
		reads += fmt.Sprintf("; %s is %s", read.Name, read.Value)
	}
	fmt.Fprintf(w, "    %s%v: %s: %s%s\n", strings.Repeat("  ", part.Depth), part.Pos, cmp.Or(part.Value, "not known"), text, reads)
}

// yaml prints what the server would get, as a stream that can be applied. What is
// denied or failed is left out of it, with a comment.
func (p *printer) yaml(r report) error {
	fmt.Fprintf(p.out, "---\n# %s: %s\n", r.name, strings.ReplaceAll(r.Verdict(), "\n", " "))
	for _, body := range [][]byte{r.Sent, r.Answer} {
		if body == nil {
			continue
		}
		text, err := dryrun.YAML(body)
		if err != nil {
			return err
		}
		fmt.Fprint(p.out, text)
	}
	return nil
}

// resultJSON is one line of -o json.
type resultJSON struct {
	Source    string               `json:"source"`
	Request   string               `json:"request,omitempty"`
	Result    dryrun.Outcome       `json:"result"`
	Code      int                  `json:"code,omitempty"`
	Policies  []string             `json:"policies,omitempty"`
	Policy    string               `json:"convertedBy,omitempty"`
	From      string               `json:"from,omitempty"`
	To        string               `json:"to,omitempty"`
	Target    string               `json:"target,omitempty"`
	Denied    string               `json:"denied,omitempty"`
	Warnings  []string             `json:"warnings,omitempty"`
	Audited   []engine.Audit       `json:"audited,omitempty"`
	Ignored   []string             `json:"passedOver,omitempty"`
	Violation []dryrun.Violation   `json:"violations,omitempty"` // of the schema
	Lossless  *bool                `json:"lossless,omitempty"`
	Sent      json.RawMessage      `json:"sent,omitempty"`
	Back      json.RawMessage      `json:"back,omitempty"`
	Answer    []json.RawMessage    `json:"answer,omitempty"` // the events of a watch, or one document
	Untouched bool                 `json:"untouched,omitempty"`
	Trace     []dryrun.Change      `json:"trace,omitempty"`
	Explained []engine.Explanation `json:"explained,omitempty"`
	Error     string               `json:"error,omitempty"`
}

func (p *printer) json(r report) error {
	line := resultJSON{
		Source: r.name, Request: r.Request.String(), Result: r.Outcome, Code: r.Code, Policies: r.Policies,
		Warnings: r.Warnings, Audited: r.Audited, Untouched: !r.Touched(), Trace: r.Changes, Explained: r.Explained,
		Violation: r.Violations,
	}
	for _, failed := range r.Ignored {
		line.Ignored = append(line.Ignored, failed.Policy)
	}
	if r.Denied != nil {
		line.Denied = r.Denied.Message
	}
	if c := r.Conversion; c != nil {
		line.Policy, line.From, line.To = c.Policy, c.From.APIVersion(), c.To.APIVersion()
		line.Target, line.Sent, line.Back = r.Target, r.Sent, r.Back
	}
	if r.Back != nil {
		lossless := r.Lossless()
		line.Lossless = &lossless
	}
	if r.Answer != nil {
		documents, err := dryrun.ReadDocuments(bytes.NewReader(r.Answer), "the answer")
		if err != nil {
			return err
		}
		for _, d := range documents {
			line.Answer = append(line.Answer, d.JSON)
		}
	}
	if r.Err != nil {
		line.Error = r.Err.Error()
	}
	return printLine(p.out, line)
}

// printLine prints v as one line of JSON.
func printLine(w io.Writer, v any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

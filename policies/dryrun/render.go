package dryrun

import (
	"bytes"
	"fmt"
	"strings"
)

// Verdict says in a few words what became of the request.
func (r *Result) Verdict() string {
	switch {
	case r.Denied != nil:
		return "denied: " + r.Denied.Message
	case r.Err != nil:
		return fmt.Sprintf("%s (%d)", r.Outcome, r.Code)
	case r.Conversion != nil:
		return fmt.Sprintf("converted to %s by %s", r.Conversion.To.APIVersion(), r.Conversion.Policy)
	case len(r.Policies) > 0:
		return "not converted; policies: " + strings.Join(r.Policies, ", ")
	case r.Touched():
		return "not converted"
	}
	return "untouched: no policy matches"
}

// Notes are what is to be said beside the verdict, a line each: the request as the
// server gets it, what it depends on, warnings, what policies in audit mode would do.
func (r *Result) Notes() []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.Outcome == Converted {
		add("sent: %s %s", r.Request.Method, r.Target)
	}
	if len(r.Upstreams) > 1 {
		add("to: %s", strings.Join(r.Best(), ", "))
	}
	if r.NeedsObject {
		add("the patch is worked out from the object that the server has: read, converted, patched, converted back")
	}
	if r.Preserves {
		add("the fields that the policy preserves are taken from the object that the server has")
	}
	for _, warning := range r.Warnings {
		add("warning: %s", warning)
	}
	for _, failed := range r.Ignored {
		add("passed over: %s failed: %v", failed.Policy, failed.Err)
	}
	for _, audit := range r.Audited {
		add("audit: %s would %s: %s", audit.Policy, audit.Effect, audit.Detail)
	}
	return notes
}

// YAML writes a body, or several that follow each other, as YAML documents.
func YAML(body []byte) (string, error) {
	documents, err := ReadDocuments(bytes.NewReader(body), "the body")
	if err != nil {
		return "", err
	}
	texts := make([]string, len(documents))
	for i := range documents {
		if texts[i], err = yamlText(documents[i].JSON); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, "---\n"), nil
}

package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

// Violation is one thing about what a server is sent that the schema of its version
// does not allow.
type Violation struct {
	kindschema.Violation

	// Policy is the one that wrote it, or took away what is missing; "" where none did.
	Policy string `json:"policy,omitempty"`
}

func (v Violation) String() string {
	if v.Policy == "" {
		return v.Violation.String()
	}
	return fmt.Sprintf("%v (policy %s)", v.Violation, v.Policy)
}

// validate checks what is sent, a whole object, against the schema of its version.
func (r *run) validate() error {
	if r.opts.Schema == nil {
		return nil
	}
	schema := r.opts.Schema(r.Conversion.To)
	if schema == nil {
		return nil
	}
	violations, err := schema.Validate(r.Sent)
	if err != nil || len(violations) == 0 {
		return err
	}
	changes := r.traced(r.Body, r.Sent, convert.ToServer, r.request)
	for _, v := range violations {
		r.Violations = append(r.Violations, Violation{v, writer(changes, v.Path)})
	}
	return nil
}

// writer is the last policy that changed something at the path, or in it or around it;
// "" for none.
func writer(changes []Change, path string) string {
	for _, change := range slices.Backward(changes) {
		if slices.ContainsFunc(change.Paths, func(c PathChange) bool { return c.concerns(path) }) {
			return change.Policy
		}
	}
	return ""
}

// concerns reports whether c wrote what is at the path, or took it away.
func (c PathChange) concerns(path string) bool {
	if path == "" || c.To == "apiVersion" || c.To == "kind" {
		return false
	}
	if c.To == "" {
		return within(c.From, path)
	}
	return within(c.To, path) || within(path, c.To) || c.From != c.To && c.From == path
}

// within reports whether path is outer, or in it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

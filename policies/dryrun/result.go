package dryrun

import "github.com/mixed-version-proxy/mvp/engine"

// Outcome is what becomes of a request.
type Outcome string

// The outcomes.
const (
	Converted Outcome = "converted" // it is sent to a server in another version
	Passed    Outcome = "passed"    // it is sent to a server as it is
	Denied    Outcome = "denied"    // a policy refuses it
	Refused   Outcome = "refused"   // it is at fault, or no server may be asked; none is
	Failed    Outcome = "failed"    // a policy fails on it, or on the answer
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{Converted, Passed, Denied, Refused, Failed}

// Result is what the policies do to one request. It is for reading, by any number
// of goroutines.
type Result struct {
	// Request is what was asked for; without IsResource and Verb when it could not
	// be read.
	Request engine.Request

	Outcome Outcome

	// Code is the HTTP status that the client gets from the proxy itself; 0 where a
	// server answers.
	Code int

	// Err is why a request was refused or failed, with its place where there is one.
	Err error

	// Policies are those that act, in their order.
	Policies []string

	// Denied is the refusal by a policy, nil for none.
	Denied *engine.Denial

	// Warnings are those of policies.
	Warnings []string

	// Audited is what policies in audit mode would do.
	Audited []engine.Audit

	// Effects is what they would do, with the paths that they would change, in the words
	// of a proxy's access log: "10-shop: deny", "20-web: change request spec.a, answer
	// spec.b".
	Effects []string

	// Ignored are the policies that failed and were passed over, since that is what
	// they say.
	Ignored []engine.Ignored

	// Conversion is the one that is made, nil for none.
	Conversion *engine.Conversion

	// Links are what Conversion is made of, in the order of the way to the server:
	// itself, or the links of a chain.
	Links []*engine.Conversion

	// Target is the request's target as it is sent to a server; "" when it is not.
	Target string

	// Body is the request's body in JSON, Sent that of the request to the server;
	// nil where there is none.
	Body, Sent []byte

	// Back is what the client of a converted create or update would be answered if
	// the server stored just Sent; nil for other requests.
	Back []byte

	// Response is the server's answer in JSON, Answer what the client gets of it;
	// nil without a response.
	Response, Answer []byte

	// NeedsObject says that what is sent can be told only together with the object
	// that the server has: a patch through a jq program or across a rule's edge.
	NeedsObject bool

	// Preserves says that an update keeps fields that the server has and the
	// client's version does not.
	Preserves bool

	// Upstreams are the servers that may answer, the best first.
	Upstreams []Ranked

	// Changes are what each policy changed: see Options.Trace.
	Changes []Change

	// Violations are what the schema of the server's version does not allow of Sent: see
	// Options.Schema.
	Violations []Violation

	// Explained says of every policy what it makes of the request: see
	// Options.Explain.
	Explained []engine.Explanation

	// Evaluated are the expressions that are asked: see Options.Evaluate.
	Evaluated []engine.Expression
}

// Touched reports whether a policy says anything about the request.
func (r *Result) Touched() bool {
	return len(r.Policies) > 0 || len(r.Audited)+len(r.Ignored) > 0 || r.Err != nil
}

// OK reports whether the policies did what they should: the request is not at
// fault, no policy failed, and none made what the server would refuse. A denial is what
// its policy wants.
func (r *Result) OK() bool { return r.Err == nil && len(r.Violations) == 0 }

// Lossless reports whether the client would be answered what it sent.
func (r *Result) Lossless() bool { return r.Back != nil && Equal(r.Body, r.Back) }

// Message is what a client that no server answers is told; "" when one does.
func (r *Result) Message() string {
	switch {
	case r.Denied != nil:
		return r.Denied.Message
	case r.Err != nil:
		return r.Err.Error()
	}
	return ""
}

package engine

import (
	"errors"
	"fmt"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// BadTargetError is a request line that a kube-apiserver would refuse, or that
// it could understand differently than we do. The answer is 400.
type BadTargetError struct {
	Method, Target string
	Reason         string
}

func (e *BadTargetError) Error() string {
	return fmt.Sprintf("cannot accept request %s %s: %s", source.Quote(e.Method), source.Quote(e.Target), e.Reason)
}

// BodyError is a body that is not the JSON that an expression needs. The client
// is at fault: the answer is 400. An [EvalError] wraps it.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "the request body is not valid JSON: " + e.Err.Error() }

func (e *BodyError) Unwrap() error { return e.Err }

// EvalError is an expression that failed on one request.
type EvalError struct {
	Policy  string
	Role    string     // "match", "route", "deny" or "warn"
	Pos     source.Pos // of what failed, as far as it is known
	Request string     // [Request.String]
	Reason  Reason     // the kind of Err
	Err     error      // why

	// Index is that of the policy in [Set.Policies], and Ignore says that the request
	// goes on without it: see [Input.Without]. Both are set by [Decision.Scores].
	Index  int
	Ignore bool
}

// Reason is why a policy failed, of a few that a metric can count.
type Reason string

// The reasons why an expression fails.
const (
	ReasonExpression Reason = "expression" // a missing key, a value of another type, …
	ReasonCost       Reason = "cost"       // above the limit of cost
	ReasonUser       Reason = "user"       // it names the user, who is not known
)

// The reasons why a conversion fails, for whoever makes it.
const (
	ReasonProgram Reason = "program" // a jq program raised an error, or made no object
	ReasonTime    Reason = "time"    // a jq program took too long
)

// Reasons are all of them.
var Reasons = [...]Reason{ReasonExpression, ReasonCost, ReasonUser, ReasonProgram, ReasonTime}

func (e *EvalError) Error() string {
	return fmt.Sprintf("%v: cannot evaluate %s of policy %q for %s: %v", e.Pos, e.Role, e.Policy, e.Request, e.Err)
}

func (e *EvalError) Unwrap() error { return e.Err }

// errUserUnknown is why user.name cannot be read.
var errUserUnknown = errors.New("the user is not known; start mvp serve with --authentication-token-review to look up who sends a token")

// errNoBody marks a look into the body of a request that has none.
var errNoBody = errors.New("the request has no body")

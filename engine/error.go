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
	Err     error      // why
}

func (e *EvalError) Error() string {
	return fmt.Sprintf("%v: cannot evaluate %s of policy %q for %s: %v", e.Pos, e.Role, e.Policy, e.Request, e.Err)
}

func (e *EvalError) Unwrap() error { return e.Err }

// errUserUnknown is why user.name cannot be read.
var errUserUnknown = errors.New("the user is not known; start mvp serve with --authentication-token-review to look up who sends a token")

// errNoBody marks a look into the body of a request that has none.
var errNoBody = errors.New("the request has no body")

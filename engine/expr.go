package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// role is what an expression is for.
type role struct {
	name  string
	want  string      // for messages
	types []*cel.Type // that the result may have; dyn is checked when it runs
}

var (
	roleMatch = role{"match", "a bool", []*cel.Type{cel.BoolType}}
	roleRoute = role{"route", "a bool or a number", []*cel.Type{cel.BoolType, cel.IntType, cel.UintType, cel.DoubleType}}
	roleDeny  = role{"deny", "a string", []*cel.Type{cel.StringType}}
	roleWarn  = role{"warn", "a string", []*cel.Type{cel.StringType}}
)

// expr is one compiled expression. It never changes and may be used by any
// number of goroutines.
type expr struct {
	policy  string
	role    role
	text    *source.Text
	program cel.Program
	places  *celast.SourceInfo
	cost    uint64 // the limit

	pins  pins // of the request, for it to be anything but false
	whole bool // it is true where they are met

	warnings source.Errors
}

// compileExpr compiles the text of one role of a policy.
func compileExpr(env *cel.Env, cost uint64, policy string, role role, text *source.Text) (*expr, source.Errors) {
	checked, errs := check(env, text)
	if errs != nil {
		return nil, errs
	}
	if out := checked.OutputType(); !role.accepts(out) {
		return nil, source.Errors{text.Error(firstToken(text.Code), "%s must be %s; this is %s", role.name, role.want, typeName(out))}
	}
	if pattern := computedPattern(checked.NativeRep().Expr()); pattern != nil {
		return nil, source.Errors{text.Error(offsetOf(text, checked.NativeRep(), pattern),
			"the regular expression of matches must be written out as one text; for one that is worked out use find(pattern) != ''")}
	}
	program, err := newProgram(env, checked, cost)
	if err != nil {
		return nil, source.Errors{text.Error(firstToken(text.Code), "cannot use the expression: %v", err)}
	}
	x := &expr{policy: policy, role: role, text: text, program: program, places: checked.NativeRep().SourceInfo(), cost: cost}
	x.pins, x.whole = pinsOf(checked.NativeRep(), checked.NativeRep().Expr())
	x.warnings = warningsOf(role, text, checked.NativeRep(), x.pins)
	return x, nil
}

func (r role) accepts(t *cel.Type) bool {
	if t.IsExactType(cel.DynType) {
		return true
	}
	for _, want := range r.types {
		if t.IsExactType(want) {
			return true
		}
	}
	return false
}

// check parses text and checks its types.
func check(env *cel.Env, text *source.Text) (*cel.Ast, source.Errors) {
	if len(text.Code) > MaxExpressionBytes {
		return nil, source.Errors{text.Error(0, "the expression is too long: it has %d bytes, more than %d", len(text.Code), MaxExpressionBytes)}
	}
	if firstToken(text.Code) == len(text.Code) {
		return nil, source.Errors{text.Error(0, "the expression is empty")}
	}
	parsed, issues := env.Parse(text.Code)
	if issues.Err() != nil {
		return nil, translate(env, text, nil, issues)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, translate(env, text, parsed.NativeRep(), issues)
	}
	if errs := badPatterns(text, checked.NativeRep()); len(errs) > 0 {
		return nil, errs
	}
	return checked, nil
}

// newProgram makes checked executable, with a cost limit if its cost is not
// bounded by its length and its input's.
func newProgram(env *cel.Env, checked *cel.Ast, cost uint64) (cel.Program, error) {
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if unbounded(checked.NativeRep().Expr()) {
		options = append(options, cel.CostLimit(cost), cel.CostTracking(&library.CostEstimator{}))
	}
	return env.Program(checked, options...)
}

// unbounded reports whether e loops, compiles a regular expression that the
// request gives, or can make a text much longer than its input step by step.
func unbounded(e celast.Expr) bool {
	found := false
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.ComprehensionKind:
			found = true
		case celast.CallKind:
			switch call := e.AsCall(); call.FunctionName() {
			case "matches", "find", "findAll":
				found = found || !literalPattern(call)
			case "replace", "join":
				found = true
			}
		}
	}))
	return found
}

// computedPattern returns the regular expression of a matches in e that is not
// written out, nil if there is none. CEL lets nobody look at that one before it is
// compiled, and a client may have sent it; find and findAll have a guard.
func computedPattern(e celast.Expr) (pattern celast.Expr) {
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == "matches" && !literalPattern(e.AsCall()) {
			pattern = patternOf(e.AsCall())
		}
	}))
	return pattern
}

// offsetOf returns where e, a part of parsed, begins in text.
func offsetOf(text *source.Text, parsed *celast.AST, e celast.Expr) int {
	place := parsed.SourceInfo().GetStartLocation(e.ID())
	return text.Offset(place.Line(), place.Column()+1)
}

// literalPattern reports whether the pattern of text.matches(pattern) or
// matches(text, pattern) is written in the expression.
func literalPattern(call celast.CallExpr) bool {
	pattern := patternOf(call)
	return pattern != nil && pattern.Kind() == celast.LiteralKind
}

// patternOf returns the pattern of text.matches(pattern) or matches(text, pattern),
// nil if there is none.
func patternOf(call celast.CallExpr) celast.Expr {
	args := call.Args()
	if !call.IsMemberFunction() {
		args = args[min(1, len(args)):]
	}
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// run evaluates x with the variables of v, and of activation, which is v or
// refers to it. silent is true if x cannot be evaluated because the request has
// no body.
func (x *expr) run(v *vars, activation cel.Activation) (out ref.Val, silent bool, err error) {
	out, _, err = x.program.Eval(activation)
	if err == nil {
		if types.IsUnknown(out) {
			return nil, false, x.fail(v, errors.New("the result is unknown"))
		}
		return out, false, nil
	}
	if v.noObject && x.failsWithoutBody(v, activation) {
		return nil, true, nil
	}
	return nil, false, x.fail(v, err)
}

// failsWithoutBody reports whether x, which failed, did so because it looks into
// the body and there is none: it meets an error if there is one in the place of
// object, and object == null or object != null does not lead it there.
func (x *expr) failsWithoutBody(v *vars, activation cel.Activation) bool {
	defer func() { v.standIn = objectNull }()
	v.standIn = objectError
	if _, _, err := x.program.Eval(activation); !errors.Is(err, errNoBody) {
		return false
	}
	v.standIn = objectOther
	_, _, err := x.program.Eval(activation)
	return err != nil
}

// fail returns the error of an evaluation, with its place where CEL tells it.
func (x *expr) fail(v *vars, err error) *EvalError {
	pos := x.text.At(firstToken(x.text.Code))
	reason := ReasonExpression
	if v.userErr != nil && errors.Is(err, v.userErr) {
		reason = ReasonUser
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		reason = ReasonCost
		err = fmt.Errorf("it takes too long: more than %d units of cost", x.cost)
	}
	var celErr *types.Err
	if errors.As(err, &celErr) {
		if id := celErr.NodeID(); id > 0 {
			location := x.places.GetStartLocation(id)
			if location.Line() > 0 {
				pos = x.text.AtLineCol(location.Line(), location.Column()+1)
			}
		}
	}
	return &EvalError{Policy: x.policy, Role: x.role.name, Pos: pos, Request: v.in.Request.String(), Reason: reason, Err: err}
}

// wrongType is the error of an expression whose type was known only now.
func (x *expr) wrongType(v *vars, out ref.Val) *EvalError {
	return x.fail(v, fmt.Errorf("the result must be %s; it is %s", x.role.want, out.Type().TypeName()))
}

// holds evaluates x as a match.
func (x *expr) holds(v *vars) (bool, error) {
	out, silent, err := x.run(v, v)
	if err != nil || silent {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, x.wrongType(v, out)
	}
	return bool(b), nil
}

// message evaluates x as a deny or a warn.
func (x *expr) message(v *vars) (string, error) {
	out, silent, err := x.run(v, v)
	if err != nil || silent {
		return "", err
	}
	s, ok := out.(types.String)
	if !ok {
		return "", x.wrongType(v, out)
	}
	return string(s), nil
}

// score evaluates x as a route. A negative score is never.
func (x *expr) score(v *vars, u *upstreamValue) (float64, error) {
	out, silent, err := x.run(v, &routeVars{vars: v, upstream: u})
	if err != nil || silent {
		return 0, err
	}
	switch out := out.(type) {
	case types.Bool:
		if !out {
			return -1, nil
		}
		return 1, nil
	case types.Int:
		return float64(out), nil
	case types.Uint:
		return float64(out), nil
	case types.Double:
		if math.IsNaN(float64(out)) {
			return 0, x.fail(v, errors.New("the result is not a number"))
		}
		return float64(out), nil
	}
	return 0, x.wrongType(v, out)
}

// firstToken returns the offset of the first byte of code that is neither white
// space nor in a comment; len(code) if there is none.
func firstToken(code string) int {
	i := 0
	for {
		i = len(code) - len(strings.TrimLeft(code[i:], " \t\r\n\f"))
		if !strings.HasPrefix(code[i:], "//") {
			return i
		}
		end := strings.IndexByte(code[i:], '\n')
		if end < 0 {
			return len(code)
		}
		i += end
	}
}

// typeName returns how a message calls t.
func typeName(t *cel.Type) string {
	return strings.ReplaceAll(cel.FormatCELType(t), "null_type", "null")
}

// operatorName returns how an author writes a function: "==" for "_==_".
func operatorName(function string) string {
	switch function {
	case operators.Conditional:
		return "? :"
	case operators.Index:
		return "[ ]"
	}
	if name, ok := operators.FindReverse(function); ok && name != "" {
		return name
	}
	return function
}

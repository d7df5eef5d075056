package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// maxShownValue is how much of a value an explanation repeats, in bytes.
const maxShownValue = 200

func (p Part) failed() bool { return strings.HasPrefix(p.Value, "error: ") }

// spelling are the environments, which here remember macros as they are written.
var spelling = sync.OnceValues(func() (*environments, error) {
	envs, err := celEnvironments()
	if err != nil {
		return nil, err
	}
	request, err := envs.request.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return nil, err
	}
	route, err := envs.route.Extend(cel.EnableMacroCallTracking())
	return &environments{request: request, route: route}, err
})

// parts evaluates all parts of x with the variables of v, and of activation, which is v
// or refers to it; without an activation they have no values. It is nil when they cannot
// be told; what x itself says is run's to find out.
func (x *expr) parts(v *vars, activation cel.Activation) []Part {
	envs, err := spelling()
	if err != nil {
		return nil
	}
	env := envs.request
	if x.role.name == roleRoute.name {
		env = envs.route
	}
	checked, errs := check(env, x.text)
	if errs != nil {
		return nil
	}
	w := partWalker{
		env: env, ast: checked.NativeRep(), text: x.text, code: []rune(x.text.Code),
		state: interpreter.NewEvalState(),
	}
	if activation != nil {
		program, err := env.Program(checked, cel.EvalOptions(cel.OptExhaustiveEval),
			cel.CostLimit(x.cost), cel.CostTracking(&library.CostEstimator{}))
		if err != nil {
			return nil
		}
		_, details, _ := program.Eval(activation) // its result is that of the first part
		if details == nil {
			return nil
		}
		w.state, w.secret = details.State(), v.ofSecret()
	}
	w.walk(w.ast.Expr(), 0, len(w.code), 0)
	return w.parts
}

// ofSecret reports whether the body is a Secret, or a patch of one.
func (v *vars) ofSecret() bool {
	if v.in.Request.Resource == "secrets" {
		return true
	}
	object, ok := v.object().(traits.Mapper)
	if !ok {
		return false
	}
	kind, _ := object.Find(types.String("kind"))
	return kind == types.String("Secret")
}

// partWalker takes a checked expression apart. Offsets are in characters, as CEL
// counts them.
type partWalker struct {
	env    *cel.Env
	ast    *celast.AST
	text   *source.Text
	code   []rune
	state  interpreter.EvalState
	secret bool // the object is a Secret
	parts  []Part
}

// walk appends e, which stands between start and end, and what it is made of. Its
// recursion is as deep as the expression nests, which CEL's parser bounds.
func (w *partWalker) walk(e celast.Expr, start, end, depth int) {
	start, end, text := w.written(e, start, end)
	part := Part{Text: text, Pos: w.text.At(w.offset(start)), Depth: depth, Value: w.value(e)}
	function := ""
	if e.Kind() == celast.CallKind {
		function = e.AsCall().FunctionName()
	}
	switch function {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		part.Operator = operatorName(function)
		w.parts = append(w.parts, part)
	default:
		w.reads(e, &part)
		w.parts = append(w.parts, part)
		return
	}
	switch args := e.AsCall().Args(); function {
	case operators.LogicalNot:
		w.walk(args[0], w.at(e)+1, end, depth+1)
	case operators.Conditional:
		question := w.at(e)
		colon := w.colon(args, question+1, end)
		w.walk(args[0], start, question, depth+1)
		w.walk(args[1], question+1, colon, depth+1)
		w.walk(args[2], colon+1, end, depth+1)
	default:
		operands, places := w.chain(e, function, nil, nil)
		slices.Sort(places)
		for i, operand := range operands {
			stop := end
			if i < len(places) {
				stop = places[i]
			}
			w.walk(operand, start, stop, depth+1)
			start = stop + len("&&")
		}
	}
}

// chain returns the operands of a && b && c, which CEL nests, and where the
// operators between them stand.
func (w *partWalker) chain(e celast.Expr, function string, operands []celast.Expr, places []int) ([]celast.Expr, []int) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != function {
		return append(operands, e), places
	}
	places = append(places, w.at(e))
	for _, arg := range e.AsCall().Args() {
		operands, places = w.chain(arg, function, operands, places)
	}
	return operands, places
}

// colon finds the one between the two branches of a conditional: colons also stand
// in maps and texts. It returns end if there is none that fits.
func (w *partWalker) colon(args []celast.Expr, start, end int) int {
	for i := start; i < end; i++ {
		if w.code[i] == ':' && w.same(args[1], string(w.code[start:i])) && w.same(args[2], string(w.code[i+1:end])) {
			return i
		}
	}
	return end
}

// written narrows start and end to the text of e, without the parentheses around
// it, and returns that text.
func (w *partWalker) written(e celast.Expr, start, end int) (from, to int, text string) {
	from, to = min(start, len(w.code)), min(end, len(w.code))
	from = max(0, min(from, to))
	for {
		from, to = w.trim(from, to)
		if to-from < 2 || w.code[from] != '(' || w.code[to-1] != ')' || !w.same(e, string(w.code[from+1:to-1])) {
			break
		}
		from, to = from+1, to-1
	}
	text = string(w.code[from:to])
	if !strings.ContainsAny(text, "\n\r") && !strings.Contains(text, "//") && w.same(e, text) {
		return from, to, text
	}
	return from, to, cmp.Or(w.spelled(e), text)
}

// trim leaves out white space, and comments before the text.
func (w *partWalker) trim(from, to int) (int, int) {
	text := string(w.code[from:to])
	first := firstToken(text)
	from += len([]rune(text[:first]))
	to -= len([]rune(text[first:])) - len([]rune(strings.TrimRight(text[first:], " \t\r\n\f")))
	return from, to
}

// same reports whether text means e.
func (w *partWalker) same(e celast.Expr, text string) bool {
	parsed, issues := w.env.Parse(text)
	if issues.Err() != nil {
		return false
	}
	got, err := parser.Unparse(parsed.NativeRep().Expr(), parsed.NativeRep().SourceInfo())
	return err == nil && got == w.spelled(e)
}

// spelled is e in CEL's own spelling.
func (w *partWalker) spelled(e celast.Expr) string {
	text, err := parser.Unparse(e, w.ast.SourceInfo())
	if err != nil {
		return ""
	}
	return text
}

// at is where CEL says that e stands: its operator.
func (w *partWalker) at(e celast.Expr) int {
	span, _ := w.ast.SourceInfo().GetOffsetRange(e.ID())
	return int(span.Start)
}

// offset makes bytes of characters.
func (w *partWalker) offset(characters int) int { return len(string(w.code[:characters])) }

// value is what e came to.
func (w *partWalker) value(e celast.Expr) string {
	value, ok := w.state.Value(e.ID())
	switch {
	case !ok && e.Kind() == celast.LiteralKind:
		value = e.AsLiteral()
	case !ok:
		return ""
	}
	if err, failed := value.(*types.Err); failed {
		return "error: " + clipText(err.String())
	}
	text, _ := shown(value)
	return text
}

// reads notes the values that e looks at, each once.
func (w *partWalker) reads(e celast.Expr, part *Part) {
	if name := w.selected(e); name != "" {
		value, ok := w.state.Value(e.ID())
		if !ok || slices.ContainsFunc(part.Reads, func(r Read) bool { return r.Name == name }) {
			return
		}
		if w.secret && strings.HasPrefix(name, "object") {
			part.Reads = append(part.Reads, Read{name, "not shown: the object is a Secret"})
			return
		}
		if text, simple := shown(value); simple && text != part.Value {
			part.Reads = append(part.Reads, Read{name, text})
		}
		return
	}
	switch e.Kind() {
	case celast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			w.reads(call.Target(), part)
		}
		for _, arg := range call.Args() {
			w.reads(arg, part)
		}
	case celast.ListKind:
		for _, element := range e.AsList().Elements() {
			w.reads(element, part)
		}
	case celast.ComprehensionKind:
		w.reads(e.AsComprehension().IterRange(), part)
	case celast.SelectKind:
		w.reads(e.AsSelect().Operand(), part)
	}
}

// selected is the text of a variable or of what is selected from one; "" for other
// expressions.
func (w *partWalker) selected(e celast.Expr) string {
	if reference, ok := w.ast.ReferenceMap()[e.ID()]; ok && variableIndex(reference.Name) >= 0 {
		return reference.Name
	}
	if e.Kind() != celast.SelectKind || e.AsSelect().IsTestOnly() {
		return ""
	}
	operand := w.selected(e.AsSelect().Operand())
	if operand == "" {
		return ""
	}
	return operand + "." + e.AsSelect().FieldName()
}

// shown returns a value for people; simple is false for what is only named by its
// type.
func shown(value ref.Val) (text string, simple bool) {
	switch value := value.(type) {
	case types.String:
		return strconv.Quote(clipText(string(value))), true
	case types.Bool, types.Int, types.Uint, types.Double:
		return fmt.Sprint(value.Value()), true
	case types.Null:
		return "null", true
	case *types.Err, *types.Unknown:
		return "", false
	case traits.Lister:
		return shownList(value)
	}
	return "a " + value.Type().TypeName(), false
}

// shownList shows a list of texts, such as user.groups.
func shownList(list traits.Lister) (text string, simple bool) {
	var items []string
	for it := list.Iterator(); it.HasNext() == types.True; {
		item, ok := it.Next().(types.String)
		if !ok {
			return "a list", false
		}
		items = append(items, strconv.Quote(string(item)))
	}
	return clipText("[" + strings.Join(items, ", ") + "]"), true
}

func clipText(s string) string {
	if len(s) <= maxShownValue {
		return s
	}
	return strings.ToValidUTF8(s[:maxShownValue], "") + "…"
}

package engine

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// translate returns the mistakes that CEL found in text, in our words. parsed is
// nil if it could not be parsed. Of the syntax errors it has the first: what the
// parser says after one is seldom true.
func translate(env *cel.Env, text *source.Text, parsed *celast.AST, issues *cel.Issues) source.Errors {
	var errs source.Errors
	parseError := false
	for _, e := range issues.Errors() {
		if strings.HasPrefix(e.Message, syntaxPrefix) {
			if parseError {
				continue
			}
			parseError = true
		}
		if m := undeclaredMessage.FindStringSubmatch(e.Message); m != nil && itemOfMisspelled(env, parsed, m[1], e.ExprID) {
			continue
		}
		offset := text.Offset(e.Location.Line(), e.Location.Column()+1)
		errs = append(errs, text.Error(offset, "%s", explain(env, parsed, e)))
	}
	return errs
}

// syntaxPrefix is what the messages of CEL's parser begin with.
const syntaxPrefix = "Syntax error: "

var (
	undeclaredMessage = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	overloadMessage   = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '(.*)'$`)
	selectMessage     = regexp.MustCompile(`^type '([^']*)' does not support field selection`)

	// ANTLR's messages list every token that would have been right.
	unexpectedMessage = regexp.MustCompile(`(?s)^Syntax error: (?:mismatched|extraneous) input '(.*)' expecting .*$`)
	noChoiceMessage   = regexp.MustCompile(`(?s)^Syntax error: no viable alternative at input '(.*)'$`)
	tokenMessage      = regexp.MustCompile(`(?s)^Syntax error: token recognition error at: '(.*)'$`)
	missingMessage    = regexp.MustCompile(`(?s)^Syntax error: missing (.*) at '(.*)'$`)
)

// explain returns the message of e in our words.
func explain(env *cel.Env, parsed *celast.AST, e *common.Error) string {
	if m := undeclaredMessage.FindStringSubmatch(e.Message); m != nil {
		if usage := macroUsage[m[1]]; usage != "" && isCall(parsed, m[1]) {
			return fmt.Sprintf("%s is not used like this: write %s", m[1], usage)
		}
		return undeclared(env, parsed, m[1], selectedFrom(parsed, e.ExprID))
	}
	switch e.Message {
	case "invalid argument to has() macro":
		return "has() wants a field, such as " + macroUsage["has"]
	case "argument must be a simple name":
		return "the first argument must be a name for the item, as in " + macroUsage["exists"]
	case "invalid matches argument":
		if pattern, ok := literal(parsed, e.ExprID); ok {
			return badPattern(pattern)
		}
	}
	if m := overloadMessage.FindStringSubmatch(e.Message); m != nil {
		return fmt.Sprintf("cannot use %s with %s", operatorName(m[1]), m[2])
	}
	if selectMessage.MatchString(e.Message) {
		if group, field := selection(parsed, e.ExprID); hasFields(env, group) {
			return unknownField(env, group, field)
		}
	}
	for _, re := range []*regexp.Regexp{unexpectedMessage, noChoiceMessage, tokenMessage} {
		if m := re.FindStringSubmatch(e.Message); m != nil {
			return "syntax error: unexpected " + tokenName(m[1]) + tokenHint(m[1])
		}
	}
	if m := missingMessage.FindStringSubmatch(e.Message); m != nil {
		return fmt.Sprintf("syntax error: %s is missing before %s", m[1], tokenName(m[2]))
	}
	return lowerFirst(e.Message)
}

func tokenName(token string) string {
	if token == "<EOF>" {
		return "end of the expression"
	}
	return source.Quote(strings.TrimSpace(token))
}

// tokenHints say what CEL has for what other languages write.
var tokenHints = map[string]string{
	"=":   "==",
	"===": "==",
	"&":   "&&",
	"|":   "||",
	"and": "&&",
	"or":  "||",
	"not": "!",
	"is":  "==",
	"‘":   "'",
	"’":   "'",
	"“":   `"`,
	"”":   `"`,
}

func tokenHint(token string) string {
	token = strings.TrimSpace(token)
	if hint := tokenHints[token]; hint != "" {
		return "; CEL writes " + hint
	}
	if strings.HasPrefix(token, "'") || strings.HasPrefix(token, `"`) {
		if len(token) == 1 || token[len(token)-1] != token[0] {
			return `; the text is not closed, or has an escape that CEL does not know; in r'…' a backslash stands for itself`
		}
	}
	return ""
}

// isCall reports whether parsed calls the function name.
func isCall(parsed *celast.AST, name string) bool {
	return findExpr(parsed, func(e celast.Expr) bool {
		return e.Kind() == celast.CallKind && e.AsCall().FunctionName() == name
	}) != nil
}

// literal returns the text that is written out as the expression id.
func literal(parsed *celast.AST, id int64) (text string, ok bool) {
	e := findExpr(parsed, func(e celast.Expr) bool { return e.ID() == id && e.Kind() == celast.LiteralKind })
	if e == nil {
		return "", false
	}
	text, ok = e.AsLiteral().Value().(string)
	return text, ok
}

// badPattern says why pattern is no regular expression.
func badPattern(pattern string) string {
	_, err := regexp.Compile(pattern)
	var syntaxError *syntax.Error
	if !errors.As(err, &syntaxError) {
		return fmt.Sprintf("cannot use the regular expression %s: %v", source.Quote(pattern), err)
	}
	return fmt.Sprintf("the regular expression %s is wrong: %v: %s", source.Quote(pattern), syntaxError.Code, source.Quote(syntaxError.Expr))
}

// badPatterns returns the mistakes in regular expressions that are written out and
// that CEL itself finds only when it makes a program, without their places.
func badPatterns(text *source.Text, checked *celast.AST) source.Errors {
	var errs source.Errors
	celast.PreOrderVisit(checked.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		call := e.AsCall()
		switch call.FunctionName() {
		case "matches", "find", "findAll":
		default:
			return
		}
		pattern := patternOf(call)
		if pattern == nil || pattern.Kind() != celast.LiteralKind {
			return
		}
		written, ok := pattern.AsLiteral().Value().(string)
		if !ok {
			return
		}
		if _, err := regexp.Compile(written); err != nil {
			errs = append(errs, text.Error(offsetOf(text, checked, pattern), "%s", badPattern(written)))
		}
	}))
	return errs
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return strings.ToLower(string(r)) + s[size:]
}

// undeclared explains a name that is no variable and no function; field is what
// is selected from it, or "".
func undeclared(env *cel.Env, parsed *celast.AST, name, field string) string {
	if hasFields(env, name) {
		return unknownField(env, name, field)
	}
	if isConstant(env) && isVariable(name) {
		return fmt.Sprintf("cannot use %q here: the value must be constant, since it is for all requests and known before any; "+
			"write the value itself, and say in match which requests it is for", name)
	}
	if name == upstreamType.TypeName() {
		return `undeclared reference to "upstream": only a route knows it`
	}
	var candidates []string
	for _, v := range env.Variables() {
		root, _, _ := strings.Cut(v.Name(), ".")
		candidates = append(candidates, root)
	}
	for function := range env.Functions() {
		if !strings.ContainsAny(function, "_@!-?[") { // the names that operators have inside
			candidates = append(candidates, function)
		}
	}
	call := isCall(parsed, name)
	if isConstant(env) && !call {
		return fmt.Sprintf("undeclared reference to %q; if it is a text, write it in quotes: '%s'", name, source.Cut(name))
	}
	if call {
		candidates = append(candidates, macros...)
	}
	if best := source.Closest(name, candidates); best != "" {
		return fmt.Sprintf("undeclared reference to %q; did you mean %q?", name, best)
	}
	return fmt.Sprintf("undeclared reference to %q%s", name, knownVariables(env, parsed, name))
}

// knownVariables ends the message about name, when it is used as a variable.
func knownVariables(env *cel.Env, parsed *celast.AST, name string) string {
	if isConstant(env) || isCall(parsed, name) {
		return ""
	}
	var roots []string
	for _, v := range env.Variables() {
		root, _, _ := strings.Cut(v.Name(), ".")
		if !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return "; known are " + strings.Join(roots, ", ")
}

// isConstant reports whether env is that of constant expressions.
func isConstant(env *cel.Env) bool {
	return !slices.ContainsFunc(env.Variables(), func(v *decls.VariableDecl) bool { return v.Name() == requestVariables[0].name })
}

// isVariable reports whether name is a variable of requests or upstreams, or what
// stands before the first dot of one.
func isVariable(name string) bool {
	is := func(v variable) bool { return v.name == name || strings.HasPrefix(v.name, name+".") }
	return slices.ContainsFunc(requestVariables, is) || slices.ContainsFunc(upstreamVariables, is)
}

// hasFields reports whether name stands before a dot in the name of a variable.
func hasFields(env *cel.Env, name string) bool { return len(fieldsOf(env, name)) > 0 }

func fieldsOf(env *cel.Env, name string) []string {
	var fields []string
	for _, v := range env.Variables() {
		if field, ok := strings.CutPrefix(v.Name(), name+"."); ok && !strings.Contains(field, ".") {
			fields = append(fields, field)
		}
	}
	return fields
}

// unknownField explains a use of group, a name with fields, that names none of
// them.
func unknownField(env *cel.Env, group, field string) string {
	fields := fieldsOf(env, group)
	switch {
	case field == "":
		return fmt.Sprintf("%q is not a value of its own; name one of its fields: %s", group, strings.Join(fields, ", "))
	case slices.Contains(fields, field):
		return fmt.Sprintf("has(%s.%s) is not needed: it is always there", group, field)
	}
	if best := source.Closest(field, fields); best != "" {
		return fmt.Sprintf("undeclared reference to %q; did you mean %q?", group+"."+field, group+"."+best)
	}
	return fmt.Sprintf("undeclared reference to %q; %s has %s", group+"."+field, group, strings.Join(fields, ", "))
}

// selectedFrom returns the field that is selected from the expression id, or "".
func selectedFrom(parsed *celast.AST, id int64) string {
	e := findSelect(parsed, func(e celast.Expr) bool { return e.AsSelect().Operand().ID() == id })
	if e == nil {
		return ""
	}
	return e.AsSelect().FieldName()
}

// selection returns what the expression id, a selection, selects and from what;
// group is "" unless it is a dotted name.
func selection(parsed *celast.AST, id int64) (group, field string) {
	e := findSelect(parsed, func(e celast.Expr) bool { return e.ID() == id })
	if e == nil {
		return "", ""
	}
	return dottedName(e.AsSelect().Operand()), e.AsSelect().FieldName()
}

// dottedName returns e as written if it is names and dots only, else "".
func dottedName(e celast.Expr) string {
	suffix := ""
	for e.Kind() == celast.SelectKind {
		suffix = "." + e.AsSelect().FieldName() + suffix
		e = e.AsSelect().Operand()
	}
	if e.Kind() != celast.IdentKind {
		return ""
	}
	return e.AsIdent() + suffix
}

func findSelect(parsed *celast.AST, is func(celast.Expr) bool) celast.Expr {
	return findExpr(parsed, func(e celast.Expr) bool { return e.Kind() == celast.SelectKind && is(e) })
}

func findExpr(parsed *celast.AST, is func(celast.Expr) bool) celast.Expr {
	if parsed == nil {
		return nil
	}
	var found celast.Expr
	celast.PreOrderVisit(parsed.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if is(e) {
			found = e
		}
	}))
	return found
}

package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// celWarner finds comparisons that are always false, or that do not compare what they
// seem to.
type celWarner struct {
	text     *source.Text
	checked  *celast.AST
	warnings source.Errors
}

// warningsOf looks at the expression text, which is checked, and is certain to be false
// where p, its pins, do not hold.
func warningsOf(role role, text *source.Text, checked *celast.AST, p pins) source.Errors {
	w := &celWarner{text: text, checked: checked}
	celast.PreOrderVisit(checked.Expr(), celast.NewExprVisitor(w.visit))
	for _, pin := range p {
		if len(pin.values) == 0 && role.name == roleMatch.name && len(w.warnings) == 0 {
			w.warnings = append(w.warnings, text.Error(firstToken(text.Code), "the match is never true: %s cannot be two things at once; || is or", requestVariables[pin.variable].name))
			break
		}
	}
	return w.warnings
}

func (w *celWarner) warn(e celast.Expr, format string, args ...any) {
	w.warnings = append(w.warnings, w.text.Error(offsetOf(w.text, w.checked, e), format, args...))
}

func (w *celWarner) visit(e celast.Expr) {
	if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
		return
	}
	a, b := e.AsCall().Args()[0], e.AsCall().Args()[1]
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals:
		w.equal(a, b)
		w.equal(b, a)
	case operators.In:
		if b.Kind() == celast.ListKind {
			for _, item := range b.AsList().Elements() {
				w.equal(a, item)
			}
		}
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		w.order(a, b)
		w.order(b, a)
	}
}

// name returns which variable e is; "" for none.
func (w *celWarner) name(e celast.Expr) string {
	if reference, ok := w.checked.ReferenceMap()[e.ID()]; ok {
		return reference.Name
	}
	return ""
}

func stringLiteral(e celast.Expr) (s string, ok bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// equal warns of a text that the variable never is.
func (w *celWarner) equal(variable, literal celast.Expr) {
	value, ok := stringLiteral(literal)
	if !ok {
		return
	}
	name := w.name(variable)
	if why := never(name, value); why != "" {
		w.warn(literal, "%s is never %s: %s", name, source.Quote(value), why)
	}
}

// verbs are those of requests for resources; of others, the verb is the method in lower
// case.
var (
	verbs       = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
	otherVerbs  = []string{"connect", "head", "options", "post", "put", "trace"}
	methodVerbs = map[string]string{"post": "create", "put": "update"}
)

// never says why the variable name of the request is not value, whatever a client of
// Kubernetes sends; "" where it may be.
func never(name, value string) string {
	hasUpper := strings.ToLower(value) != value
	switch name {
	case "request.verb":
		if slices.Contains(verbs, value) || slices.Contains(otherVerbs, value) {
			return ""
		}
		if verb := methodVerbs[strings.ToLower(value)]; verb != "" {
			return fmt.Sprintf("the verb of such a request is %q", verb)
		}
		return "there is no such verb" + source.Suggest(value, verbs)
	case "request.method":
		if strings.ToUpper(value) != value {
			return fmt.Sprintf("a method is in upper case; the verb is request.verb, the method %q", strings.ToUpper(value))
		}
	case "request.group":
		if group, version, found := strings.Cut(value, "/"); found {
			return fmt.Sprintf("a group holds no version; write request.group == %q && request.version == %q", group, version)
		}
	case "request.version":
		if group, version, found := strings.Cut(value, "/"); found {
			return fmt.Sprintf("a version holds no group; write request.group == %q && request.version == %q", group, version)
		}
	case "request.resource":
		resource, subresource, found := strings.Cut(value, "/")
		if found {
			return fmt.Sprintf("a subresource has a name of its own; write request.resource == %q && request.subresource == %q", resource, subresource)
		}
		if hasUpper {
			return "it is the lower-case plural of a path, not a kind, such as \"poddisruptionbudgets\""
		}
	}
	return ""
}

// versionLiteral matches a text that looks like a version, also at the end of a name:
// "1.31", "v1", "kubectl/v1.31.2", and no date or plain number.
var versionLiteral = regexp.MustCompile(`(^|/)(v[0-9]+|[0-9]+\.[0-9]+)(\.[0-9]+)*([-+a-z0-9.]*)$`)

// order warns of versions that are compared as texts.
func (w *celWarner) order(variable, literal celast.Expr) {
	value, ok := stringLiteral(literal)
	if !ok || !versionLiteral.MatchString(value) {
		return
	}
	hint := "name the versions that are meant in a regular expression, or compare their numbers"
	switch name := w.name(variable); name {
	case "request.userAgent":
		hint = "name the versions that are meant in a regular expression, as in request.userAgent.matches('/v1[.](2[0-9]|30)[.]')"
	case "cluster.minVersion", "cluster.maxVersion":
		hint = fmt.Sprintf("compare versions of three numbers, as in semver(%s).isLessThan(semver('1.32.0'))", name)
	case "upstream.version", "upstream.emulation":
		hint = fmt.Sprintf("compare %s.minor, a number", name)
	case "request.version":
		hint = "name the versions that are meant, as in request.version in ['v1beta1', 'v1beta2']"
	}
	w.warn(literal, "this compares texts, letter by letter: \"v1.9\" is greater than \"v1.10\"; %s", hint)
}

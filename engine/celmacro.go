package engine

import (
	"slices"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// macroUsage shows how the functions that look into their arguments are written.
var macroUsage = map[string]string{
	"has":        "has(object.spec)",
	"all":        "list.all(x, x > 0)",
	"exists":     "list.exists(x, x > 0)",
	"exists_one": "list.exists_one(x, x > 0)",
	"map":        "list.map(x, x + 1)",
	"filter":     "list.filter(x, x > 0)",
}

// macros are all functions that look into their arguments.
var macros = []string{
	"all", "exists", "existsOne", "exists_one", "filter", "has", "map", "optFlatMap", "optMap", "transformList", "transformMap",
	"transformMapEntry",
}

// itemOfMisspelled reports whether name, used as the expression id, is what a macro whose
// name is misspelled calls an item: the one mistake is then the macro's name.
func itemOfMisspelled(env *cel.Env, parsed *celast.AST, name string, id int64) bool {
	return findExpr(parsed, func(e celast.Expr) bool {
		if e.Kind() != celast.CallKind || !e.AsCall().IsMemberFunction() || len(e.AsCall().Args()) < 2 {
			return false
		}
		call := e.AsCall()
		items, inside := call.Args()[:len(call.Args())-1], false
		isItem := func(arg celast.Expr) bool { return arg.Kind() == celast.IdentKind && arg.AsIdent() == name }
		if !slices.ContainsFunc(items, isItem) || env.Functions()[call.FunctionName()] != nil || source.Closest(call.FunctionName(), macros) == "" {
			return false
		}
		celast.PreOrderVisit(e, celast.NewExprVisitor(func(part celast.Expr) { inside = inside || part.ID() == id }))
		return inside
	}) != nil
}

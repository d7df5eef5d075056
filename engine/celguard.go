package engine

import (
	"fmt"
	"math"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Limits of the functions whose work, or result, is the product of the sizes of
// two arguments. Both can come from one body of a few MiB, so a single call could
// take minutes or all memory; CEL counts its cost only when it has returned.
const (
	// maxText is how long a text replace and join may make, in bytes: more than a
	// whole body.
	maxText = 4 << 20

	// maxSearch bounds indexOf and lastIndexOf: the lengths of both texts
	// multiplied. In the worst case they take some 0.2 s.
	maxSearch = 1 << 28

	// maxCompared is how many pairs of values distinct and the functions of sets
	// compare: some milliseconds for plain values.
	maxCompared = 250_000

	// maxPattern is how long a regular expression may be that is worked out for a
	// request, in bytes, and maxPatternProgram how many instructions its program may
	// have: a match takes at most that many steps for each byte of the text.
	maxPattern        = 1 << 10
	maxPatternProgram = 1_000
)

// guards check the arguments of such functions before they are called.
var guards = map[string]func(args []ref.Val) error{
	"replace":         guardReplace,
	"join":            guardJoin,
	"indexOf":         guardSearch,
	"lastIndexOf":     guardSearch,
	"distinct":        guardDistinct,
	"find":            guardPattern,
	"findAll":         guardPattern,
	"sets.contains":   guardSets,
	"sets.intersects": guardSets,
	"sets.equivalent": guardSets,
}

// guardedFunctions declares the functions of env that have a guard anew, with it.
func guardedFunctions(env *cel.Env) ([]cel.EnvOption, error) {
	var options []cel.EnvOption
	for name, guard := range guards {
		function, ok := env.Functions()[name]
		if !ok {
			return nil, fmt.Errorf("there is no function %s to guard", name)
		}
		bindings, err := function.Bindings()
		if err != nil {
			return nil, err
		}
		calls := map[string]*functions.Overload{}
		for _, binding := range bindings {
			calls[binding.Operator] = binding
		}
		var overloads []cel.FunctionOpt
		for _, o := range function.OverloadDecls() {
			declare := cel.Overload
			if o.IsMemberFunction() {
				declare = cel.MemberOverload
			}
			overloads = append(overloads, declare(o.ID(), o.ArgTypes(), o.ResultType(), guarded(guard, calls[o.ID()])))
		}
		options = append(options, cel.Function(name, overloads...))
	}
	return options, nil
}

// guarded binds call, if guard lets its arguments pass.
func guarded(guard func(args []ref.Val) error, call *functions.Overload) cel.OverloadOpt {
	return cel.FunctionBinding(func(args ...ref.Val) ref.Val {
		if err := guard(args); err != nil {
			return types.WrapErr(err)
		}
		switch {
		case len(args) == 1 && call.Unary != nil:
			return call.Unary(args[0])
		case len(args) == 2 && call.Binary != nil:
			return call.Binary(args[0], args[1])
		}
		return call.Function(args...)
	})
}

// guardReplace takes text.replace(old, new) and text.replace(old, new, limit).
func guardReplace(args []ref.Val) error {
	text, ok1 := args[0].(types.String)
	old, ok2 := args[1].(types.String)
	replacement, ok3 := args[2].(types.String)
	if !ok1 || !ok2 || !ok3 {
		return nil // no overload takes them
	}
	count := strings.Count(string(text), string(old))
	if len(args) > 3 {
		if limit, ok := args[3].(types.Int); ok && limit >= 0 {
			count = int(min(int64(count), int64(limit)))
		}
	}
	return checkText("replace", float64(len(text))+float64(count)*float64(len(replacement)-len(old)))
}

// guardJoin takes list.join() and list.join(separator).
func guardJoin(args []ref.Val) error {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	size := 0.0
	if len(args) > 1 {
		if separator, ok := args[1].(types.String); ok {
			size = float64(sizeOf(list)) * float64(len(separator))
		}
	}
	for it := list.Iterator(); it.HasNext() == types.True && size <= maxText; {
		if item, ok := it.Next().(types.String); ok {
			size += float64(len(item))
		}
	}
	return checkText("join", size)
}

// checkText refuses a text of size bytes, which is a float so that no product
// overflows.
func checkText(function string, size float64) error {
	if size > maxText {
		return fmt.Errorf("%s would make a text of more than %d MiB", function, maxText>>20)
	}
	return nil
}

// guardSearch takes text.indexOf(part) and the like. Those of lists go through
// their list once.
func guardSearch(args []ref.Val) error {
	text, ok1 := args[0].(types.String)
	part, ok2 := args[1].(types.String)
	if ok1 && ok2 && float64(len(text))*float64(len(part)) > maxSearch {
		return fmt.Errorf("a text of %d bytes is too long to search for one of %d", len(text), len(part))
	}
	return nil
}

// guardDistinct takes list.distinct().
func guardDistinct(args []ref.Val) error { return checkCompared(args[0], args[0]) }

// guardSets takes sets.contains(list, list) and the like.
func guardSets(args []ref.Val) error { return checkCompared(args[0], args[1]) }

// checkCompared refuses lists that are too long to compare each value of one with
// each of the other.
func checkCompared(a, b ref.Val) error {
	if m, n := sizeOf(a), sizeOf(b); float64(m)*float64(n) > maxCompared {
		return fmt.Errorf("lists of %d and %d values are too long to compare each with each", m, n)
	}
	return nil
}

// sizeOf returns how many values a list has.
func sizeOf(v ref.Val) int {
	sizer, ok := v.(traits.Sizer)
	if !ok {
		return 0
	}
	size, ok := sizer.Size().(types.Int)
	if !ok {
		return math.MaxInt
	}
	return int(size)
}

// guardPattern bounds the program of a regular expression that may come from a
// client. cel.RegexProgramSizeLimit would, but panics on counted repetitions: it
// compiles what regexp/syntax wants simplified first.
func guardPattern(args []ref.Val) error {
	pattern, ok := args[1].(types.String)
	if !ok {
		return nil // the function itself says what is wrong
	}
	if len(pattern) > maxPattern {
		return fmt.Errorf("the regular expression has %d bytes, more than %d", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(string(pattern), syntax.Perl)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return err
	}
	if len(program.Inst) > maxPatternProgram {
		return fmt.Errorf("the regular expression is too large: its program has %d steps, more than %d", len(program.Inst), maxPatternProgram)
	}
	return nil
}

package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// A deadline does not interrupt a single operation of gojq. So the operations
// that can make much out of little, or take much longer than their input is
// long, are either refused (jqallow.go) or get their operands through one of
// these guards, which pass a value on or fail. The checker puts them in; programs
// cannot call them by name.
const (
	guardIndex  = "_guard_index"  // of an array index that is computed
	guardPath   = "_guard_path"   // of a path that is computed
	guardFactor = "_guard_factor" // of a factor: "x" * 1e9 is a string of a gigabyte
	guardSmall  = "_guard_small"  // of what is compared each with each
	guardSorted = "_guard_sorted" // of what is sorted
)

func guardOptions() []gojq.CompilerOption {
	guard := func(name string, check func(v any) error) gojq.CompilerOption {
		return gojq.WithFunction(name, 0, 0, func(v any, _ []any) any {
			if err := check(v); err != nil {
				return err
			}
			return v
		})
	}
	return []gojq.CompilerOption{
		guard(guardIndex, checkIndex),
		guard(guardPath, checkPath),
		guard(guardFactor, checkFactor),
		guard(guardSmall, checkSize(MaxJQCompared, "to compare each with each")),
		guard(guardSorted, checkSize(MaxJQSorted, "to sort")),
		gojq.WithFunction("tointeger", 0, 0, func(v any, _ []any) any { return toInteger(v) }),
	}
}

func checkIndex(v any) error {
	switch v := v.(type) {
	case []any:
		return errors.New("an array is no index")
	case int, float64, *big.Int, json.Number:
		if f, ok := gojq.ToFloat64(v); !ok || f > MaxJQIndex {
			return fmt.Errorf("array index %s is over the limit of %d", source.Cut(fmt.Sprint(v)), MaxJQIndex)
		}
	}
	return nil
}

func checkPath(v any) error {
	elements, ok := v.([]any)
	if !ok {
		return nil // gojq will say so
	}
	for _, e := range elements {
		if err := checkIndex(e); err != nil {
			return err
		}
	}
	return nil
}

func checkFactor(v any) error {
	switch v := v.(type) {
	case string:
		return errors.New("a string cannot be multiplied here")
	case json.Number:
		if len(v) > MaxJQDigits {
			return fmt.Errorf("a number of %d digits is over the limit of %d", len(v), MaxJQDigits)
		}
	case *big.Int:
		// A decimal digit is at least three bits.
		if v.BitLen() > 3*MaxJQDigits {
			return fmt.Errorf("a number of %d bits is over the limit of %d", v.BitLen(), 3*MaxJQDigits)
		}
	}
	return nil
}

func checkSize(limit int, purpose string) func(v any) error {
	return func(v any) error {
		if countValues(v, 0, limit) > limit {
			return fmt.Errorf("more than %d values %s", limit, purpose)
		}
		return nil
	}
}

// countValues adds how many values v consists of to n, and stops over limit.
func countValues(v any, n, limit int) int {
	n++
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if n = countValues(item, n, limit); n > limit {
				return n
			}
		}
	case map[string]any:
		for _, item := range v {
			if n = countValues(item, n, limit); n > limit {
				return n
			}
		}
	}
	return n
}

// toInteger is the jq function tointeger: what appendExactInteger makes of a
// number or string.
func toInteger(v any) any {
	switch v := v.(type) {
	case int:
		return v
	case string, float64, *big.Int, json.Number:
		e := encoder{limit: MaxJQDigits}
		if err := e.value(v, 0); err != nil {
			break
		}
		if out, ok := appendExactInteger(nil, e.dst); ok {
			return json.Number(out)
		}
	}
	return fmt.Errorf("cannot make an integer of %s", gojq.Preview(v))
}

// preludeText defines the helpers for what conversions do, for programs to use.
// A path argument is an expression such as .spec.a.b that leads to one place.
const preludeText = `
def _present($p):
  (try getpath($p[:-1]) catch null) as $parent
  | ($parent | type) == "object" and ($parent | has($p[-1]));

# move(p; q) takes the value at p to q; without one nothing happens.
def move(p; q):
  (try path(p) catch null) as $p
  | if $p != null and _present($p)
    then getpath($p) as $v | delpaths([$p]) | setpath(path(q); $v)
    else . end;

# rename(p; q) is move under the name that fits a change of the last name only.
def rename(p; q): move(p; q);

# mapvalue(p; from; to) makes the value at p to if it is from.
def mapvalue(p; $from; $to):
  (try path(p) catch null) as $p
  | if $p != null and _present($p) and getpath($p) == $from
    then setpath($p; $to)
    else . end;

# ensure(p; v) makes the value at p v if there is none.
def ensure(p; $v): if (try p catch null) == null then setpath(path(p); $v) else . end;

# stash(p; key) takes the value at p into the annotation key, as JSON: a place for
# what the other version cannot hold.
def stash(p; $key):
  (try path(p) catch null) as $p
  | if $p != null and _present($p)
    then getpath($p) as $v | delpaths([$p]) | .metadata.annotations[$key] = ($v | tojson)
    else . end;

# unstash(p; key) is the way back.
def unstash(p; $key):
  (.metadata.annotations[$key]?) as $v
  | if $v == null then . else
      setpath(path(p); $v | fromjson)
      | del(.metadata.annotations[$key])
      | if .metadata.annotations == {} then del(.metadata.annotations) else . end
    end;
.`

var parsePrelude = sync.OnceValues(func() (*gojq.Query, error) { return gojq.Parse(preludeText) })

// prelude returns the definitions of preludeText.
func prelude() []*gojq.FuncDef {
	query, err := parsePrelude()
	if err != nil {
		panic(err) // the text is a constant
	}
	return append([]*gojq.FuncDef(nil), query.FuncDefs...)
}

// preludeFuncs are the helpers that programs may use: name/arity.
var preludeFuncs = []string{
	"move/2", "rename/2", "mapvalue/3", "ensure/2", "stash/2", "unstash/2", "tointeger/0",
}

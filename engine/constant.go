package engine

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// EvalConstant evaluates an expression that uses no variable, such as the map of
// a convert.cel. The result is nil, bool, int64, uint64, float64, string, []any
// or map[string]any. The error is the first mistake of the expression.
func EvalConstant(text *source.Text) (any, *source.Error) {
	envs, err := celEnvironments()
	if err != nil {
		return nil, text.Error(0, "cannot evaluate: %v", err)
	}
	checked, errs := check(envs.constant, text)
	if errs != nil {
		errs.Sort()
		return nil, errs[0]
	}
	first := firstToken(text.Code)
	program, err := newProgram(envs.constant, checked, MaxExpressionCost)
	if err != nil {
		return nil, text.Error(first, "cannot use the expression: %v", err)
	}
	out, _, err := program.Eval(map[string]any{})
	if err != nil {
		return nil, text.Error(first, "cannot evaluate the expression: %v", err)
	}
	value, err := goValue(out)
	if err != nil {
		return nil, text.Error(first, "cannot use the value: %v", err)
	}
	return value, nil
}

// goValue returns v as a Go value. Its recursion is as deep as the expression
// nests, which CEL's parser bounds.
func goValue(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		return float64(v), nil
	case types.String:
		return string(v), nil
	case traits.Mapper:
		return goMap(v)
	case traits.Lister:
		return goList(v)
	}
	return nil, fmt.Errorf("a %s has no JSON form", v.Type().TypeName())
}

func goMap(m traits.Mapper) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("the keys of a map must be strings, not %s", key.Type().TypeName())
		}
		value, err := goValue(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[string(name)] = value
	}
	return out, nil
}

func goList(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		value, err := goValue(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

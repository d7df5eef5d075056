package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// program is a compiled jq program from object to object. It is safe for
// concurrent use.
type program struct {
	pos  source.Pos
	code *gojq.Code
}

// programVariables are what a program knows beside its input.
var programVariables = []string{"$request", "$from", "$to"}

// compileProgram compiles the program text with the helpers of the prelude, if
// everything it uses can be bounded.
func compileProgram(text *source.Text) (*program, source.Errors) {
	if len(text.Code) > MaxJQProgramBytes {
		return nil, source.Errors{{
			Pos: text.Start,
			Msg: fmt.Sprintf("the jq program has %d bytes; the limit is %d", len(text.Code), MaxJQProgramBytes),
		}}
	}
	query, err := gojq.Parse(text.Code)
	if err != nil {
		return nil, source.Errors{parseError(text, err)}
	}
	check := newJQChecker(text)
	check.program(query)
	if len(check.errs) > 0 {
		return nil, check.errs
	}
	query.FuncDefs = append(prelude(), query.FuncDefs...)
	code, err := gojq.Compile(query, append(guardOptions(), gojq.WithVariables(programVariables))...)
	if err != nil {
		return nil, source.Errors{check.compileError(err)}
	}
	return &program{text.Start, code}, nil
}

// parseError says where and why text is no jq program.
func parseError(text *source.Text, err error) *source.Error {
	var parse *gojq.ParseError
	if !errors.As(err, &parse) {
		return text.Error(0, "cannot parse the jq program: %v", err)
	}
	if parse.Token == "" {
		return text.Error(len(text.Code), "unexpected end of the jq program")
	}
	return text.Error(parse.Offset-len(parse.Token), "cannot parse the jq program: %v", err)
}

// run runs the program on the JSON object src and returns the object it makes.
func (p *program) run(src []byte, vars []any, limits Limits) (out []byte, err error) {
	defer func() {
		// gojq panics on values it does not know; none of ours should be.
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("the program failed: %v", r)
		}
	}()
	decoder := json.NewDecoder(bytes.NewReader(src))
	decoder.UseNumber() // every digit counts
	var input any
	if err := decoder.Decode(&input); err != nil {
		return nil, fmt.Errorf("cannot decode the object for the program: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limits.JQTime)
	defer cancel()
	result, err := onlyResult(p.code.RunWithContext(ctx, input, vars...))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("the program took longer than %v: %w", limits.JQTime, context.DeadlineExceeded)
	}
	if err != nil {
		return nil, err
	}
	object, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the program returned %s, wanted one object", jqType(result))
	}
	e := encoder{limit: limits.JQOutputBytes}
	if err := e.value(object, 0); err != nil {
		return nil, fmt.Errorf("cannot encode what the program returned: %w", err)
	}
	return e.dst, nil
}

// onlyResult takes the one value that results has to have.
func onlyResult(results gojq.Iter) (any, error) {
	result, ok := results.Next()
	if !ok {
		return nil, errors.New("the program returned nothing, wanted one object")
	}
	if err, failed := result.(error); failed {
		return nil, fmt.Errorf("the program failed: %w", err)
	}
	switch second, ok := results.Next(); {
	case !ok:
		return result, nil
	default:
		if err, failed := second.(error); failed {
			return nil, fmt.Errorf("the program failed: %w", err)
		}
		return nil, errors.New("the program returned more than one value, wanted one object")
	}
}

// jqType names the type of a value for a message.
func jqType(v any) string {
	switch name := gojq.TypeOf(v); name {
	case "null":
		return name
	case "array", "object":
		return "an " + name
	default:
		return "a " + name
	}
}

// jqValue makes v one of the types that gojq knows. What it cannot is null.
func jqValue(v any) any {
	switch v := v.(type) {
	case nil, bool, int, float64, string, json.Number:
		return v
	case int64:
		return int(v)
	case int32:
		return int(v)
	case []string:
		return jqArray(v)
	case []any:
		return jqArray(v)
	case map[string]string:
		return jqObject(v)
	case map[string][]string:
		return jqObject(v)
	case map[string]any:
		return jqObject(v)
	default:
		return nil
	}
}

func jqArray[T any](v []T) []any {
	out := make([]any, len(v))
	for i, item := range v {
		out[i] = jqValue(item)
	}
	return out
}

func jqObject[T any](v map[string]T) map[string]any {
	out := make(map[string]any, len(v))
	for key, item := range v {
		out[key] = jqValue(item)
	}
	return out
}

package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// jqCode is a program, or a part of one, for gojq.
type jqCode struct {
	code    *gojq.Code
	needs   *need // what of the object it can see or change
	touches touched
	bounded bool // it ends without a deadline
}

// programVariables are what a program knows beside its input.
var programVariables = []string{"$request", "$from", "$to"}

// parseProgram parses the program text.
func parseProgram(text *source.Text) (*gojq.Query, source.Errors) {
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
	return query, nil
}

// compileJQ compiles query, which is of the program text or a part of it. It puts
// guards into query.
func compileJQ(text *source.Text, query *gojq.Query) (*jqCode, source.Errors) {
	needs, bounded := needsOf(query)
	code, errs := newJQChecker(text).compile(query)
	if len(errs) > 0 {
		return nil, errs
	}
	return &jqCode{code: code, needs: needs, touches: touchedBy(needs), bounded: bounded}, nil
}

// plainQuery parses code, which has been parsed before, again, without the guards
// that the check puts in.
func plainQuery(code string) *gojq.Query {
	query, err := gojq.Parse(code)
	if err != nil {
		panic(err) // it was parsed before
	}
	return query
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
	return text.Error(parse.Offset-len(parse.Token), "cannot parse the jq program: %v%s", err, jqHints[parse.Token])
}

// jqHints say what jq has for what other languages write.
var jqHints = map[string]string{
	"&": "; jq writes and",
	"!": "; jq writes (…) | not",
	"'": "; texts stand in double quotes",
}

// errProgram is that a program raised an error.
var errProgram = errors.New("the program failed")

// errPanicked is that gojq itself failed. It does on values that it does not know,
// and on some programs, such as .a |= ((.b // .c) | "x"), for which it makes wrong
// code.
var errPanicked = errors.New("gojq panicked")

// run runs the program on input and returns the object it makes.
func (c *jqCode) run(input any, vars []any, limits Limits) (map[string]any, error) {
	var result any
	err := c.guarded(limits, func(results gojq.Iter) (err error) {
		result, err = onlyResult(results)
		return err
	}, input, vars)
	if err != nil {
		return nil, err
	}
	object, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the program returned %s, wanted one object", jqType(result))
	}
	return object, nil
}

// guarded hands take the results of the program on input, and survives whatever
// that does. A program that runs out of time gets it once more: on a machine that has
// too much to do, the time may have been others'.
func (c *jqCode) guarded(limits Limits, take func(gojq.Iter) error, input any, vars []any) error {
	err := c.attempt(limits, take, input, vars)
	if errors.Is(err, context.DeadlineExceeded) {
		err = c.attempt(limits, take, input, vars)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the program took longer than %v: %w", limits.JQTime, context.DeadlineExceeded)
	}
	return err
}

// attempt is guarded with the time that a program has once.
func (c *jqCode) attempt(limits Limits, take func(gojq.Iter) error, input any, vars []any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %w: %v", errProgram, errPanicked, r)
		}
	}()
	ctx := context.Background()
	if !c.bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limits.JQTime)
		defer cancel()
	}
	return take(c.code.RunWithContext(ctx, input, vars...))
}

// onlyResult takes the one value that results has to have.
func onlyResult(results gojq.Iter) (any, error) {
	result, ok := results.Next()
	if !ok {
		return nil, errors.New("the program returned nothing, wanted one object")
	}
	if err, failed := result.(error); failed {
		return nil, fmt.Errorf("%w: %w", errProgram, err)
	}
	switch second, ok := results.Next(); {
	case !ok:
		return result, nil
	default:
		if err, failed := second.(error); failed {
			return nil, fmt.Errorf("%w: %w", errProgram, err)
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

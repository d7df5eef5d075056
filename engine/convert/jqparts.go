package convert

import (
	"context"
	"errors"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// program is a compiled jq program from object to object. It is safe for
// concurrent use.
type program struct {
	whole  *jqCode
	parts  *jqParts // the faster way, or nil
	stages *jqStages

	metadata *program // the part for metadata-only objects, or nil
	deletes  []path   // what it drops, as far as that is known
	wording  wording
}

// isPlanned reports whether gojq has no part in the program as long as all goes
// well.
func (p *program) isPlanned() bool { return p.parts != nil && p.parts.middle == nil }

// jqParts is a program of which some stages are done on bytes: those at its start
// and at its end. When that is not all of them, gojq does those between. When
// anything fails, the document is put back and gojq runs the whole program.
type jqParts struct {
	first, last *plan   // nil: none
	middle      *jqCode // nil: none
	touches     touched
}

// compileProgram compiles the program text with the helpers of the prelude, if
// everything it uses can be bounded.
func compileProgram(text *source.Text) (*program, source.Errors) {
	query, errs := parseProgram(text)
	if len(errs) > 0 {
		return nil, errs
	}
	whole, errs := compileJQ(text, query)
	if len(errs) > 0 {
		return nil, errs
	}
	stages := &jqStages{text: text}
	return &program{
		whole: whole, parts: partsOf(text), stages: stages,
		metadata: metadataOf(text, stages), deletes: deletesOf(text), wording: wordingOf(text),
	}, nil
}

// partsOf divides the program text, which has been compiled before.
func partsOf(text *source.Text) *jqParts {
	if all := planOf(plainQuery(text.Code)); all != nil {
		return &jqParts{first: all, touches: all.touches}
	}
	stages := pipeStages(plainQuery(text.Code))
	start, end := 0, len(stages)
	for start < end && planOf(stages[start]) != nil {
		start++
	}
	for end > start && planOf(stages[end-1]) != nil {
		end--
	}
	if start == 0 && end == len(stages) || start == end {
		return nil
	}
	middle, errs := compileJQ(text, joined(stages[start:end]))
	if len(errs) > 0 {
		return nil // cannot be: it is a part of what was compiled
	}
	parts := &jqParts{middle: middle, touches: middle.touches}
	if start > 0 {
		parts.first = planOf(joined(stages[:start]))
		parts.touches = parts.touches.or(parts.first.touches)
	}
	if end < len(stages) {
		parts.last = planOf(joined(stages[end:]))
		parts.touches = parts.touches.or(parts.last.touches)
	}
	return parts
}

// pipeStages returns what q pipes into each other.
func pipeStages(q *gojq.Query) []*gojq.Query {
	if len(q.FuncDefs) > 0 || q.Term != nil || q.Op != gojq.OpPipe || q.Patterns != nil {
		return []*gojq.Query{q}
	}
	return append(pipeStages(q.Left), pipeStages(q.Right)...)
}

// joined is the pipe of stages.
func joined(stages []*gojq.Query) *gojq.Query {
	last := len(stages) - 1
	q := stages[last]
	for i := last - 1; i >= 0; i-- {
		q = jqPipe(stages[i], q)
	}
	return q
}

// inParts runs the program on the object the faster way. It reports false, with
// the document as it was, when that cannot be done. An error is final.
func (x *run) inParts(parts *jqParts, vars *Vars) (bool, error) {
	p := beginPlan(x)
	defer p.end()
	if parts.first != nil && !p.follow(parts.first, x.at) {
		p.undo()
		return false, nil
	}
	if parts.middle != nil {
		if err := x.interpret(parts.middle, vars); err != nil {
			p.undo()
			if errors.Is(err, context.DeadlineExceeded) {
				return false, err // it would take as long again
			}
			return false, nil
		}
	}
	if parts.last != nil && !p.follow(parts.last, x.at) {
		p.undo()
		return false, nil
	}
	return true, nil
}

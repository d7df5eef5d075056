package convert

import (
	"sort"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// maxStageBytes is how much is compiled to find where a program fails, some tens of
// milliseconds. In a program with more, errors are shown at its start.
const maxStageBytes = 256 << 10

// jqStages finds in which stage of a pipeline a program fails. gojq's errors have
// no place. But a program a | b | c fails in b when a | b is the first of its
// beginnings that fails. The beginnings are compiled when the program first fails.
type jqStages struct {
	text *source.Text

	once   sync.Once
	stages []jqStage
}

// jqStage is a beginning of a program that is a program itself.
type jqStage struct {
	start int // of its last stage
	*jqCode
}

func (s *jqStages) compile() {
	cuts := jqPipes(s.text.Code)
	if len(cuts)*len(s.text.Code) > maxStageBytes {
		return
	}
	start := 0
	for _, cut := range cuts {
		beginning := source.Text{Code: s.text.Code[:cut], Start: s.text.Start, Indent: s.text.Indent}
		query, errs := parseProgram(&beginning)
		if len(errs) > 0 {
			continue // it is not at the top: in an if, a def, before "as"
		}
		code, errs := compileJQ(&beginning, query)
		if len(errs) > 0 {
			continue
		}
		s.stages = append(s.stages, jqStage{start, code})
		start = cut + 1
	}
	s.stages = append(s.stages, jqStage{start: start})
}

// failed returns where the stage starts in which the program failed on input.
func (s *jqStages) failed(input any, vars []any, limits Limits) source.Pos {
	s.once.Do(s.compile)
	if len(s.stages) == 0 {
		return s.text.Start
	}
	last := len(s.stages) - 1 // which fails if no other does
	n := sort.Search(last, func(i int) bool { return s.stages[i].fails(input, vars, limits) })
	return s.text.At(skipBlank(s.text.Code, s.stages[n].start))
}

// fails reports whether the program raises an error, however many results it has.
func (c *jqCode) fails(input any, vars []any, limits Limits) bool {
	err := c.guarded(limits, func(results gojq.Iter) error {
		for v, ok := results.Next(); ok; v, ok = results.Next() {
			if err, failed := v.(error); failed {
				return err
			}
		}
		return nil
	}, input, vars)
	return err != nil
}

// skipBlank returns the offset of the first byte of code at or after i that is
// neither white space nor in a comment.
func skipBlank(code string, i int) int {
	for i < len(code) {
		switch {
		case isSpace(code[i]):
			i++
		case code[i] == '#':
			for i < len(code) && code[i] != '\n' {
				i++
			}
		default:
			return i
		}
	}
	return i
}

// jqPipes returns the offsets of the pipes in code that are in no brackets.
func jqPipes(code string) []int {
	l := &jqLexer{code: code, words: map[string][]int{}}
	for l.pos < len(code) {
		l.token()
	}
	return l.pipes
}

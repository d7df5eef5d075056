package convert

import (
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// unboundedFuncs are what a program may use beside allowedFuncs where an operator
// lets programs run that nobody can bound: loops, regular expressions, and what takes
// far longer than its input is long. Their time is bounded by the deadline alone,
// which gojq looks at between two operations, and their memory by what they can make
// in that time. What reads another input, the environment or the clock, or writes, is
// not among them.
var unboundedFuncs = funcSet(`
	range/1 range/2 range/3 repeat/1 while/2 until/2 recurse/1 recurse/2 combinations/0 combinations/1
	test/1 test/2 match/1 match/2 capture/1 capture/2 scan/1 scan/2 split/2 splits/1 splits/2
	sub/2 sub/3 gsub/2 gsub/3
	index/1 rindex/1 indices/1 transpose/0 ascii/0
	strftime/1 strptime/1 gmtime/0 mktime/0 dateadd/2 datesub/2 date/0
`)

// compileUnbounded compiles a program that compileProgram refuses. gojq runs it on
// the whole object.
func compileUnbounded(text *source.Text) (*program, source.Errors) {
	query, errs := parseProgram(text)
	if len(errs) > 0 {
		return nil, errs
	}
	check := newJQChecker(text)
	check.unbounded = true
	code, errs := check.compile(query)
	if len(errs) > 0 {
		return nil, errs
	}
	return &program{
		whole:  &jqCode{code: code, needs: &wholeNeed, touches: touchedBy(&wholeNeed)},
		stages: &jqStages{text: text},
	}, nil
}

package convert

import (
	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// jqResults is what can be said of the results of a program whatever its input is.
type jqResults struct {
	least, most int    // how many there are; most is at most several
	kind        string // what each of them is, in words; "" is not known
}

// several stands for two or more.
const several = 2

var (
	anyResults = jqResults{0, several, ""} // nothing is known
	noResult   = jqResults{0, 0, ""}
	oneResult  = jqResults{1, 1, ""}
)

// one is exactly one result of a kind.
func one(kind string) jqResults { return jqResults{1, 1, kind} }

// resultMistakes says what is wrong with a program, which compiles, that cannot make
// exactly one object of any input.
func resultMistakes(text *source.Text) source.Errors {
	switch r := resultsOf(plainQuery(text.Code)); {
	case r.most == 0:
		return source.Errors{text.Error(0, "the program never makes anything: it must make one object")}
	case r.least >= several:
		return source.Errors{text.Error(0, "the program always makes more than one value: it must make one object")}
	case r.isOne() && r.kind != "":
		return source.Errors{text.Error(0, "the program always makes %s: it must make one object", r.kind)}
	}
	return nil
}

// resultsOf says what is certain of the results of q. It goes by the form alone: what is
// decided by a value, and all that defines names, may be anything.
func resultsOf(q *gojq.Query) jqResults {
	if q == nil {
		return oneResult
	}
	if len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return anyResults
	}
	if q.Term != nil {
		return resultsOfTerm(q.Term)
	}
	left, right := resultsOf(q.Left), resultsOf(q.Right)
	switch q.Op {
	case gojq.OpComma:
		return jqResults{min(left.least+right.least, several), min(left.most+right.most, several), ""}
	case gojq.OpPipe:
		return left.times(right)
	case gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe, gojq.OpAnd, gojq.OpOr:
		if left.isOne() && right.isOne() {
			return one("a boolean")
		}
	}
	return anyResults
}

func (r jqResults) isOne() bool { return r.least == 1 && r.most == 1 }

// times is what comes of a program on each result of another.
func (r jqResults) times(next jqResults) jqResults {
	return jqResults{min(r.least*next.least, several), min(r.most*next.most, several), next.kind}
}

// or is what comes of one of two programs.
func (r jqResults) or(other jqResults) jqResults {
	kind := r.kind
	if kind != other.kind {
		kind = ""
	}
	return jqResults{min(r.least, other.least), max(r.most, other.most), kind}
}

func resultsOfTerm(t *gojq.Term) jqResults {
	if len(t.SuffixList) > 0 {
		return resultsOfField(t)
	}
	switch t.Type {
	case gojq.TermTypeIdentity:
		return oneResult
	case gojq.TermTypeIndex:
		if isPlainIndex(t.Index) {
			return oneResult
		}
	case gojq.TermTypeObject:
		if len(t.Object.KeyVals) == 0 {
			return oneResult
		}
	case gojq.TermTypeNull:
		return one("null")
	case gojq.TermTypeTrue, gojq.TermTypeFalse:
		return one("a boolean")
	case gojq.TermTypeNumber:
		return one("a number")
	case gojq.TermTypeArray:
		return one("an array")
	case gojq.TermTypeString:
		if t.Str.Queries == nil {
			return one("a string")
		}
	case gojq.TermTypeQuery:
		return resultsOf(t.Query)
	case gojq.TermTypeIf:
		return resultsOfIf(t.If)
	case gojq.TermTypeFunc:
		return resultsOfCall(t.Func)
	}
	return anyResults
}

// resultsOfField knows a field of a field, as in .spec.replicas.
func resultsOfField(t *gojq.Term) jqResults {
	if t.Type != gojq.TermTypeIndex || !isPlainIndex(t.Index) {
		return anyResults
	}
	for _, suffix := range t.SuffixList {
		if suffix.Iter || suffix.Optional || !isPlainIndex(suffix.Index) {
			return anyResults
		}
	}
	return oneResult
}

// isPlainIndex reports whether i names one field.
func isPlainIndex(i *gojq.Index) bool {
	return i != nil && i.Start == nil && i.End == nil && !i.IsSlice && (i.Str == nil || i.Str.Queries == nil)
}

func resultsOfIf(e *gojq.If) jqResults {
	all, certain := resultsOf(e.Then).or(resultsOf(e.Else)), resultsOf(e.Cond).isOne()
	for _, elif := range e.Elif {
		all = all.or(resultsOf(elif.Then))
		certain = certain && resultsOf(elif.Cond).isOne()
	}
	if !certain && all.most > 0 {
		return anyResults
	}
	return all
}

// resultsOfCall knows the functions of jq that are often the last one by mistake.
func resultsOfCall(f *gojq.Func) jqResults {
	switch len(f.Args) {
	case 0:
		switch f.Name {
		case "empty":
			return noResult
		case "true", "false", "not":
			return one("a boolean")
		case "null":
			return one("null")
		case "length":
			return one("a number")
		case "tostring", "tojson", "type":
			return one("a string")
		case "keys", "to_entries":
			return one("an array")
		}
	case 1:
		switch f.Name {
		case "select":
			if isFalse(f.Args[0]) {
				return noResult
			}
		case "map":
			return one("an array")
		}
	}
	return anyResults
}

// isFalse reports whether q is written as false or null.
func isFalse(q *gojq.Query) bool {
	if q.Term == nil || len(q.Term.SuffixList) > 0 {
		return false
	}
	t := q.Term
	return t.Type == gojq.TermTypeFalse || t.Type == gojq.TermTypeNull ||
		t.Type == gojq.TermTypeFunc && len(t.Func.Args) == 0 && (t.Func.Name == "false" || t.Func.Name == "null")
}

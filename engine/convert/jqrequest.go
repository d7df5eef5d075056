package convert

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// RequestFields are the fields of $request, all of which are always there.
var RequestFields = []string{
	"contentType", "dryRun", "fieldManager", "group", "method", "name", "namespace", "path", "query", "resource",
	"subresource", "userAgent", "verb", "version",
}

const requestVariable = "$request"

// requestField reports a field of $request that there is not, which would be null for
// ever. The walk is at the variable; index is what follows it.
func (c *jqChecker) requestField(index *gojq.Index) {
	if index == nil || c.rebound {
		return
	}
	field := index.Name
	switch {
	case index.Str != nil && index.Str.Queries == nil:
		field = index.Str.Str
	case index.Start != nil && !index.IsSlice && isStringConstant(index.Start):
		field = index.Start.Term.Str.Str
	}
	if field == "" || slices.Contains(RequestFields, field) {
		return
	}
	offset := c.offset(requestVariable)
	if i := strings.Index(c.text.Code[offset+len(requestVariable):], field); i >= 0 {
		offset += len(requestVariable) + i
	}
	c.errs = append(c.errs, c.text.Error(offset, "$request has no field %s%s", source.Quote(field), source.Suggest(field, RequestFields)))
}

// pipedField is the field that q takes first of what is piped into it; nil for none, or
// for one that q makes.
func pipedField(q *gojq.Query) *gojq.Index {
	for q.Term == nil && q.Left != nil {
		if q.Op >= gojq.OpAssign && q.Op <= gojq.OpUpdateAlt {
			return nil
		}
		q = q.Left
	}
	if q.Term == nil || q.Term.Type != gojq.TermTypeIndex {
		return nil
	}
	return q.Term.Index
}

// isRequest reports whether q is $request as it is.
func isRequest(q *gojq.Query) bool {
	return q != nil && q.Term != nil && len(q.FuncDefs) == 0 && q.Term.Func != nil && q.Term.Func.Name == requestVariable && len(q.Term.SuffixList) == 0
}

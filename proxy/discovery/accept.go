package discovery

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A form is one of the documents that /api and /apis have.
type form int

const (
	unaggregated form = iota
	aggregatedV2
	aggregatedV2beta1
)

// mediaParameters is what kube-apiserver appends to the content type of an
// aggregated document, in its order: client-go compares the text.
func (f form) mediaParameters() string {
	switch f {
	case aggregatedV2:
		return ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	case aggregatedV2beta1:
		return ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	}
	return ""
}

// An encoding is how a document is written.
type encoding int

const (
	encodeJSON encoding = iota
	encodePretty
	encodeYAML
	encodeProtobuf
	encodings // how many there are
)

// mediaTypes are the types that we answer, the first for whoever takes any. They
// are kube-apiserver's, without CBOR, which is off there by default.
var mediaTypes = []struct {
	mainType, subtype string
	encoding          encoding
}{
	{"application", "json", encodeJSON},
	{"application", "yaml", encodeYAML},
	{"application", "vnd.kubernetes.protobuf", encodeProtobuf},
}

func (e encoding) mediaType() string {
	for _, m := range mediaTypes {
		if m.encoding == e {
			return m.mainType + "/" + m.subtype
		}
	}
	return "application/json" // pretty
}

// maxAcceptClauses bounds the work for one Accept header. Clients send at most
// four clauses, browsers about ten; what comes behind is not looked at.
const maxAcceptClauses = 64

// An acceptClause is one media range of an Accept header (RFC 9110, section
// 12.5.1) with the parameters that Kubernetes gives a meaning.
type acceptClause struct {
	mainType, subtype string
	quality           float64
	group, version    string // g=, v=
	kind              string // as=
	transformed       bool   // one of the three was there
	pretty            bool   // pretty=1
	unknown           bool   // asks for what discovery does not have (sv=, stream=)
}

// parseAccept returns the clauses that can be read, the preferred first. One that
// cannot be read, or has q=0, is left out.
func parseAccept(header string) []acceptClause {
	var out []acceptClause
	for range maxAcceptClauses {
		var part string
		var more bool
		part, header, more = strings.Cut(header, ",")
		if c, ok := parseClause(part); ok && c.quality > 0 {
			out = append(out, c)
		}
		if !more {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b acceptClause) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(a.wildcards(), b.wildcards()))
	})
	return out
}

func parseClause(s string) (acceptClause, bool) {
	c := acceptClause{quality: 1}
	mediaRange, parameters, _ := strings.Cut(s, ";")
	mainType, subtype, ok := strings.Cut(strings.TrimSpace(mediaRange), "/")
	c.mainType, c.subtype = strings.ToLower(mainType), strings.ToLower(subtype)
	if mainType == "*" && !ok {
		c.subtype, ok = "*", true // old Java clients send a lone star
	}
	if !ok || c.mainType == "" || c.subtype == "" || strings.Contains(c.subtype, "/") {
		return c, false
	}
	// The number of parameters is bounded by the length of the header, and each
	// costs one pass over itself.
	for parameters != "" {
		var p string
		p, parameters, _ = strings.Cut(parameters, ";")
		name, value, ok := strings.Cut(p, "=")
		if ok {
			c.parameter(strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	return c, true
}

func (c *acceptClause) parameter(name, value string) {
	switch name {
	case "q":
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || !(q >= 0 && q <= 1) { // not a number compares false
			q = 0
		}
		c.quality = q
	case "g":
		c.group, c.transformed = value, true
	case "v":
		c.version, c.transformed = value, true
	case "as":
		c.kind, c.transformed = value, true
	case "pretty":
		c.pretty = value == "1"
	case "sv":
		c.unknown = c.unknown || value != ""
	case "stream":
		c.unknown = c.unknown || value != "" && value != "watch"
	}
}

func (c *acceptClause) wildcards() int {
	switch {
	case c.mainType == "*":
		return 2
	case c.subtype == "*":
		return 1
	}
	return 0
}

// encoding returns the first of our media types that the clause allows.
func (c *acceptClause) encoding() (encoding, bool) {
	for _, m := range mediaTypes {
		if (c.mainType == "*" || c.mainType == m.mainType) && (c.subtype == "*" || c.subtype == m.subtype) {
			return m.encoding, true
		}
	}
	return 0, false
}

// aggregated returns the aggregated form that the clause asks for.
func (c *acceptClause) aggregated() (form, bool) {
	if c.group != "apidiscovery.k8s.io" || c.kind != "APIGroupDiscoveryList" {
		return 0, false
	}
	switch c.version {
	case "v2":
		return aggregatedV2, true
	case "v2beta1":
		return aggregatedV2beta1, true
	}
	return 0, false
}

// negotiate chooses form and encoding as kube-apiserver does: an aggregated form
// wins over the plain one wherever it stands in the header, whatever its quality;
// among several the client's order decides. ok is false where nothing that we
// have is acceptable.
func negotiate(header string, mayAggregate bool) (f form, e encoding, pretty, ok bool) {
	if strings.TrimSpace(header) == "" {
		return unaggregated, encodeJSON, false, true
	}
	clauses := parseAccept(header)
	for _, c := range clauses {
		f, isAggregated := c.aggregated()
		e, known := c.encoding()
		if mayAggregate && isAggregated && known && !c.unknown {
			return f, e, c.pretty, true
		}
	}
	for _, c := range clauses {
		if e, known := c.encoding(); known && !c.unknown && !c.transformed {
			return unaggregated, e, c.pretty, true
		}
	}
	return 0, 0, false, false
}

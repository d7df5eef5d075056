package discovery

import (
	"strings"

	"github.com/munnerz/goautoneg"
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

// parseAccept returns the clauses of an Accept header in the order in which
// kube-apiserver looks at them. It reads them as kube-apiserver does, so that a
// client is answered in the same form by both: types are compared as they are
// written, and a quality of zero is the lowest one, but does not forbid.
func parseAccept(header string) []goautoneg.Accept {
	end := 0
	for range maxAcceptClauses {
		i := strings.IndexByte(header[end:], ',')
		if i < 0 {
			return goautoneg.ParseAccept(header)
		}
		end += i + 1
	}
	return goautoneg.ParseAccept(header[:end-1])
}

// encodingOf returns the first of our media types that a clause allows.
func encodingOf(c *goautoneg.Accept) (encoding, bool) {
	for _, m := range mediaTypes {
		anything := c.Type == "*" && c.SubType == "*"
		if anything || c.Type == m.mainType && (c.SubType == m.subtype || c.SubType == "*") {
			return m.encoding, true
		}
	}
	return 0, false
}

// formOf returns the form that a clause's parameters ask for. known is false where
// discovery has none such: another kind, a server's version, a stream (kube-apiserver
// lets "watch" pass for encodings that have events).
func formOf(c *goautoneg.Accept, e encoding) (f form, known bool) {
	stream := c.Params["stream"]
	if c.Params["sv"] != "" || stream != "" && (stream != "watch" || e == encodeYAML) {
		return 0, false
	}
	_, g := c.Params["g"]
	_, v := c.Params["v"]
	_, as := c.Params["as"]
	if !g && !v && !as {
		return unaggregated, true
	}
	if c.Params["g"] != "apidiscovery.k8s.io" || c.Params["as"] != "APIGroupDiscoveryList" {
		return 0, false
	}
	switch c.Params["v"] {
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
	if header == "" {
		return unaggregated, encodeJSON, false, true
	}
	clauses := parseAccept(header)
	for _, aggregated := range []bool{true, false} {
		for i := range clauses {
			c := &clauses[i]
			e, ok := encodingOf(c)
			f, known := formOf(c, e)
			if known && ok && (f != unaggregated) == aggregated && (mayAggregate || !aggregated) {
				return f, e, c.Params["pretty"] == "1", true
			}
		}
	}
	return 0, 0, false, false
}

// takesEncoding reports whether a header names one of our media types at all,
// whatever the parameters. kube-apiserver looks at that first where a document is
// served by go-restful.
func takesEncoding(header string) bool {
	if header == "" {
		return true
	}
	clauses := parseAccept(header)
	for i := range clauses {
		c := &clauses[i]
		if _, ok := encodingOf(c); ok && !(c.Type == "application" && c.SubType == "*") {
			return true
		}
	}
	return false
}

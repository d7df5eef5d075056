package oracle_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/oracle"
	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
)

// A pair is a conversion of the library, made as a proxy makes it before servers that
// serve only the newer version.
type pair struct {
	name string
	set  *engine.Set
	from convert.Version
	via  []convert.Version // of a chain: the versions between
	to   convert.Version
}

// libraryPairs returns all conversions of the library: those of its policies, and the
// chains that several make together.
func libraryPairs(t testing.TB) []pair {
	t.Helper()
	var all []engine.Policy
	for _, shipped := range policies.Library() {
		all = append(all, shipped.Policies...)
	}
	set, err := engine.Compile(all)
	if err != nil {
		t.Fatal(err)
	}
	set = set.WithSchemas(ownSchema)
	var pairs []pair
	for _, c := range set.Conversions() {
		dir, _, _ := strings.Cut(c.Policy, "/")
		name := dir + "/" + c.From.Resource
		if len(c.Via) > 0 {
			name += "-to-" + c.To.Version
		}
		pairs = append(pairs, pair{name: name, set: set, from: c.From, via: c.Via, to: c.To})
	}
	return pairs
}

// ownSchema tells the types of fields as a proxy knows them of Kubernetes' own kinds.
func ownSchema(v convert.Version) convert.Schema {
	if s, ok := builtin.Find(v.Group, v.Version, v.Kind); ok {
		return convert.Named{Types: s}
	}
	if s, ok := builtin.FindResource(v.Group, v.Version, v.Resource); ok {
		return convert.Named{Types: s}
	}
	return nil
}

// corners is the file, which need not be there, of the objects of a side, one on a
// line, that chance does not make.
func (p *pair) corners(side string) string {
	return filepath.Join("testdata", filepath.FromSlash(p.name)+"."+side+".jsonl")
}

// decide asks the policies about a request of the client's version.
func (p *pair) decide(method string, body []byte) (*engine.Conversion, *convert.Vars, error) {
	request, err := engine.ParseRequest(method, "/apis/"+p.from.APIVersion()+"/"+p.from.Resource)
	if err != nil {
		return nil, nil, err
	}
	request.ContentType = "application/json"
	decision, err := p.set.Decide(&engine.Input{
		Request: &request,
		Object:  func() ([]byte, error) { return body, nil },
		Served: func(group, version, resource string) bool {
			return group == p.to.Group && version == p.to.Version && resource == p.to.Resource
		},
	})
	switch {
	case err != nil:
		return nil, nil, err
	case decision.Denied != nil:
		return nil, nil, fmt.Errorf("denied: %s", decision.Denied.Message)
	case decision.Conversion == nil || !decision.ConvertBody || decision.Conversion.To != p.to:
		return nil, nil, fmt.Errorf("%s is not converted to %s", request.String(), p.to.APIVersion())
	}
	return decision.Conversion, &convert.Vars{Request: request.Vars()}, nil
}

// request is what a server is sent when a client creates object.
func (p *pair) request(object []byte) oracle.Answer {
	c, vars, err := p.decide("POST", object)
	if err != nil {
		return oracle.Answer{Err: err}
	}
	sent, err := c.Object(nil, object, convert.ToServer, vars)
	return oracle.Answer{Object: sent, Err: err}
}

// answer is what a client gets when a server answers with object.
func (p *pair) answer(object []byte) oracle.Answer {
	c, vars, err := p.decide("GET", nil)
	if err != nil {
		return oracle.Answer{Err: err}
	}
	var out bytes.Buffer
	err = c.Answer(&out, bytes.NewReader(object), vars)
	return oracle.Answer{Object: out.Bytes(), Err: err}
}

// requests and answers do it for many.
func (p *pair) requests(objects []oracle.Answer) []oracle.Answer { return each(objects, p.request) }
func (p *pair) answers(objects []oracle.Answer) []oracle.Answer  { return each(objects, p.answer) }

func each(objects []oracle.Answer, f func([]byte) oracle.Answer) []oracle.Answer {
	all := make([]oracle.Answer, len(objects))
	for i, o := range objects {
		if all[i] = o; o.Err == nil {
			all[i] = f(o.Object)
		}
	}
	return all
}

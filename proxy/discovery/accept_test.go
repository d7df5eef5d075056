package discovery

import (
	"strings"
	"testing"

	"github.com/munnerz/goautoneg"
)

const (
	jsonV2      = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	jsonV2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	protoV2     = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// contentType returns what an answer to the Accept header would be called; 406
// where there would be none.
func contentType(header string, mayAggregate bool) string {
	f, e, pretty, ok := negotiate(header, mayAggregate)
	switch {
	case !ok:
		return "406"
	case pretty:
		return e.mediaType() + f.mediaParameters() + " pretty"
	}
	return e.mediaType() + f.mediaParameters()
}

func TestNegotiate(t *testing.T) {
	f := func(header, want string) {
		t.Helper()
		if got := contentType(header, true); got != want {
			t.Errorf("Accept: %s\n got %s\nwant %s", header, got, want)
		}
	}

	// Clients as they are: no header, curl, kubectl 1.20, 1.26, 1.30, 1.36, a browser.
	f("", "application/json")
	f("*/*", "application/json")
	f("application/json, */*", "application/json")
	f(jsonV2beta1+",application/json", jsonV2beta1)
	f(jsonV2+","+jsonV2beta1+",application/json", jsonV2)
	f(jsonV2+";profile=nopeer,"+jsonV2beta1+",application/json", jsonV2)
	f("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json")

	// Parameters come in any order, spaced; qualities order.
	f("application/json; as=APIGroupDiscoveryList ; v=v2beta1; g=apidiscovery.k8s.io", jsonV2beta1)
	f(jsonV2+";q=0.5,"+jsonV2beta1+";q=0.9", jsonV2beta1)
	f(jsonV2+";q=0,"+jsonV2beta1, jsonV2beta1)
	f("application/json;q=0", "application/json") // kube-apiserver does not take it for a no
	f("application/json;q=0.1,application/yaml;q=0.2", "application/yaml")
	f("application/json;q=banana,application/yaml", "application/yaml")
	f("application/*;q=1,application/yaml", "application/yaml")

	// kube-apiserver sends the aggregated form to whoever takes it at all.
	f("application/json,"+jsonV2+";q=0.1", jsonV2)
	f("*/*;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", jsonV2)

	// Other encodings, and the Table that kubectl get asks for everywhere.
	f("application/yaml", "application/yaml")
	f("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf")
	f(protoV2+","+jsonV2, protoV2)
	f("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/json")
	f("application/json;pretty=1", "application/json pretty")
	f("application/json;charset=utf-8", "application/json")

	f("application/json;as=Table;v=v1;g=meta.k8s.io", "406")
	f("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", "406")
	f("application/json;sv=v1", "406")
	f("Application/JSON", "406") // it compares types as they are written
	f("application/yaml;stream=watch", "406")
	f("text/html", "406")
	f("application/cbor", "406")
	f("json, application, /, a/b/c,,;", "406")
}

// An aggregated form exists of /api and /apis only; elsewhere a client that also
// takes the plain one gets that.
func TestNegotiateElsewhere(t *testing.T) {
	for header, want := range map[string]string{
		jsonV2 + "," + jsonV2beta1 + ",application/json": "application/json",
		jsonV2: "406",
	} {
		if got := contentType(header, false); got != want {
			t.Errorf("Accept: %s\n got %s\nwant %s", header, got, want)
		}
	}
}

func TestNegotiateIsBounded(t *testing.T) {
	header := strings.Repeat("text/html,", maxAcceptClauses) + "application/json"
	if got := contentType(header, true); got != "406" {
		t.Errorf("a clause behind the limit was read: %s", got)
	}
}

// apiserverNegotiate repeats what kube-apiserver does, in its order: the handler
// around discovery looks for an aggregated form in the whole header, and only then
// does the plain handler look for a plain one. Of each clause, all encodings are
// tried. (Its own code brings half an apiserver with it; the end-to-end tests ask
// the real one.)
func apiserverNegotiate(header string, mayAggregate bool) string {
	if header == "" {
		return "application/json"
	}
	allowed := func(c goautoneg.Accept, encoding string, aggregated bool) bool {
		var target [3]string
		transforms := false
		for name, value := range c.Params {
			switch name {
			case "sv":
				if value != "" {
					return false
				}
			case "stream":
				if value != "" && (value != "watch" || encoding == "yaml") {
					return false
				}
			case "g", "v", "as":
				target[strings.Index("gva", name[:1])] = value
				transforms = true
			}
		}
		if !aggregated {
			return !transforms
		}
		return target[0] == "apidiscovery.k8s.io" && target[2] == "APIGroupDiscoveryList" && (target[1] == "v2" || target[1] == "v2beta1")
	}
	for _, aggregated := range []bool{true, false} {
		if aggregated && !mayAggregate {
			continue
		}
		for _, c := range goautoneg.ParseAccept(header) {
			for _, encoding := range []string{"json", "yaml", "vnd.kubernetes.protobuf"} {
				exact := c.Type == "application" && c.SubType == encoding
				any := c.SubType == "*" && (c.Type == "application" || c.Type == "*")
				if !exact && !any || !allowed(c, encoding, aggregated) {
					continue
				}
				name := "application/" + encoding
				if aggregated {
					name += ";g=apidiscovery.k8s.io;v=" + c.Params["v"] + ";as=APIGroupDiscoveryList"
				}
				if c.Params["pretty"] == "1" {
					name += " pretty"
				}
				return name
			}
		}
	}
	return "406"
}

// FuzzNegotiate reads any header, and headers put together from clauses that
// clients send, as kube-apiserver does.
func FuzzNegotiate(f *testing.F) {
	clauses := []string{
		jsonV2, jsonV2beta1, protoV2, "application/json", "application/yaml", "*/*", "application/*", "text/html", "*", "*/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf", "nonsense", "", "application/json;q=0.3",
		"application/yaml;q=0", "application/json;pretty=1", "application/vnd.kubernetes.protobuf;stream=watch", "application/yaml;sv=v1",
	}
	f.Add(jsonV2+","+jsonV2beta1+",application/json", []byte{0, 1, 3})
	f.Add("*;q=1e999, ;;;=, a/b;c", []byte{5, 4, 11})
	f.Add("application/json;q=NaN,application/yaml;q=-1", []byte{15, 14, 8})
	f.Fuzz(func(t *testing.T, header string, picks []byte) {
		var chosen []string
		for _, p := range picks[:min(len(picks), 2*maxAcceptClauses)] {
			chosen = append(chosen, clauses[int(p)%len(clauses)])
		}
		for _, header := range []string{header, strings.Join(chosen, ",")} {
			if strings.Count(header, ",") >= maxAcceptClauses {
				negotiate(header, true) // beyond what is looked at: an answer, whichever
				continue
			}
			for _, mayAggregate := range []bool{true, false} {
				if got, want := contentType(header, mayAggregate), apiserverNegotiate(header, mayAggregate); got != want {
					t.Errorf("Accept: %s\n got %s\nwant %s", header, got, want)
				}
			}
		}
	})
}

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// The answers of a kube-apiserver that are of interest here, as it writes them.
var (
	notFoundPage = page(404, "404 page not found")
	stoppingPage = page(429, "The apiserver is shutting down, please try again later.", "Retry-After: 5")
	busyPage     = page(429, "Too many requests, please try again later.", "Retry-After: 1", "X-Kubernetes-Pf-Flowschema-Uid: f")
	stopping     = statusOf(503, "ServiceUnavailable", "apiserver is shutting down")
	starting     = statusOf(503, "ServiceUnavailable", "the request has been made before all known HTTP paths have been installed, please try again")
	storageInit  = statusOf(429, "TooManyRequests", "storage is (re)initializing")
	noKind       = statusOf(500, "InternalError", `no kind "CSINode" is registered for version "storage.k8s.io/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"`)
	unsupported  = statusOf(415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml")
)

// page is an answer of http.Error.
func page(code int, text string, lines ...string) string {
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n", code, http.StatusText(code))
	for _, line := range lines {
		head += line + "\r\n"
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s\n", len(text)+1, text)
}

func statusOf(code int, reason, message string) string {
	return respond(code, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`+"\n", message, reason, code))
}

// stoppingIn is the answer of a server that shuts down in another form.
func stoppingIn(t *testing.T, contentType string) string {
	t.Helper()
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: "apiserver is shutting down", Reason: metav1.StatusReasonServiceUnavailable, Code: 503,
	}
	var body []byte
	var err error
	switch contentType {
	case "application/yaml":
		body, err = yaml.Marshal(status)
	case "application/cbor":
		body, err = cbor.Marshal(status)
	default:
		info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
		if !ok {
			t.Fatalf("no serializer for %s", contentType)
		}
		body, err = runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"}), &status)
	}
	if err != nil {
		t.Fatal(err)
	}
	return respond(503, contentType, string(body))
}

// refusalRig is MVP before a, which all requests go to first and which answers as a
// test says, and b, which answers 200 with its name.
type refusalRig struct {
	*rig
	a, b  *recorder
	reply atomic.Pointer[string]
}

func newRefusalRig(t *testing.T, serves []served) *refusalRig {
	t.Helper()
	f := &refusalRig{}
	f.a = record(t, "a", "1.31.14", serves, func(request) string { return *f.reply.Load() })
	f.b = record(t, "b", "1.32.13", serves, func(request) string { return ok("b") })
	f.rig = start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, f.a, f.b)
	return f
}

// ask sends a request while a answers with reply, and returns what came back, raw.
func (f *refusalRig) ask(t *testing.T, method, target, contentType, body, reply string) (got answer) {
	t.Helper()
	f.a.forget()
	f.b.forget()
	f.reply.Store(&reply)
	return f.do(method, target, contentType, body)
}

// What a server has certainly not executed is executed by the other one, once; what
// it may have executed, and what is an answer like others, is the client's as it is.
func TestRefusals(t *testing.T) {
	const (
		pod   = "/api/v1/namespaces/d/pods/p"
		list  = "/api/v1/namespaces/d/pods"
		proto = "application/vnd.kubernetes.protobuf"
		json  = "application/json"
	)
	large := `{"x":"` + strings.Repeat("x", 200<<10) + `"}`
	tests := []struct {
		name, method, target, mediaType, body string
		reply                                 string
		elsewhere                             bool
	}{
		{"mux 404 of a get", "GET", pod, "", "", notFoundPage, true},
		{"mux 404 of a list", "GET", list, "", "", notFoundPage, true},
		{"mux 404 of a create", "POST", list, json, "{}", notFoundPage, true},
		{"mux 404 of a large create", "POST", list, json, large, notFoundPage, true},
		{"mux 404 of a patch", "PATCH", pod, "application/merge-patch+json", "{}", notFoundPage, true},
		{"mux 404 of a delete", "DELETE", pod, "", "", notFoundPage, true},
		{"mux 404 of a subresource", "PUT", pod + "/status", json, "{}", notFoundPage, true},
		{"404 of a version that the group has no more", "PATCH", pod, "application/merge-patch+json", "{}", statusOf(404, "NotFound", "the server could not find the requested resource"), true},
		{"404 of an object", "GET", pod, "", "", statusOf(404, "NotFound", `pods "p" not found`), false},
		{"404 of another page", "GET", pod, "", "", page(404, "404 page not found, really"), false},
		{"404 of a resource that nobody has", "GET", "/apis/none.io/v1/things", "", "", notFoundPage, false},
		{"404 of a path", "GET", "/nowhere", "", "", notFoundPage, false},
		{"404 of an application behind a service", "GET", "/api/v1/namespaces/d/services/s/proxy/x", "", "", notFoundPage, false},
		{"404 of an application behind a pod", "GET", pod + "/proxy/x", "", "", notFoundPage, false},
		{"stopping, a create", "POST", list, json, "{}", stoppingPage, true},
		{"stopping, a get", "GET", pod, "", "", stoppingPage, true},
		{"stopping, a watch", "GET", list + "?watch=1", "", "", stoppingPage, true},
		{"stopping, a path", "GET", "/metrics", "", "", stoppingPage, true},
		{"stopping, an application", "POST", pod + "/proxy/x", json, "{}", stoppingPage, false},
		{"priority and fairness", "POST", list, json, "{}", busyPage, false},
		{"priority and fairness of a get", "GET", list, "", "", busyPage, false},
		{"an eviction that must wait", "POST", pod + "/eviction", json, "{}", statusOf(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."), false},
		{"no more short requests", "POST", list, json, "{}", stopping, true},
		{"no more short requests, in protobuf", "POST", list, json, "{}", stoppingIn(t, proto), true},
		{"no more short requests, in CBOR", "POST", list, json, "{}", stoppingIn(t, "application/cbor"), true},
		{"no more short requests, in YAML", "POST", list, json, "{}", stoppingIn(t, "application/yaml"), true},
		{"no more watches", "GET", list + "?watch=1", "", "", stopping, true},
		{"a webhook that says so", "POST", list, json, "{}", statusOf(503, "ServiceUnavailable", `admission webhook "w" denied the request: apiserver is shutting down`), false},
		{"no endpoints", "POST", list, json, "{}", statusOf(503, "ServiceUnavailable", "no endpoints available for service"), false},
		{"paths missing", "POST", list, json, "{}", starting, true},
		{"storage starts, a list", "GET", list, "", "", storageInit, true},
		{"storage starts, a watch", "GET", list + "?watch=1&resourceVersion=5", "", "", storageInit, true},
		{"storage starts, why", "GET", list, "", "", statusOf(429, "TooManyRequests", "storage is (re)initializing: etcd is down"), true},
		{"storage starts, a deletecollection", "DELETE", list, "", "", storageInit, false},
		{"cacher stops, a list", "GET", list, "", "", statusOf(503, "ServiceUnavailable", "apiserver cacher is stopped"), true},
		{"aggregated, a get", "GET", pod, "", "", page(503, "service unavailable"), true},
		{"aggregated, a create", "POST", list, json, "{}", page(503, "service unavailable"), false},
		{"no kind, a get", "GET", pod, "", "", noKind, true},
		{"no kind, a list", "GET", list, "", "", noKind, true},
		{"no kind, an update", "PUT", pod, json, "{}", noKind, false},
		{"another 500", "GET", pod, "", "", statusOf(500, "InternalError", "etcdserver: leader changed"), false},
		{"415 of protobuf", "PUT", pod, proto, "k8s\x00", unsupported, true},
		{"415 of CBOR", "PUT", pod, "application/cbor", "\xd9\xd9\xf7\xa0", unsupported, true},
		{"415 of JSON", "PUT", pod, json, "{}", unsupported, false},
		{"401", "GET", pod, "", "", statusOf(401, "Unauthorized", "Unauthorized"), false},
		{"403", "GET", pod, "", "", statusOf(403, "Forbidden", "no"), false},
		{"409", "PUT", pod, json, "{}", statusOf(409, "Conflict", "the object has been modified"), false},
		{"410", "GET", list + "?continue=x", "", "", statusOf(410, "Expired", "The provided continue parameter is too old"), false},
		{"422", "POST", list, json, "{}", statusOf(422, "Invalid", "invalid"), false},
		{"504", "GET", list + "?resourceVersion=9", "", "", statusOf(504, "Timeout", "Timeout: Too large resource version: 9, current: 7"), false},
		{"too long to look at", "POST", list, json, "{}", statusOf(503, "ServiceUnavailable", "apiserver is shutting down"+strings.Repeat(" ", 8<<10)), false},
	}
	f := newRefusalRig(t, pods)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := f.ask(t, tt.method, tt.target, tt.mediaType, tt.body, tt.reply)
			if len(f.a.got()) != 1 {
				t.Fatalf("a got %d requests: the test shows nothing", len(f.a.got()))
			}
			sent := f.b.got()
			if !tt.elsewhere {
				if want := parsed(t, tt.reply); len(sent) > 0 || got.code != want.code || got.body != want.body || !sameHeader(got.header, want.header) {
					t.Errorf("answered %d %v %q, and b got %d requests, want %q unchanged", got.code, got.header, got.body, len(sent), tt.reply)
				}
				return
			}
			if got.code != 200 || got.body != "b" || len(sent) != 1 || sent[0].body != tt.body {
				t.Errorf("answered %d %.200q, and b got %.300q, want what b answers to the whole request", got.code, got.body, sent)
			}
		})
	}
}

// parsed reads a raw answer.
func parsed(t *testing.T, raw string) answer {
	t.Helper()
	got, err := readAnswer(bufio.NewReader(strings.NewReader(raw)), "GET")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func sameHeader(a, b http.Header) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// What nobody else can answer is the client's as the server said it, byte for byte.
func TestRefusalsOfTheOnlyServer(t *testing.T) {
	var reply string
	u := record(t, "a", "1.31.14", pods, func(request) string { return reply })
	r := start(t, nil, nil, u)
	for _, reply = range []string{notFoundPage, stoppingPage, stopping, starting, storageInit, noKind, unsupported} {
		u.forget()
		_, in := r.raw("GET /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: m\r\n\r\n")
		got := make([]byte, len(reply))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != reply {
			t.Errorf("got\n%q, %v\nwant\n%q", got, err, reply)
		}
		u.only()
	}
}

// When all refuse, the client gets the answer that says most: not that the kind is
// unknown, where a server that knows it is only stopping.
func TestRefusalsOfAll(t *testing.T) {
	f := func(first, second, want string) {
		t.Helper()
		a := record(t, "a", "1.31.14", pods, func(request) string { return first })
		b := record(t, "b", "1.32.13", pods, func(request) string { return second })
		r := start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
		got := r.do("POST", "/api/v1/namespaces/d/pods", "application/json", "{}")
		if p := parsed(t, want); got.code != p.code || got.body != p.body || len(a.got()) != 1 || len(b.got()) != 1 {
			t.Errorf("answered %d %s after %d and %d requests, want %q", got.code, got.body, len(a.got()), len(b.got()), want)
		}
	}

	f(notFoundPage, stopping, stopping)
	f(stopping, notFoundPage, stopping)
	f(notFoundPage, notFoundPage, notFoundPage)
}

// After a refusal a write that may have been executed is told as one.
func TestRefusalThenBroken(t *testing.T) {
	a := record(t, "a", "1.31.14", pods, func(request) string { return stopping })
	b := record(t, "b", "1.32.13", pods, func(q request) string { q.conn.Close(); return "" })
	r := start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
	got := r.do("POST", "/api/v1/namespaces/d/pods", "application/json", "{}")
	if got.code != 502 || !strings.Contains(got.body, "may have been executed") || len(a.got()) != 1 || len(b.got()) != 1 {
		t.Errorf("answered %d %s after %d and %d requests", got.code, got.body, len(a.got()), len(b.got()))
	}
}

// A body that has gone by cannot be sent again, so the refusal is the client's.
func TestRefusalOfAStreamedBody(t *testing.T) {
	f := newRefusalRig(t, pods)
	reply := stopping
	f.reply.Store(&reply)
	_, in := f.raw("POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
	got, err := readAnswer(in, "POST")
	if err != nil || got.code != 503 || len(f.a.got()) != 1 || len(f.b.got()) != 0 {
		t.Errorf("answered %d %s, %v after %d and %d requests", got.code, got.body, err, len(f.a.got()), len(f.b.got()))
	}
}

// A version that its server has just lost is served by conversion, though MVP has not
// heard of it yet.
func TestRefusalThenConversion(t *testing.T) {
	a := record(t, "a", "1.31.14", []served{{"acme.io", "v1beta1", "things", "Thing"}}, func(request) string { return notFoundPage })
	b := record(t, "b", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, a, b)
	got := r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t", "", "")
	if got.code != 200 || !sameJSON(got.body, oldThing) {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	if got := r.do("PUT", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/json", oldThing); got.code != 200 || !sameJSON(got.body, oldThing) {
		t.Errorf("a write was answered %d %s", got.code, got.body)
	}
	if sent := b.got(); len(sent) != 2 || sent[1].method != "PUT" || !sameJSON(sent[1].body, newThing) {
		t.Errorf("b got %q", sent)
	}
}

// A refused upgrade is tried on the other server, too: nobody has executed it.
func TestRefusedUpgrade(t *testing.T) {
	a := record(t, "a", "1.31.14", pods, func(request) string { return stoppingPage })
	b := record(t, "b", "1.32.13", pods, func(request) string {
		return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello"
	})
	r := start(t, map[string]string{"a.route.cel": `upstream.name == 'a' ? 1 : 0`}, nil, a, b)
	_, in := r.raw("GET /api/v1/namespaces/d/pods/p/exec?command=x HTTP/1.1\r\nHost: m\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, 5)
	if _, err := io.ReadFull(in, hello); err != nil || resp.StatusCode != 101 || string(hello) != "hello" {
		t.Errorf("answered %d and %q, %v", resp.StatusCode, hello, err)
	}
	if len(a.got()) != 1 || len(b.got()) != 1 {
		t.Errorf("it was sent %d and %d times", len(a.got()), len(b.got()))
	}
}

// The refusal of a converted request is passed as well, when nobody else is there.
func TestRefusalOfAConvertedRequest(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return stopping })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	for _, method := range []string{"GET", "PUT"} {
		u.forget()
		got := r.do(method, "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/json", oldThing)
		if got.code != 503 || !sameJSON(got.body, parsed(t, stopping).body) {
			t.Errorf("%s was answered %d %s", method, got.code, got.body)
		}
		u.only()
	}
}

// A server whose connections broke off may have been started anew a moment ago, and not
// know yet who may do what: what it forbids then, another one is asked. A server that has
// been up all the time means it.
func TestForbiddenByAServerInDoubt(t *testing.T) {
	forbidden := respond(403, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	var restarted, holding atomic.Bool
	hold := make(chan struct{})
	a := record(t, "a", "1.32.13", pods, func(request) string {
		if restarted.Load() {
			return forbidden
		}
		return ok(`"a"`)
	})
	a.ready = func() string {
		if holding.Load() {
			<-hold
		}
		return respond(200, "text/plain", "ok")
	}
	b := record(t, "b", "1.32.13", pods, func(request) string { return ok(`"b"`) })
	r := start(t, nil, nil, a, b)
	t.Cleanup(func() { close(hold) })
	caller := ""
	r.eventually("a caller that a answers", func() bool {
		caller = fmt.Sprintf("Bearer %d", len(a.got())+len(b.got()))
		return r.do("GET", pod, "", "", "Authorization", caller).body == `"a"`
	})
	restarted.Store(true)
	if got := r.do("GET", pod, "", "", "Authorization", caller); got.code != 403 {
		t.Fatalf("of a server without a doubt: %d", got.code)
	}
	holding.Store(true) // so that the doubt stays
	a.hangUp()
	for _, method := range []string{"GET", "POST", "DELETE"} {
		if got := r.do(method, pod, "", "", "Authorization", caller); got.code != 200 || got.body != `"b"` {
			t.Errorf("%s of a server in doubt: %d %s", method, got.code, got.body)
		}
	}
}

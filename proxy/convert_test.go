package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

const rules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: things}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: spec.old, action: rename, targetPath: spec.new}
        - {path: spec.mode, action: modify, matchValue: a, replaceValue: b}
`

var programs = map[string]string{
	"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
	"things.request.jq":  `rename(.spec.old; .spec.new) | mapvalue(.spec.mode; "a"; "b")`,
	"things.response.jq": `rename(.spec.new; .spec.old) | mapvalue(.spec.mode; "b"; "a")`,
}

var things = []served{{"acme.io", "v1", "things", "Thing"}}

const (
	oldThing = `{"apiVersion":"acme.io/v1beta1","kind":"Thing","metadata":{"name":"t","resourceVersion":"7"},"spec":{"mode":"a","n":12345678901234567890,"old":1.50}}`
	newThing = `{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t","resourceVersion":"7"},"spec":{"mode":"b","n":12345678901234567890,"new":1.50}}`
)

// Each kind of request through a conversion: what the server gets, and what the
// client sees of what the server answers, once by rules and once by programs.
func TestConvertedRequests(t *testing.T) {
	const path = "/apis/acme.io/v1beta1/namespaces/d/things"
	tests := []struct {
		name                      string
		method, target, mediaType string
		body                      string
		wantTarget, wantBody      string
		wantType                  string // "": as sent
		reply, want               string
		rulesOnly                 bool
	}{
		{
			name: "get", method: "GET", target: path + "/t", wantTarget: "/apis/acme.io/v1/namespaces/d/things/t",
			reply: newThing, want: oldThing,
		},
		{
			name: "create", method: "POST", target: path + "?fieldManager=x&dryRun=All", mediaType: "application/json", body: oldThing,
			wantTarget: "/apis/acme.io/v1/namespaces/d/things?fieldManager=x&dryRun=All", wantBody: newThing,
			reply: newThing, want: oldThing,
		},
		{
			name: "create in YAML", method: "POST", target: path, mediaType: "application/yaml",
			body:       "apiVersion: acme.io/v1beta1\nkind: Thing\nspec: {old: 1}\n",
			wantTarget: "/apis/acme.io/v1/namespaces/d/things", wantType: "application/json",
			wantBody: `{"apiVersion":"acme.io/v1","kind":"Thing","spec":{"new":1}}`,
			reply:    newThing, want: oldThing,
		},
		{
			name: "update of status", method: "PUT", target: path + "/t/status", mediaType: "application/json", body: oldThing,
			wantTarget: "/apis/acme.io/v1/namespaces/d/things/t/status", wantBody: newThing, reply: newThing, want: oldThing,
		},
		{
			name: "list", method: "GET", target: path + "?limit=2&fieldSelector=metadata.name%3Dt", wantTarget: "/apis/acme.io/v1/namespaces/d/things?limit=2&fieldSelector=metadata.name%3Dt",
			reply: `{"apiVersion":"acme.io/v1","items":[` + newThing + `],"kind":"ThingList","metadata":{"continue":"c","resourceVersion":"9"}}`,
			want:  `{"apiVersion":"acme.io/v1beta1","items":[` + oldThing + `],"kind":"ThingList","metadata":{"continue":"c","resourceVersion":"9"}}`,
		},
		{
			name: "an empty list", method: "GET", target: path, wantTarget: "/apis/acme.io/v1/namespaces/d/things",
			reply: `{"kind":"ThingList","apiVersion":"acme.io/v1","metadata":{},"items":[]}`,
			want:  `{"kind":"ThingList","apiVersion":"acme.io/v1beta1","metadata":{},"items":[]}`,
		},
		{
			name: "a refusal passes", method: "GET", target: path + "/t", wantTarget: "/apis/acme.io/v1/namespaces/d/things/t",
			reply: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
			want:  `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`,
		},
		{
			name: "a table passes", method: "GET", target: path, wantTarget: "/apis/acme.io/v1/namespaces/d/things", // 1.20
			reply: `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["t"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}}]}`,
			want:  `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["t"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}}]}`,
		},
		{
			name: "delete with typed options", method: "DELETE", target: path + "/t", mediaType: "application/json",
			body:       `{"apiVersion":"acme.io/v1beta1","kind":"DeleteOptions"}`,
			wantTarget: "/apis/acme.io/v1/namespaces/d/things/t", wantBody: `{"apiVersion":"acme.io/v1","kind":"DeleteOptions"}`,
			reply: newThing, want: oldThing,
		},
		{
			name: "merge patch", method: "PATCH", target: path + "/t?fieldManager=x", mediaType: "application/merge-patch+json",
			body:       `{"metadata":{"labels":{"a":null}},"spec":{"old":null,"mode":"a"}}`,
			wantTarget: "/apis/acme.io/v1/namespaces/d/things/t?fieldManager=x",
			wantBody:   `{"metadata":{"labels":{"a":null}},"spec":{"new":null,"mode":"b"}}`,
			reply:      newThing, want: oldThing, rulesOnly: true,
		},
		{
			name: "strategic merge patch", method: "PATCH", target: path + "/t", mediaType: "application/strategic-merge-patch+json",
			body: `{"spec":{"$retainKeys":["old"],"old":2}}`, wantTarget: "/apis/acme.io/v1/namespaces/d/things/t",
			wantBody: `{"spec":{"$retainKeys":["new"],"new":2}}`, reply: newThing, want: oldThing, rulesOnly: true,
		},
		{
			name: "JSON patch", method: "PATCH", target: path + "/t", mediaType: "application/json-patch+json",
			body: `[{"op":"add","path":"/spec/old","value":2}]`, wantTarget: "/apis/acme.io/v1/namespaces/d/things/t",
			wantBody: `[{"op":"add","path":"/spec/new","value":2}]`, reply: newThing, want: oldThing, rulesOnly: true,
		},
		{
			name: "server-side apply in YAML", method: "PATCH", target: path + "/t?fieldManager=kubectl&force=true", mediaType: "application/apply-patch+yaml",
			body:       "apiVersion: acme.io/v1beta1\nkind: Thing\nmetadata: {name: t}\nspec: {old: 2}\n",
			wantTarget: "/apis/acme.io/v1/namespaces/d/things/t?fieldManager=kubectl&force=true",
			wantBody:   `{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"new":2}}`,
			reply:      newThing, want: oldThing,
		},
	}
	for form, files := range map[string]map[string]string{"rules": {"things.yaml": rules}, "programs": programs} {
		reply := ""
		u := record(t, "a", "1.32.13", things, func(request) string {
			if strings.Contains(reply, `"kind":"Status"`) {
				return respond(404, "application/json", reply)
			}
			return ok(reply)
		})
		r := start(t, files, nil, u)
		for _, tt := range tests {
			if tt.rulesOnly && form != "rules" {
				continue
			}
			t.Run(form+"/"+tt.name, func(t *testing.T) {
				u.forget()
				reply = tt.reply
				got := r.do(tt.method, tt.target, tt.mediaType, tt.body)
				sent := u.only()
				if sent.target != tt.wantTarget || sent.method != tt.method {
					t.Errorf("asked %s %s, want %s", sent.method, sent.target, tt.wantTarget)
				}
				if !sameJSON(sent.body, tt.wantBody) {
					t.Errorf("sent\n%s\nwant\n%s", sent.body, tt.wantBody)
				}
				if want := or(tt.wantType, tt.mediaType); want != "" && !strings.Contains(sent.raw, "Content-Type: "+want+"\r\n") {
					t.Errorf("sent %q, want type %s", sent.raw, want)
				}
				if !sameJSON(got.body, tt.want) {
					t.Errorf("answered\n%s\nwant\n%s", got.body, tt.want)
				}
				if warned := strings.Contains(got.header.Get("Warning"), "acme.io/v1beta1 things"); warned != (got.code == 200) {
					t.Errorf("%d with warning %q", got.code, got.header.Get("Warning"))
				}
			})
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// A watch through a conversion: each event at once, bookmarks and errors with
// nothing changed but the version.
func TestConvertedWatch(t *testing.T) {
	conns := make(chan net.Conn, 1)
	u := record(t, "a", "1.32.13", things, func(q request) string {
		conns <- q.conn
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	client, in := r.raw("GET /apis/acme.io/v1beta1/things?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nHost: mvp\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	upstreamConn := <-conns
	events := bufio.NewReader(resp.Body)
	for _, event := range []struct{ sent, want string }{
		{`{"type":"ADDED","object":` + newThing + `}`, `{"type":"ADDED","object":` + oldThing + `}`},
		{
			`{"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"acme.io/v1","metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
			`{"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"acme.io/v1beta1","metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		},
		{`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}`, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}`},
	} {
		if _, err := io.WriteString(upstreamConn, chunked(event.sent+"\n")); err != nil {
			t.Fatal(err)
		}
		got, err := events.ReadString('\n')
		if err != nil || !sameJSON(got, event.want) {
			t.Fatalf("got event %s, %v, want %s", got, err, event.want)
		}
	}
	client.Close()
	<-u.closed
}

// A list that breaks off upstream must not look complete to the client.
func TestConvertedListCutShort(t *testing.T) {
	item := newThing + "," + strings.Repeat(" ", 1000)
	cut := `{"apiVersion":"acme.io/v1","kind":"ThingList","items":[` + strings.Repeat(item, 1000)
	u := record(t, "a", "1.32.13", things, func(q request) string {
		fmt.Fprintf(q.conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(cut)+10, cut)
		q.conn.Close()
		return ""
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	resp, err := http.Get("http://" + r.addr + "/apis/acme.io/v1beta1/things")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client took a list that was cut short for a whole one")
	}
}

// A merge patch through programs is worked out from the object: read, convert,
// patch, convert back, write the difference on condition, and again on conflict.
func TestPatchThroughPrograms(t *testing.T) {
	conflicts := 1
	u := record(t, "a", "1.32.13", things, func(q request) string {
		if q.method == "PATCH" && conflicts > 0 {
			conflicts--
			return respond(409, "application/json", `{"kind":"Status","apiVersion":"v1","code":409}`)
		}
		return ok(newThing)
	})
	r := start(t, programs, nil, u)
	got := r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t?fieldManager=x", "application/merge-patch+json",
		`{"spec":{"old":null,"mode":"c"}}`, "Authorization", "Bearer mine")
	if got.code != 200 || !sameJSON(got.body, oldThing) {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	var seen []string
	for _, q := range u.got() {
		seen = append(seen, q.method+" "+q.target)
		if !strings.Contains(q.raw, "Authorization: Bearer mine\r\n") {
			t.Errorf("%s %s was not sent with the client's credential: %q", q.method, q.target, q.raw)
		}
		if q.method == "PATCH" && !sameJSON(q.body, `{"metadata":{"resourceVersion":"7"},"spec":{"new":null,"mode":"c"}}`) {
			t.Errorf("patched with %s", q.body)
		}
	}
	const read, write = "GET /apis/acme.io/v1/namespaces/d/things/t", "PATCH /apis/acme.io/v1/namespaces/d/things/t?fieldManager=x"
	if want := strings.Join([]string{read, write, read, write}, ", "); strings.Join(seen, ", ") != want {
		t.Errorf("sent %s\nwant %s", seen, want)
	}
}

// What the client's version cannot hold survives a patch through programs.
func TestPatchKeepsWhatIsNotSeen(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{
		"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"things.response.jq": `del(.spec.n)`,
	}, nil, u)
	r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`)
	got := u.got()
	if len(got) != 2 || !sameJSON(got[1].body, `{"metadata":{"labels":{"a":"b"},"resourceVersion":"7"}}`) {
		t.Errorf("sent %q", got)
	}
}

// A JSON patch cannot fill the memory with copies of copies.
func TestPatchOfCopies(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, programs, nil, u)
	var operations []string
	for i := range 40 {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/spec","path":"/spec/a%d"}`, i))
	}
	got := r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/json-patch+json", "["+strings.Join(operations, ",")+"]")
	if got.code != 413 || !strings.Contains(got.body, "3145728 bytes") {
		t.Errorf("answered %d %s", got.code, got.body)
	}
}

// A JSON patch through programs does what it says.
func TestJSONPatchThroughPrograms(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, programs, nil, u)
	r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/json-patch+json", `[{"op":"test","path":"/spec/old","value":1.50},{"op":"replace","path":"/spec/old","value":2}]`)
	if got := u.got(); len(got) != 2 || !sameJSON(got[1].body, `{"metadata":{"resourceVersion":"7"},"spec":{"new":2}}`) {
		t.Errorf("sent %q", got)
	}
	got := r.do("PATCH", "/apis/acme.io/v1beta1/namespaces/d/things/t", "application/json-patch+json", `[{"op":"test","path":"/spec/old","value":9}]`)
	if got.code != 422 {
		t.Errorf("a test that does not hold was answered %d %s", got.code, got.body)
	}
}

// An event that cannot be converted ends the watch with a reason.
func TestWatchEventThatFails(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunked(`{"type":"ADDED","object":`+newThing+"}\n")
	})
	r := start(t, map[string]string{
		"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"things.response.jq": `error("no")`,
	}, nil, u)
	got := r.do("GET", "/apis/acme.io/v1beta1/things?watch=1", "", "")
	if !strings.HasPrefix(got.body, `{"type":"ERROR","object":{"kind":"Status"`) || !strings.Contains(got.body, "things.response.jq:1:") {
		t.Errorf("the client got %s", got.body)
	}
}

// A single object that a program fails on is a Status, whatever its size.
func TestLargeAnswerThatFails(t *testing.T) {
	large := strings.Replace(newThing, `"n":`, `"x":"`+strings.Repeat("x", 600<<10)+`","n":`, 1)
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(large) })
	r := start(t, map[string]string{
		"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"things.response.jq": `error("no")`,
	}, nil, u)
	got := r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t", "", "")
	if got.code != 500 || !strings.Contains(got.body, "things.response.jq:1:") {
		t.Errorf("answered %d %.200s", got.code, got.body)
	}
}

// A client that takes protobuf only cannot be answered through a conversion; one
// that prefers it is answered in JSON.
func TestConvertedAccept(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	f := func(accept string, code int, want string) {
		t.Helper()
		u.forget()
		got := r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t", "", "", "Accept", accept, "Accept-Encoding", "gzip")
		if got.code != code {
			t.Errorf("Accept: %s was answered %d, want %d: %s", accept, got.code, code, got.body)
		}
		if code != 200 {
			return
		}
		if sent := u.only().raw; !strings.Contains(sent, "\r\nAccept: "+want+"\r\n") || !strings.Contains(sent, "\r\nAccept-Encoding: identity\r\n") {
			t.Errorf("Accept: %s was sent as %q, want %s", accept, sent, want)
		}
	}

	f("application/json", 200, "application/json")
	f("*/*", 200, "application/json")
	f("*", 200, "application/json")
	f("", 200, "application/json")
	f("application/vnd.kubernetes.protobuf, application/json", 200, "application/json")
	f("application/vnd.kubernetes.protobuf, */*;q=0.5", 200, "application/json;q=0.5")
	f("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 200, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	f("application/vnd.kubernetes.protobuf", 406, "")
	f("application/yaml", 200, "application/json")
	f("application/cbor", 200, "application/json")
	f("application/json;q=0.9,application/cbor;q=1", 200, "application/json;q=1")
	f("application/cbor;as=Table;v=v1;g=meta.k8s.io", 200, "application/json;as=Table;v=v1;g=meta.k8s.io")
	f("application/cbor-seq", 406, "")
}

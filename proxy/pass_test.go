package proxy_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

var pods = []served{{"", "v1", "pods", "Pod"}, {"", "v1", "configmaps", "ConfigMap"}, {"", "v1", "secrets", "Secret"}}

// What no policy touches arrives as it was sent: the target byte for byte, header
// lines in order and number, the body and one framing line.
func TestPassThroughBytes(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, nil)
	r := start(t, nil, nil, u)
	tests := []struct{ name, sent, want string }{
		{
			"get with an odd target",
			"GET /api/v1/namespaces/d/services/s:80/proxy/a%2Fb/%2e%2e//Y%2BY%3D?x=%26&y=a+b HTTP/1.1\r\nHost: mvp\r\nX_a.b%2Fc: 1\r\nAccept: a\r\naccept: b\r\n\r\n",
			"GET /api/v1/namespaces/d/services/s:80/proxy/a%2Fb/%2e%2e//Y%2BY%3D?x=%26&y=a+b HTTP/1.1\r\nHost: mvp\r\nX_a.b%2Fc: 1\r\nAccept: a\r\naccept: b\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"body with a length, key order and spaces",
			"POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: mvp\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{ \"z\":1 , \"a\" : 2}",
			"POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: mvp\r\nContent-Type: application/json\r\nX-Forwarded-For: 127.0.0.1\r\nContent-Length: 18\r\n\r\n{ \"z\":1 , \"a\" : 2}",
		},
		{
			"delete with a body", // 5.12
			"DELETE /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: mvp\r\nContent-Length: 2\r\n\r\n{}",
			"DELETE /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: mvp\r\nX-Forwarded-For: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
		},
		{
			"delete without one gets no content type", // 5.11
			"DELETE /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: mvp\r\n\r\n",
			"DELETE /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: mvp\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"impersonation is the caller's own affair", // 1.11, 1.13
			"GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\nAuthorization: Bearer t\r\nImpersonate-User: u\r\nImpersonate-Extra-acme.io%2Fproject: p1\r\nImpersonate-Extra-acme.io%2Fproject: p2\r\n\r\n",
			"GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\nAuthorization: Bearer t\r\nImpersonate-User: u\r\nImpersonate-Extra-acme.io%2Fproject: p1\r\nImpersonate-Extra-acme.io%2Fproject: p2\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"identities are stripped, Connection cannot drop credentials", // 1.12
			"GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\nX-Remote-User: root\r\nx-remote-group: system:masters\r\nX-Remote-Extra-Scopes: a\r\nX-Remote-Uid: 0\r\nX-Kubernetes-Peer-Proxied: true\r\nConnection: authorization, X-Mine\r\nX-Mine: 1\r\nAuthorization: Bearer t\r\n\r\n",
			"GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\nAuthorization: Bearer t\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
		},
		{
			"the peer is appended to X-Forwarded-For", // 1.31
			"GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\nX-Forwarded-For: 8.8.8.8\r\nX-Real-Ip: 9.9.9.9\r\n\r\n",
			"GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\nX-Forwarded-For: 8.8.8.8, 127.0.0.1\r\n\r\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u.forget()
			conn, in := r.raw(tt.sent)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("answered %d, want 200", resp.StatusCode)
			}
			if got := u.only().raw; got != tt.want {
				t.Errorf("the upstream got\n%q\nwant\n%q", got, tt.want)
			}
			conn.Close()
		})
	}
}

// Answers come back with the server's own lines, and none of ours.
func TestPassThroughAnswer(t *testing.T) {
	const reply = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nWarning: 299 - \"one\"\r\nWarning: 299 - \"two\"\r\nAudit-Id: 7\r\nContent-Length: 3\r\n\r\nno\n"
	u := record(t, "a", "1.32.13", pods, func(request) string { return reply })
	r := start(t, nil, nil, u)
	_, in := r.raw("GET /api/v1/pods HTTP/1.1\r\nHost: mvp\r\n\r\n")
	got := make([]byte, len(reply))
	if _, err := io.ReadFull(in, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != reply {
		t.Errorf("the client got\n%q\nwant\n%q", got, reply)
	}
}

// HEAD keeps the length of what GET would give. 5.20.
func TestHead(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, func(request) string { return "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n" })
	r := start(t, nil, nil, u)
	got := r.do("HEAD", "/api/v1/pods", "", "")
	if got.code != 200 || got.header.Get("Content-Length") != "17" || got.body != "" {
		t.Errorf("HEAD gave %d, length %q, body %q", got.code, got.header.Get("Content-Length"), got.body)
	}
}

// A watch gets its head at once, each event at once, and takes the upstream
// connection with it when its client leaves. 1.01, 5.06.
func TestWatchStreams(t *testing.T) {
	conns := make(chan net.Conn, 1)
	u := record(t, "a", "1.32.13", pods, func(q request) string {
		conns <- q.conn
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	})
	r := start(t, nil, nil, u)
	client, in := r.raw("GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: mvp\r\n\r\n")
	resp, err := http.ReadResponse(in, nil) // no event has been sent yet
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	upstreamConn := <-conns
	for _, event := range []string{"{\"type\":\"ADDED\"}\n", "{\"type\":\"MODIFIED\"}\n"} {
		if _, err := io.WriteString(upstreamConn, chunked(event[:16])+chunked(event[16:])); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(event))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
			t.Fatalf("got event %q, %v, want %q", got, err, event)
		}
	}
	client.Close()
	<-u.closed // the upstream request is cancelled
}

// Every error of MVP's own is a Status whose code is the HTTP status.
// 1.30.
func TestErrorsAreStatuses(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"", "v1", "configmaps", "ConfigMap"}, {"acme.io", "v1", "things", "Thing"}}, func(request) string {
		return ok(`{"apiVersion":"acme.io/v1","kind":"Thing"}`)
	})
	r := start(t, map[string]string{
		"10-freeze.match.cel":   `request.namespace == 'frozen'`,
		"10-freeze.deny.cel":    `'nothing changes in ' + request.namespace`,
		"20-broken.match.cel":   `request.resource == 'configmaps' && object.data.x == 'y'`,
		"20-broken.warn.cel":    `'seen'`,
		"30-things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"30-things.request.jq":  `if .spec.bad then error("no such thing") else . end`,
		"40-others.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1alpha1', 'to': 'acme.io/v1'}`,
		"40-others.response.jq": `.no | select(.)`,
	}, nil, u)
	tests := []struct {
		name, method, target, contentType, body string
		code                                    int
		reason, message                         string
		forwarded                               bool
	}{
		{"denied", "POST", "/api/v1/namespaces/frozen/configmaps", "application/json", "{}", 403, "Forbidden", `denied by policy "10-freeze": nothing changes in frozen`, false},
		{"a CEL error is never false", "POST", "/api/v1/namespaces/d/configmaps", "application/json", `{"metadata":{}}`, 500, "PolicyFailed", "20-broken.match.cel:1:", false},
		{"a body that is no JSON", "POST", "/api/v1/namespaces/d/configmaps", "application/json", `{`, 400, "BadRequest", "not valid JSON", false},
		{"a jq program that fails", "POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"bad":true}}`, 500, "PolicyFailed", "30-things.request.jq:1:", false},
		{"an answer whose program gives nothing", "GET", "/apis/acme.io/v1alpha1/namespaces/d/things/t", "", "", 500, "PolicyFailed", "40-others.response.jq:1:", true},
		{"a custom resource in protobuf", "POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/vnd.kubernetes.protobuf", customProtobuf(t), 415, "UnsupportedMediaType", "application/vnd.kubernetes.protobuf", false},
		{"a body that is no protobuf", "POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/vnd.kubernetes.protobuf", "k8s\x00", 400, "BadRequest", "cannot read the body as application/vnd.kubernetes.protobuf", false},
		{"a body that is no CBOR", "POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/cbor", "\xa1", 400, "BadRequest", "cannot read the body as application/cbor", false}, // 1.21
		{"another version in the body", "POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", `{"apiVersion":"acme.io/v1","kind":"Thing"}`, 400, "BadRequest", "the API version in the data (acme.io/v1) does not match the expected API version (acme.io/v1beta1)", false},
		{"a body that no policy looks into", "POST", "/api/v1/namespaces/d/services/s/proxy/x", "application/x-www-form-urlencoded", "a=b", 200, "", "", true},
		{"a body beyond the limit", "POST", "/apis/acme.io/v1beta1/namespaces/d/things", "application/json", `{"x":"` + strings.Repeat("a", 4<<20) + `"}`, 413, "RequestEntityTooLarge", "3145728 bytes", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u.forget()
			got := r.do(tt.method, tt.target, tt.contentType, tt.body)
			var status struct {
				Kind, Reason, Message string
				Code                  int
			}
			if err := json.Unmarshal([]byte(got.body), &status); err != nil {
				t.Fatalf("answer %q is no JSON: %v", got.body, err)
			}
			if tt.code == 200 && got.code == 200 {
				return
			}
			if got.code != tt.code || status.Code != got.code || status.Kind != "Status" || status.Reason != tt.reason {
				t.Errorf("answered %d %+v, want %d %s", got.code, status, tt.code, tt.reason)
			}
			if !strings.Contains(status.Message, tt.message) {
				t.Errorf("message %q does not say %q", status.Message, tt.message)
			}
			if n := len(u.got()); (n > 0) != tt.forwarded {
				t.Errorf("the upstream got %d requests", n)
			}
		})
	}
}

// Only a real 101 opens a pipe, with the bytes sent early on both sides; a
// refusal passes with its body. 1.02, 1.05, 1.08, 1.14.
func TestUpgrade(t *testing.T) {
	const accepted = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\nHELLO"
	refuse := false
	u := record(t, "a", "1.32.13", pods, func(request) string {
		if refuse {
			return respond(403, "application/json", `{"kind":"Status","code":403}`)
		}
		return accepted
	})
	r := start(t, nil, nil, u)
	const exec = "POST /api/v1/namespaces/d/pods/p/exec?command=sh HTTP/1.1\r\nHost: mvp\r\nConnection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
	conn, in := r.raw(exec)
	got := make([]byte, len(accepted))
	if _, err := io.ReadFull(in, got); err != nil {
		t.Fatalf("got %q: %v", got, err)
	}
	if !strings.HasSuffix(string(got), "\r\n\r\nHELLO") || !strings.HasPrefix(string(got), "HTTP/1.1 101 ") {
		t.Errorf("the client got %q", got)
	}
	sent := u.only().raw
	for _, line := range []string{"Connection: Upgrade\r\n", "Upgrade: SPDY/3.1\r\n", "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n"} {
		if strings.Count(sent, line) != 1 {
			t.Errorf("the upstream got %q, want %q once", sent, line)
		}
	}
	conn.Close()

	refuse = true
	_, in = r.raw(exec)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 403 || string(body) != `{"kind":"Status","code":403}` {
		t.Errorf("refusal came as %d %q, %v", resp.StatusCode, body, err)
	}
}

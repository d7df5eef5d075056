package proxy_test

import (
	"fmt"
	"strings"
)

// passRows are requests and answers as Kubernetes' clients and servers, and those
// behind its proxy subresources, send them.
func passRows() []passRow {
	return slicesOf(targetRows(), headerRows(), bodyRows(), statusRows(), answerRows())
}

func slicesOf(lists ...[]passRow) (all []passRow) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

const pod = "/api/v1/namespaces/d/pods/p"

var fine = reply("200 OK", "Content-Type: application/json").with(length, `{"kind":"Pod"}`)

func targetRows() (rows []passRow) {
	const service = "/api/v1/namespaces/d/services/https:s:web/proxy"
	for name, target := range map[string]string{
		"escaped slash":                  service + "/a%2Fb%2fc",
		"escaped dots":                   service + "/a/%2e%2E/b/%2e",
		"dots":                           service + "/a/../../b/./c",
		"double and trailing slashes":    service + "//a//b//",
		"escaped percent and NUL":        service + "/%252F%25/%00",
		"semicolons, stars and pluses":   service + "/a;b=1;c/*+*/$&'(),=:@!~",
		"characters that URLs leave out": service + "/\"<>\\^`{|}",
		"escaped UTF-8":                  service + "/%C3%A4%F0%9F%98%80",
		"empty query":                    pod + "?",
		"odd query":                      pod + "?a=b&a=c&&=d&e&f=%26+%2B",
		"query with a query":             pod + "?a=?/../%2e%2e//x",
		"long query":                     pod + "?labelSelector=" + strings.Repeat("app%20in%20(a,b),", 1000),
		"selectors":                      "/api/v1/pods?labelSelector=app%3Dx%2Ctier%21%3Dy&fieldSelector=metadata.name%3Dp&limit=500&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ==",
		"trailing slash of a resource":   "/api/v1/namespaces/d/pods/",
		"no resource":                    "/healthz/etcd?verbose&exclude=x",
		"the root":                       "/",
		"escaped name":                   "/api/v1/namespaces/d/pods/%70",
	} {
		rows = append(rows, passRow{"target: " + name, ask("GET " + target), "", fine})
	}
	return rows
}

func headerRows() []passRow {
	row := func(name string, lines ...string) passRow { return passRow{name, ask("GET "+pod, lines...), "", fine} }
	groups := make([]string, 500)
	for i := range groups {
		groups[i] = fmt.Sprintf("Impersonate-Group: g%d", i)
	}
	return []passRow{
		row("no line but Host"),
		row("Host as it was sent", "Host: [fd00::1]:443"),
		row("lines of kubectl", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "User-Agent: kubectl/v1.32.0 (linux/amd64) kubernetes/70d3cc9", "Accept-Encoding: gzip", "Kubectl-Command: kubectl get", "Kubectl-Session: 7", "Authorization: Bearer x.y-z_~+/=="),
		row("repeated lines", "Accept: a", "X-A: 1", "accept: b", "ACCEPT: a", "x-a: 1", "Cookie: a=b", "Cookie: c=d"),
		row("names of odd characters", "X_a.b%2Fc: 1", "!#$%&'*+-.^_`|~: 2", "1: 3", "x: 4", "X-lOnG-CaSe: 5"),
		row("values of odd characters", "X: \"a\tb\" , ;=\\ %00 \xc3\xa4 \xff", "Y: ", "Z: :"),
		row("impersonation", "Impersonate-User: system:serviceaccount:d:x", "Impersonate-Uid: 7", "Impersonate-Extra-acme.io%2Fproject: p1", "Impersonate-Extra-acme.io%2Fproject: p2"),
		row("hundreds of groups", append([]string{"Impersonate-User: u"}, groups...)...),
		row("a token of 16 KiB", "Authorization: Bearer "+strings.Repeat("t", 16<<10)),
		row("hop-by-hop lines", "A: 1", "- Connection: keep-alive, X-Mine, authorization", "- X-Mine: 1", "B: 2", "- x-mine: 2", "- Keep-Alive: timeout=5", "- Proxy-Connection: keep-alive", "- Proxy-Authorization: Basic eA==", "- TE: trailers", "- Trailer: X", "Authorization: Bearer t", "C: 3"),
		row("another protocol that is not for MVP", "- Connection: Upgrade, HTTP2-Settings", "- Upgrade: h2c", "- HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", "A: 1"),
		row("claims to be somebody", "- X-Remote-User: root", "A: 1", "- x-REMOTE-group: system:masters", "- X-Remote-Extra-Scopes: all", "- X-Remote-Uid: 0", "- X-Kubernetes-Peer-Proxied: true", "B: 1"),
		row("forwarded before", "- X-Forwarded-For: 10.0.0.1", "+ X-Forwarded-For: 10.0.0.1, 10.0.0.2, 127.0.0.1", "X-Forwarded-Proto: https", "- x-forwarded-for: 10.0.0.2", "X-Forwarded-Host: h", "X-Forwarded-Uri: /u", "Forwarded: for=10.0.0.1", "Via: 1.1 lb", "- X-Real-Ip: 9.9.9.9"),
		row("conditions", "If-None-Match: W/\"1\", \"2\"", "If-Match: *", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT", "Range: bytes=0-1", "Cache-Control: no-store", "Pragma: no-cache", "Date: x"),
		row("audit and trace", "Audit-ID: 5d8f", "Traceparent: 00-1-2-01", "Tracestate: a=b", "X-Request-Id: 1"),
	}
}

func bodyRows() []passRow {
	large := strings.Repeat("0123456789abcde\n", 64<<10) // 1 MiB
	binary := "\x00\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nk8s\x00\xff\xfe"
	json := "Content-Type: application/json"
	rows := []passRow{
		{"post", ask("POST /api/v1/namespaces/d/pods?fieldManager=x", json).with(length, "{ \"z\":1 , \"a\" : 2.0}\n"), "", reply("201 Created", json).with(length, "{}")},
		{"put", ask("PUT "+pod, "Content-Type: application/vnd.kubernetes.protobuf").with(length, "k8s\x00\x01"), "", fine},
		{"patch", ask("PATCH "+pod, "Content-Type: application/apply-patch+yaml").with(length, "a: 1\n---\n"), "", fine},
		{"delete", ask("DELETE " + pod), "", fine},
		{"delete with a body", ask("DELETE "+pod, json).with(length, `{"gracePeriodSeconds":0}`), "", fine},
		{"deletecollection with a chunked body", ask("DELETE /api/v1/namespaces/d/pods?labelSelector=a", json).with(chunks, `{"propagationPolicy":"Orphan"}`), "", fine},
		{"get with a body", ask("GET "+pod).with(length, "x"), "", fine},
		{"options", ask("OPTIONS " + pod), "", reply("200 OK", "Allow: GET, PUT")},
		{"a method of another protocol", ask("PROPFIND /api/v1/namespaces/d/services/s/proxy/x", "Depth: 1").with(length, "<a/>"), "", reply("207 Multi-Status", "Content-Type: text/xml").with(length, "<b/>")},
		{"chunked", ask("POST /api/v1/namespaces/d/pods", json).with(chunks, "{}"), "", fine},
		{"chunked with trailers", ask("POST /api/v1/namespaces/d/pods", json, "- Trailer: X-Checksum").with(trailed, "{}"), "", fine},
		{"chunked and empty", ask("POST /api/v1/namespaces/d/pods", json).with(chunks, ""), "", fine},
		{"empty", ask("POST /api/v1/namespaces/d/pods/p/eviction").with(length, ""), "", fine},
		{"without a length", ask("PUT /api/v1/namespaces/d/services/s/proxy/x"), "", fine},
		{"binary", ask("POST "+pod+"/proxy", "Content-Type: application/octet-stream").with(length, binary), "", reply("200 OK", "Content-Type: application/octet-stream").with(length, binary)},
		{"binary, chunked", ask("POST "+pod+"/proxy").with(chunks, binary), "", reply("200 OK").with(chunks, binary)},
		{"large", ask("POST "+pod+"/proxy").with(length, large), "", reply("200 OK").with(length, large)},
		{"large, chunked", ask("POST "+pod+"/proxy").with(chunks, large), "", reply("200 OK").with(chunks, large)},
		{"compressed", ask("POST "+pod+"/proxy", "Content-Encoding: gzip", "Accept-Encoding: gzip, br").with(length, zipped("{}")), "", reply("200 OK", "Content-Encoding: gzip", "Vary: Accept-Encoding").with(length, zipped(large))},
		{"a form", ask("POST "+pod+"/proxy", "Content-Type: application/x-www-form-urlencoded").with(length, "a=b&c=%20"), "", fine},
		{"a multipart form", ask("POST "+pod+"/proxy", "Content-Type: multipart/form-data; boundary=x").with(length, "--x\r\n\r\na\r\n--x--\r\n"), "", fine},
		{"expectation", ask("POST /api/v1/namespaces/d/pods", json, "- Expect: 100-continue").with(length, "{}"), "", fine},
		{"expectation, chunked", ask("PUT "+pod, "- Expect: 100-continue", json).with(chunks, "{}"), "", fine},
	}
	return rows
}

func statusRows() (rows []passRow) {
	status := func(start string, lines ...string) {
		answer := reply(start, append([]string{"Audit-Id: 1"}, lines...)...).with(length, "{\"kind\":\"Status\"}\n")
		rows = append(rows, passRow{"status " + start, ask("GET " + pod), "", answer})
	}
	status("200 Fine")
	status("404 ")
	status("218 This Is Fine")
	status("999 Request denied")
	status("202 Accepted")
	status("206 Partial Content", "Content-Range: bytes 0-1/2")
	status("301 Moved Permanently", "Location: /api/v1/../x?y=%2F#z")
	status("302 Found", "Location: http://elsewhere/%zz")
	status("303 See Other", "Location: x")
	status("307 Temporary Redirect", "Location: //x/y")
	status("308 Permanent Redirect", "Location: ")
	status("400 Bad Request", "Content-Type: application/json")
	status("401 Unauthorized", "Www-Authenticate: Basic realm=\"x\"", "WWW-Authenticate: Bearer")
	status("403 Forbidden", "X-Content-Type-Options: nosniff", "X-Kubernetes-Pf-Flowschema-Uid: 1", "X-Kubernetes-Pf-Prioritylevel-Uid: 2")
	status("409 Conflict")
	status("410 Gone")
	status("415 Unsupported Media Type")
	status("422 Unprocessable Entity")
	status("429 Too Many Requests", "Retry-After: 1")
	status("500 Internal Server Error", "Cache-Control: no-cache, private")
	status("503 Service Unavailable", "Retry-After: 120")
	status("504 Gateway Timeout")
	return rows
}

func answerRows() []passRow {
	get, head := ask("GET "+pod), ask("HEAD "+pod)
	warnings := make([]string, 400)
	for i := range warnings {
		warnings[i] = fmt.Sprintf("Warning: 299 - \"%s %d\"", strings.Repeat("w", 200), i)
	}
	return []passRow{
		{"no line at all", get, "", reply("200 OK").with(length, "x")},
		{"length first", get, "", reply("200 OK", "Content-Length: 2", "Content-Type: application/json", "Date: Thu, 01 Jan 1970 00:00:00 GMT").with(none, "{}")},
		{"plain text 404", get, "", reply("404 Not Found", "Content-Type: text/plain; charset=utf-8", "X-Content-Type-Options: nosniff", "Date: x", "Server: y").with(length, "404 page not found\n")},
		{"repeated lines", get, "", reply("200 OK", "Warning: 299 - \"one\"", "Set-Cookie: a=b; Path=/", "warning: 299 - \"two\"", "Set-Cookie: a=b; Path=/", "WARNING: 299 - \"one\"").with(length, "x")},
		{"huge head", get, "", reply("200 OK", warnings...).with(length, "x")},
		{"odd names and values", get, "", reply("200 OK", "x_y.z: 1", "!#$%&'*+-.^_`|~: \xff\ta", "E: ").with(length, "x")},
		{"hop-by-hop lines", get, "", reply("200 OK", "A: 1", "- Connection: keep-alive, X-Mine", "- X-Mine: 1", "- Keep-Alive: timeout=5", "- Upgrade: h2c", "B: 2").with(length, "x")},
		{"the server closes", get, "", reply("200 OK", "- Connection: close").with(length, "x")},
		{"chunked", get, "", reply("200 OK", "Content-Type: application/json").with(chunks, "{}")},
		{"chunked and empty", get, "", reply("200 OK").with(chunks, "")},
		{"chunked with trailers", get, "", reply("200 OK", "- Trailer: X-Checksum").with(trailed, "x")},
		{"until the connection closes", get, "", reply("200 OK", "Content-Type: text/plain").with(closes, "log\n")},
		{"until it closes, at once", get, "", reply("200 OK").with(closes, "")},
		{"empty", get, "", reply("200 OK", "Etag: \"1\"").with(length, "")},
		{"204", ask("DELETE " + pod), "", reply("204 No Content", "X: 1").with(none, "")},
		{"304", ask("GET "+pod, "If-None-Match: \"1\""), "", reply("304 Not Modified", "Etag: \"1\"", "Vary: Accept").with(none, "")},
		{"304 with the length of the document", get, "", reply("304 Not Modified", "Content-Length: 7", "Etag: \"1\"").with(none, "")},
		{"HEAD", head, "", reply("200 OK", "Content-Type: x", "Content-Length: 17", "Etag: \"1\"").with(none, "")},
		{"HEAD without a length", head, "", reply("200 OK", "Content-Type: x").with(none, "")},
		{"HEAD of a chunked document", head, "", reply("200 OK", "Content-Type: x", "- Transfer-Encoding: chunked").with(none, "")},
		{"HEAD of nothing there", head, "", reply("404 Not Found", "Content-Length: 19").with(none, "")},
		{"100 before the answer", ask("POST "+pod).with(length, "x"), "HTTP/1.1 100 Continue\r\n\r\n", fine},
		{"103 and 102 before the answer", get, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n", fine},
		{"discovery of a proxied service", ask("GET /api/v1/namespaces/d/services/s/proxy/apis"), "", reply("200 OK", "Content-Type: application/json", "Vary: Accept", "Vary: Origin", "Access-Control-Allow-Origin: *").with(length, "{}")},
	}
}

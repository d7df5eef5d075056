package proxy_test

// Faults that people met in public with proxies of this kind. Each has a number, and
// a test that would show it: one that is called after the number, here and in the
// files beside, or one that shows more.
//
//	1.01 watch held back in a buffer           TestWatchStreams, Test1_06
//	1.02 upgrade lost                          TestUpgrade; bench/e2e TestStreams
//	1.05 Connection of several hops            Test1_05; bench/e2e TestStreams
//	1.06 middleware breaks upgrades            Test1_06; bench/e2e TestStreams, with policies
//	1.07 upgrade over HTTP/2                   Test1_07
//	1.08 refused upgrade and fallback          TestUpgrade; bench/e2e TestStreams
//	1.09 idle timeouts cut streams             Test1_09; bench/e2e TestStreams
//	1.11 impersonation with our credential     TestPassThroughBytes, TestImpersonationByClient
//	1.12 X-Remote-* spoofed                    TestIdentity, TestIdentityOnEveryWay, TestBytes
//	1.13 Impersonate-Extra keys                TestPassThroughBytes, TestBytes, FuzzImpersonation; bench/e2e TestIdentities
//	1.14 pipe after a failed upgrade           TestUpgrade, TestRequestBehindRefusedUpgrade
//	1.17 watch hangs when its server restarts  Test1_17, TestServerHangs
//	1.20 Table and PartialObjectMetadata       TestConvertedRequests, TestConvertedAccept
//	1.21 CBOR fallback                         TestErrorsAreStatuses, TestBytes
//	1.22 long heads                            Test1_22, TestBytes
//	1.23 Expect: 100-continue                  Test1_23, TestBytes; front TestExpect, TestEarlyAnswer; upstream TestEarlyAnswer
//	1.24 body length lost                      Test1_24, TestBytes
//	1.25 escaped slash                         Test1_25, TestBytes
//	1.26 slashes in the base URL               Test1_26; bench/e2e TestEndToEnd
//	1.27 redirects                             Test1_27, TestBytes
//	1.28 OpenAPI links                         Test1_28
//	1.29 discovery caching                     Test1_29
//	1.30 Status and code disagree              TestErrorsAreStatuses, TestFaults, TestMalformed
//	1.31 source address                        TestPassThroughBytes, TestBytes
//	1.32 a review for each value               Test1_32, TestImpersonationIsBounded
//	3.01 /apis and /apis/G/V disagree          Test3_01; bench/e2e TestRollingUpgrade
//	3.02 api-resources of an unrelated group   Test3_02; bench/e2e TestRollingUpgrade
//	3.03 namespaces stuck Terminating          Test3_03; bench/e2e TestRollingUpgrade
//	3.04 objects orphaned                      Test3_04; bench/e2e TestRollingUpgrade
//	3.07 protobuf refused by the older server  Test3_07, TestRefusals
//	3.09 discovery flutters                    Test3_09
//	3.10 namespace deleted while an API is down Test3_10
//	3.11 dead group stays listed               Test3_11
//	3.13 too large resource version            Test3_13, TestWhatSticksWhenBusy, TestAffinity
//	3.14 old server cannot read the new        Test3_14, TestRefusals
//	3.15 version flips                         Test3_15
//	3.16 stale map after a version goes        Test3_16
//	3.17 proxy loops                           Test3_17
//	3.18 two servers of one identity           Test3_18
//	3.19 peer-aggregated discovery             upstream Test3_19
//	5.02 escapes decoded                       Test5_02, TestBytes, FuzzPassThrough
//	5.03 slashes collapsed                     Test5_03, TestBytes
//	5.06 client's leaving not seen             TestWatchStreams, TestClientsVanish; front TestOnGone; bench/e2e TestEndToEnd
//	5.07 answer read whole first               Test5_07
//	5.08 memory with slow readers              Test5_08
//	5.10 shutdown hangs or cuts                TestShutdownEndsWatches; front TestShutdown, TestShutdownEndsTunnels; bench/e2e TestShutdown
//	5.11 Content-Type invented                 TestPassThroughBytes, TestBytes
//	5.12 bodies of GET and DELETE              TestPassThroughBytes, TestBytes
//	5.13 body lost before a retry              Test5_13, TestSmallWriteGoesElsewhere; upstream TestMaxConns
//	5.14 invited and silent                    Test5_14; front TestExpectThenNothing
//	5.15 memory of tunnels                     Test5_15
//	5.16 header names                          Test5_16, TestBytes, FuzzPassThrough
//	5.17 addresses change                      upstream Test5_17, TestNameMoves
//	5.18 handshakes without a limit            Test5_18; front TestSlowHandshakes; upstream TestSilentHandshake
//	5.19 timeouts on transfers, shared state   Test5_19, Test1_09, TestFaults, under the race detector
//	5.20 HEAD                                  TestHead, TestBytes

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// Heads of many KiB pass both ways.
func Test1_22_LongHeads(t *testing.T) {
	warnings := strings.Repeat("Warning: 299 - \""+strings.Repeat("w", 200)+"\"\r\n", 60)
	u := record(t, "a", "1.32.13", pods, func(request) string {
		return "HTTP/1.1 200 OK\r\n" + warnings + "Content-Length: 2\r\n\r\n{}"
	})
	r := start(t, nil, nil, u)
	f := func(name, head string) {
		t.Helper()
		u.forget()
		_, in := r.raw(head)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 || len(resp.Header["Warning"]) != 60 {
			t.Errorf("%s: answered %d with %d warnings, want 200 with 60", name, resp.StatusCode, len(resp.Header["Warning"]))
		}
		if got := u.only().raw; len(got) < len(head) {
			t.Errorf("%s: %d bytes arrived of %d", name, len(got), len(head))
		}
	}

	f("a token of 16 KiB", "GET /api/v1/pods HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer "+strings.Repeat("t", 16<<10)+"\r\n\r\n")
	f("300 groups", "GET /api/v1/pods HTTP/1.1\r\nHost: m\r\n"+strings.Repeat("Impersonate-Group: g\r\n", 300)+"\r\n")
	f("a selector of 20 KiB", "GET /api/v1/pods?labelSelector="+strings.Repeat("a", 20<<10)+" HTTP/1.1\r\nHost: m\r\n\r\n")
}

// A client that asks before it sends gets its 100, and the whole body arrives
// without a bare Expect.
func Test1_23_ExpectContinue(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, nil)
	r := start(t, nil, nil, u)
	body := strings.Repeat("x", 2<<20)
	conn, in := r.raw(fmt.Sprintf("POST /api/v1/namespaces/d/pods HTTP/1.1\r\nHost: m\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v, want a 100", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := u.only(); got.body != body || strings.Contains(got.raw, "Expect") || resp.StatusCode != 200 {
		t.Errorf("answered %d; %d bytes arrived with head %q", resp.StatusCode, len(got.body), strings.SplitN(got.raw, "\r\n\r\n", 2)[0])
	}
}

// The framing that arrives fits the body, in one line.
func Test1_24_Framing(t *testing.T) {
	u := record(t, "a", "1.32.13", append(things, pods...), nil)
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	const converted = `{"apiVersion":"acme.io/v1beta1","kind":"Thing","spec":{"old":1}}`
	f := func(method, path, framing, body, wantFraming, wantBody string) {
		t.Helper()
		u.forget()
		_, in := r.raw(method + " " + path + " HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\n" + framing + "\r\n" + body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got := u.only()
		head, _, _ := strings.Cut(got.raw, "\r\n\r\n")
		lines := strings.Count(head, "Content-Length:") + strings.Count(head, "Transfer-Encoding:")
		if lines != strings.Count(wantFraming, ":") || !strings.Contains(head, wantFraming) || got.body != wantBody {
			t.Errorf("%s %s with %q arrived as %q, want framing %q and body %q", method, path, framing, got.raw, wantFraming, wantBody)
		}
	}

	const path = "/api/v1/namespaces/d/pods/p"
	for _, method := range []string{"PUT", "POST", "PATCH"} {
		f(method, path, "Content-Length: 2\r\n", "{}", "Content-Length: 2", "{}")
		f(method, path, "Content-Length: 0\r\n", "", "Content-Length: 0", "")
		f(method, path, "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked", "{}")
	}
	const wanted = `{"apiVersion":"acme.io/v1","kind":"Thing","spec":{"new":1}}`
	old := "/apis/acme.io/v1beta1/namespaces/d/things"
	f("POST", old, fmt.Sprintf("Content-Length: %d\r\n", len(converted)), converted, fmt.Sprintf("Content-Length: %d", len(wanted)), wanted)
	f("POST", old, "Transfer-Encoding: chunked\r\n", chunked(converted)+"0\r\n\r\n", fmt.Sprintf("Content-Length: %d", len(wanted)), wanted)
}

// Redirects are the client's business.
func Test1_27_Redirects(t *testing.T) {
	for _, code := range []int{301, 302, 307, 308} {
		u := record(t, "a", "1.32.13", pods, func(request) string {
			return fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", code)
		})
		r := start(t, nil, nil, u)
		got := r.do("POST", "/api/v1/namespaces/d/services/s/proxy", "", "")
		if got.code != code || got.header.Get("Location") != "/x" {
			t.Errorf("a %d came as %d to %q", code, got.code, got.header.Get("Location"))
		}
		u.only()
	}
}

// Discovery keeps its ETag until it changes, varies by Accept, and says 304.
func Test1_29_DiscoveryCaching(t *testing.T) {
	a := record(t, "a", "1.31.14", append(things, pods...), nil)
	b := record(t, "b", "1.32.13", []served{{"acme.io", "v2", "things", "Thing"}}, nil)
	r := start(t, map[string]string{"things.yaml": rules}, nil, a, b)
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	first := r.do("GET", "/apis", "", "", "Accept", aggregated)
	etag := first.header.Get("Etag")
	for range 10 {
		again := r.do("GET", "/apis", "", "", "Accept", aggregated)
		if again.body != first.body || again.header.Get("Etag") != etag || etag == "" {
			t.Fatal("discovery changes from answer to answer")
		}
	}
	if got := first.header.Get("Vary"); !strings.Contains(got, "Accept") {
		t.Errorf("Vary is %q", got)
	}
	if got := r.do("GET", "/apis", "", "", "Accept", aggregated, "If-None-Match", etag); got.code != 304 || got.body != "" {
		t.Errorf("If-None-Match was answered %d %q", got.code, got.body)
	}
	groups := r.do("GET", "/apis", "", "", "Accept", "application/json")
	for _, want := range []string{`"acme.io/v1"`, `"acme.io/v2"`, `"acme.io/v1beta1"`} {
		if !strings.Contains(groups.body, want) {
			t.Errorf("the unaggregated list %s lacks %s", groups.body, want)
		}
	}
}

// Every group version that discovery lists is answered at that moment.
func Test3_01_ListedIsServed(t *testing.T) {
	a := record(t, "a", "1.31.14", []served{{"acme.io", "v1", "things", "Thing"}, {"old.io", "v1", "olds", "Old"}}, nil)
	b := record(t, "b", "1.32.13", []served{{"acme.io", "v1", "things", "Thing"}, {"new.io", "v1", "news", "New"}}, nil)
	r := start(t, map[string]string{"things.yaml": rules}, nil, a, b)
	for range 50 {
		for _, gv := range []string{"acme.io/v1", "acme.io/v1beta1", "old.io/v1", "new.io/v1"} {
			if got := r.do("GET", "/apis/"+gv, "", ""); got.code != 200 || !strings.Contains(got.body, `"groupVersion":"`+gv+`"`) {
				t.Fatalf("/apis/%s was answered %d %s", gv, got.code, got.body)
			}
		}
	}
}

// What only one server has goes to it, always; what it alone had while it is away
// is 503, never 404; what nobody ever had is the server's own 404.
func Test3_09_OnlyOneServer(t *testing.T) {
	answer := func(q request) string {
		if strings.Contains(q.target, "nothings") {
			return respond(404, "text/plain", "404 page not found\n")
		}
		return ok("{}")
	}
	a := record(t, "a", "1.31.14", []served{{"old.io", "v1", "olds", "Old"}}, answer)
	b := record(t, "b", "1.32.13", []served{{"new.io", "v1", "news", "New"}}, answer)
	r := start(t, nil, nil, a, b)
	for range 20 {
		r.do("GET", "/apis/old.io/v1/olds", "", "")
		r.do("GET", "/apis/new.io/v1/news", "", "")
	}
	if len(a.got()) != 20 || len(b.got()) != 20 {
		t.Errorf("a answered %d, b %d requests, want 20 each", len(a.got()), len(b.got()))
	}
	if got := r.do("GET", "/apis/none.io/v1/nothings", "", ""); got.code != 404 || got.body != "404 page not found\n" {
		t.Errorf("what nobody has was answered %d %q", got.code, got.body)
	}
	a.listener.Close()
	a.hangUp()
	got := r.do("GET", "/apis/old.io/v1/olds", "", "")
	if got.code != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"reason":"ServiceUnavailable"`) {
		t.Errorf("without its server the kind was answered %d %v %s", got.code, got.header, got.body)
	}
	if list := r.do("GET", "/apis", "", ""); !strings.Contains(list.body, "old.io/v1") {
		t.Errorf("the group is gone from discovery while its server is away: %s", list.body)
	}
}

// A "too large resource version" answer passes as it is.
func Test3_13_TooLargeResourceVersion(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Timeout: Too large resource version: 9, current: 7","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`
	u := record(t, "a", "1.32.13", things, func(request) string { return respond(504, "application/json", status) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	for _, version := range []string{"v1", "v1beta1"} {
		u.forget()
		got := r.do("GET", "/apis/acme.io/"+version+"/things?resourceVersion=9", "", "")
		if got.code != 504 || got.body != status {
			t.Errorf("%s: got %d %s", version, got.code, got.body)
		}
		u.only() // and it was not tried again
	}
}

// A body of known length is handed on as it comes.
func Test5_07_BodiesStream(t *testing.T) {
	conns := make(chan net.Conn, 1)
	u := record(t, "a", "1.32.13", pods, func(q request) string {
		conns <- q.conn
		return "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx"
	})
	r := start(t, nil, nil, u)
	conn, in := r.raw("GET /api/v1/namespaces/d/pods/p/log HTTP/1.1\r\nHost: m\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close() // first, or the other Close waits for the rest of the body
	upstreamConn := <-conns
	body := bufio.NewReader(resp.Body)
	for i := range 5 {
		if b, err := body.ReadByte(); err != nil || b != 'x' {
			t.Fatalf("byte %d is %q, %v", i, b, err)
		}
		if _, err := io.WriteString(upstreamConn, "x"); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that closes before it answers got a POST at most once, and its client a
// Status; a GET succeeds elsewhere.
func Test5_13_NothingTwice(t *testing.T) {
	hang := func(q request) string { q.conn.Close(); return "" }
	a := record(t, "a", "1.31.14", pods, hang)
	b := record(t, "b", "1.32.13", pods, hang)
	r := start(t, nil, nil, a, b)
	got := r.do("POST", "/api/v1/namespaces/d/pods", "application/json", `{"a":1}`)
	if got.code != 502 || !strings.Contains(got.body, "the request may have been executed") {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	if posts := append(a.got(), b.got()...); len(posts) != 1 || posts[0].body != `{"a":1}` {
		t.Errorf("the servers got %q", posts)
	}

	healthy := record(t, "b", "1.32.13", pods, nil)
	broken := record(t, "a", "1.31.14", pods, hang)
	r = start(t, nil, nil, broken, healthy)
	for i := range 20 { // callers spread over both
		if got := r.do("GET", "/api/v1/pods", "", "", "Authorization", fmt.Sprintf("Bearer %d", i)); got.code != 200 {
			t.Errorf("a GET was answered %d %s though a server could answer it", got.code, got.body)
		}
	}
	if len(broken.got()) == 0 {
		t.Error("no GET went to the broken server first: the test shows nothing")
	}
}

// A hundred writes at once, for which there is one connection, each arrive whole and
// once.
func Test5_13_ParallelBodies(t *testing.T) {
	var open atomic.Int32
	u, _ := tapeRecorder(t, nil, "a", func(request) string {
		if n := open.Add(1); n > 1 {
			t.Errorf("%d writes are under way together", n)
		}
		defer open.Add(-1)
		runtime.Gosched()
		return ok("{}")
	})
	s := raise(t, setting{upstream: upstream.Config{MaxConnsPerServer: 1, DialTimeout: patience}}, u)
	var all sync.WaitGroup
	for i := range 100 {
		body := fmt.Sprintf(`{"n":%d}`, i)
		raw := postHead + fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		all.Go(func() {
			conn, err := s.connect()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, raw); err != nil {
				t.Error(err)
			}
			if got, err := readAnswer(bufio.NewReader(conn), raw); err != nil || got.code != http.StatusOK {
				t.Errorf("write %d was answered %d %s, %v", i, got.code, got.body, err)
			}
		})
	}
	all.Wait()
	seen := map[string]int{}
	for _, q := range u.got() {
		seen[q.body]++
	}
	for i := range 100 {
		if n := seen[fmt.Sprintf(`{"n":%d}`, i)]; n != 1 {
			t.Errorf("body %d arrived %d times", i, n)
		}
	}
}

// Another spelling of a path is no way round a policy.
func Test5_02_SpellingsOfAPath(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, nil)
	r := start(t, map[string]string{
		"10-secrets.match.cel": `request.resource == 'secrets' && request.namespace == 'kube-system'`,
		"10-secrets.deny.cel":  `'not these'`,
	}, nil, u)
	f := func(target string, code int, arrives bool) {
		t.Helper()
		u.forget()
		_, in := r.raw("GET " + target + " HTTP/1.1\r\nHost: m\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != code || (len(u.got()) > 0) != arrives {
			t.Errorf("%s was answered %d and sent %d times, want %d, %t", target, resp.StatusCode, len(u.got()), code, arrives)
		}
	}

	f("/api/v1/namespaces/kube-system/secrets", 403, false)
	f("/api/v1/namespaces/kube%2Dsystem/secrets", 403, false)
	f("/api/v1/namespaces/kube-system/secrets/", 403, false)
	f("/api/v1/namespaces/kube-system/s%65crets", 403, false)
	f("//api/v1/namespaces/kube-system/secrets", 400, false)
	f("http://x/api/v1/namespaces/kube-system/secrets", 400, false)
	f("/api/v1/namespaces/d/../kube-system/secrets", 200, true) // the server, too, sees a namespace d and a resource ".."
	f("/api/v1/namespaces/d/secrets", 200, true)
}

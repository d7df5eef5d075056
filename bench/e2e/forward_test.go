package e2e

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
)

// forward is a running `kubectl port-forward`.
type forward struct {
	kubectl *running
	addrs   map[int]string // by port of the pod
}

func startForward(t *testing.T, k streamer, ports ...int) *forward {
	t.Helper()
	args := []string{"port-forward", "pod/" + kubelet.Pod}
	for _, port := range ports {
		args = append(args, fmt.Sprintf(":%d", port))
	}
	r := k.in(t).start(args...)
	f := &forward{kubectl: r, addrs: map[int]string{}}
	for _, port := range ports {
		f.addrs[port] = r.sees(t, fmt.Sprintf(`Forwarding from (127\.0\.0\.1:\d+) -> %d\n`, port))
	}
	return f
}

func (f *forward) dial(t *testing.T, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", f.addrs[port])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// testPortForward sends small and big bodies both ways, some at the same time.
func testPortForward(t *testing.T, k streamer) {
	f := startForward(t, k, kubelet.HTTPPort, kubelet.EchoPort)
	base := "http://" + f.addrs[kubelet.HTTPPort]
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()

	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			target := fmt.Sprintf("/get/%d?a=b", i)
			if got := send(t, client, http.MethodGet, base+target, nil); !strings.Contains(got, `"target":"`+target+`"`) {
				t.Errorf("GET %s over a forwarded port answered %.200s", target, got)
			}
		})
	}
	all.Wait()
	checkBigBodies(t, client, base)
	echo(t, f.dial(t, kubelet.EchoPort), strings.Repeat("there and back", 10_000))
}

// checkBigBodies sends a big body to the pod's web server and reads one from it.
func checkBigBodies(t *testing.T, client *http.Client, base string) {
	t.Helper()
	body := make([]byte, bigBody)
	_, _ = rand.Read(body)
	want := fmt.Sprintf("%s %d\n", checksum(t, bytes.NewReader(body)), bigBody)
	if got := send(t, client, http.MethodPost, base+"/sha256", bytes.NewReader(body)); got != want {
		t.Errorf("of a big body that was sent, %q arrived, want %q", got, want)
	}
	big := send(t, client, http.MethodGet, base+fmt.Sprintf("/bytes?n=%d", bigBody), nil)
	again := send(t, client, http.MethodGet, base+fmt.Sprintf("/bytes?n=%d", bigBody), nil)
	if len(big) != bigBody || big != again {
		t.Errorf("got %d and %d bytes, want the same %d twice", len(big), len(again), bigBody)
	}
}

// send sends a request, which must be answered 200, and returns the body.
func send(t *testing.T, client *http.Client, method, url string, body io.Reader) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %d %.200s, %v", method, url, resp.StatusCode, got, err)
	}
	return string(got)
}

// testKubectlProxy uses `kubectl proxy`, an HTTP client of MVP with a server of
// its own.
func testKubectlProxy(t *testing.T, through, direct streamer) {
	var answers []string
	for _, k := range []streamer{through, direct} {
		addr := k.start("proxy", "--port=0").sees(t, `Starting to serve on (127\.0\.0\.1:\d+)\n`)
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		base := "http://" + addr
		pod := send(t, client, http.MethodGet, base+"/api/v1/namespaces/default/pods/"+kubelet.Pod, nil)
		seen := podSaw(t, send(t, client, http.MethodGet, base+podProxy+"/a/b?c=d", nil))
		answers = append(answers, pod+"\n"+seen)
	}
	if answers[0] != answers[1] {
		t.Errorf("by kubectl proxy through mvp:\n%s\ndirect:\n%s", answers[0], answers[1])
	}
}

const (
	podProxy     = "/api/v1/namespaces/default/pods/" + kubelet.Pod + ":8080/proxy"
	serviceProxy = "/api/v1/namespaces/default/services/" + kubelet.Service + ":http/proxy"
	nodeProxy    = "/api/v1/nodes/" + kubelet.Node + "/proxy"
)

// podSaw is what the pod's web server says that it got, without the addresses
// that proxies add.
func podSaw(t *testing.T, answer string) string {
	t.Helper()
	var seen struct {
		Method, Target string
		Header         http.Header
	}
	if err := json.Unmarshal([]byte(answer), &seen); err != nil {
		return answer
	}
	seen.Header.Del("X-Forwarded-For")
	seen.Header.Del("Kubectl-Session") // random
	text, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testProxySubresources compares what pods, services and nodes answer by their
// proxy subresources through MVP and direct, and what they got to see.
func testProxySubresources(t *testing.T, m *mvp) {
	client, direct := m.client(), m.lab.URL("b")
	for _, tt := range []struct{ method, path, body string }{
		{"GET", podProxy + "/", ""},
		{"GET", podProxy, ""}, // a redirect
		{"GET", podProxy + "/a/b?x=1&y=%20&x=2", ""},
		{"GET", podProxy + "/a%2Fb", ""},
		{"GET", podProxy + "/a%20b/%C3%A9;v=1", ""},
		{"GET", podProxy + "/?watch=1", ""},
		{"GET", podProxy + "/api/v1/namespaces/default/secrets", ""},
		{"GET", podProxy + "/refuse", ""},
		{"GET", "/api/v1/namespaces/default/pods/" + kubelet.Pod + ":1/proxy/", ""},
		{"GET", "/api/v1/namespaces/default/pods/no-such-pod/proxy/", ""},
		{"HEAD", podProxy + "/a", ""},
		{"OPTIONS", podProxy + "/a", ""},
		{"POST", serviceProxy + "/a", "a body"},
		{"PUT", serviceProxy + "/sha256", "a body"},
		{"PATCH", serviceProxy + "/sha256", `{"spec":{}}`},
		{"DELETE", serviceProxy + "/sha256", "a body"},
		{"GET", serviceProxy + "/bytes?n=100000", ""},
		{"GET", nodeProxy + "/healthz", ""},
		{"GET", nodeProxy + "/containerLogs/default/" + kubelet.Pod + "/" + kubelet.Main + "?limitBytes=8", ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			got, want := ask(t, client, tt.method, m.url+tt.path, tt.body), ask(t, client, tt.method, direct+tt.path, tt.body)
			if got != want {
				t.Errorf("through mvp:\n%s\ndirect:\n%s", got, want)
			}
		})
	}
	t.Run("big bodies", func(t *testing.T) { checkBigBodies(t, client, m.url+serviceProxy) })
}

// ask returns an answer as text: its status, the header lines that mean
// something, its body.
func ask(t *testing.T, client *http.Client, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Transport.RoundTrip(req) // a redirect is an answer too
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, url, err)
	}
	resp.Header.Del("Date")
	resp.Header.Del("Audit-Id")
	if resp.Header.Get("Content-Type") == "application/json" {
		resp.Header.Del("Content-Length") // what the pod got has one address more
	}
	return fmt.Sprintf("%s\n%v\n%s", resp.Status, resp.Header, podSaw(t, string(answer)))
}

// rawConn is a TLS connection with MVP on which a test says what it likes.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

func (m *mvp) raw(t *testing.T) *rawConn {
	t.Helper()
	config := m.client().Transport.(bearer).next.(*http.Transport).TLSClientConfig
	conn, err := tls.Dial("tcp", strings.TrimPrefix(m.url, "https://"), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &rawConn{conn, bufio.NewReader(conn)}
}

// asks sends the head of a request as it is and returns the answer.
func (c *rawConn) asks(t *testing.T, lines ...string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

const execTarget = "/api/v1/namespaces/default/pods/" + kubelet.Pod + "/exec?command=date&container=" + kubelet.Main + "&stdout=1"

// testConnectionHeader upgrades with the Connection header that a chain of
// proxies makes.
func testConnectionHeader(t *testing.T, m *mvp) {
	for _, connection := range []string{"Connection: Upgrade", "Connection: keep-alive, Upgrade", "Connection: close, upgrade, close", "Connection: keep-alive\r\nConnection: Upgrade"} {
		resp := m.raw(t).asks(t, "POST "+execTarget+" HTTP/1.1", "Host: mvp", "Authorization: Bearer "+m.lab.Token(controlplane.Admin),
			connection, "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")
		if got := fmt.Sprint(resp.StatusCode, resp.Header["Connection"], resp.Header["Upgrade"]); got != "101 [Upgrade] [SPDY/3.1]" {
			t.Errorf("%q: the answer is %s", connection, got)
		}
	}
}

// testRefusedUpgrade has the server refuse an upgrade. It must leave no open pipe:
// the next request is one of its sender's own.
func testRefusedUpgrade(t *testing.T, m *mvp) {
	conn := m.raw(t)
	alice := "Authorization: Bearer " + m.lab.Token(controlplane.Alice)
	refused := conn.asks(t, "POST "+execTarget+" HTTP/1.1", "Host: mvp", alice,
		"Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")
	body, err := io.ReadAll(refused.Body)
	if err != nil || refused.StatusCode != http.StatusForbidden || !strings.Contains(string(body), `"reason":"Forbidden"`) {
		t.Fatalf("the upgrade was answered %d %s, %v; want the server's 403", refused.StatusCode, body, err)
	}
	if refused.Close {
		return
	}
	next := conn.asks(t, "GET /api/v1/namespaces/default/secrets HTTP/1.1", "Host: mvp", alice)
	body, err = io.ReadAll(next.Body)
	if err != nil || next.StatusCode != http.StatusForbidden || !strings.Contains(string(body), `User \"alice\" cannot list`) {
		t.Errorf("the request after it was answered %d %s, %v; want alice's own 403", next.StatusCode, body, err)
	}
}

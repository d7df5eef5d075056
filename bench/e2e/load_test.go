package e2e

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// An endpoint is what a load is put on: MVP, or a load balancer in its place.
type endpoint struct {
	name       string // a word, part of the names of objects
	lab        *lab
	url        string
	kubeconfig string // as the administrator
	tally      *tally

	// converts is true where API versions that no server has any more are served.
	converts bool

	// reconnects is true where each request has a connection of its own.
	reconnects bool
}

func (l *lab) endpoint(t *testing.T, name, url string) *endpoint {
	t.Helper()
	path, err := l.Kubeconfig(controlplane.Admin, controlplane.Endpoint{Name: name, URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return &endpoint{name: name, lab: l, url: url, kubeconfig: path, tally: newTally(name)}
}

// namespace is where the load's objects are.
func (e *endpoint) namespace() string { return "load-" + e.name }

// config is that of one client, with connections of its own and every request
// counted under its name. Answers are protobuf where both sides know it.
func (e *endpoint) config(t *testing.T, client string, protobuf bool) (*rest.Config, *http.Client) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", e.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent, config.QPS, config.WarningHandler = client, -1, rest.NoWarnings{}
	if protobuf {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second}).DialContext // not shared, as processes share none
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if e.reconnects {
			next = closing{next}
		}
		return &counter{client, e.tally, next}
	})
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return config, h
}

// closing has a connection closed after each request.
type closing struct{ next http.RoundTripper }

func (c closing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Close = true
	return c.next.RoundTrip(req)
}

// dynamic is a client of any kind, in JSON.
func (e *endpoint) dynamic(t *testing.T, client string) dynamic.Interface {
	t.Helper()
	config, h := e.config(t, client, false)
	c, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kubectl is a kubectl of that version with a home directory of its own.
func (e *endpoint) kubectl(t *testing.T, version string) kubectl {
	l := *e.lab
	l.home = t.TempDir()
	return kubectl{t, &l, version, e.kubeconfig}
}

// A traffic is clients of one endpoint that work until they are told to end.
type traffic struct {
	*endpoint
	t *testing.T

	ctx      context.Context // of requests; ends with the test
	stopping chan struct{}
	done     sync.WaitGroup
	checks   []func()
}

func newTraffic(t *testing.T, e *endpoint) *traffic {
	l := &traffic{endpoint: e, t: t, ctx: t.Context(), stopping: make(chan struct{})}
	t.Cleanup(l.done.Wait) // the context has ended by then
	return l
}

// every runs f again and again with a pause between, until the traffic is to end.
func (l *traffic) every(pause time.Duration, f func(n int)) {
	l.done.Go(func() {
		for n := 0; !l.stopped(); n++ {
			f(n)
			l.sleep(pause)
		}
	})
}

func (l *traffic) stopped() bool {
	select {
	case <-l.stopping:
		return true
	case <-l.ctx.Done():
		return true
	default:
		return false
	}
}

// sleep paces a client.
func (l *traffic) sleep(pause time.Duration) {
	select {
	case <-l.stopping:
	case <-l.ctx.Done():
	case <-time.After(pause):
	}
}

// fail notes what must not be.
func (l *traffic) fail(client, format string, args ...any) {
	if l.ctx.Err() == nil {
		l.tally.fail(client, format, args...)
	}
}

// must is for what prepares the traffic.
func (l *traffic) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// check has f look at what the traffic has left, once nothing is sent any more.
func (l *traffic) check(f func()) { l.checks = append(l.checks, f) }

// end has the clients finish what they are doing and looks at what they have left.
func (l *traffic) end() {
	close(l.stopping)
	l.done.Wait()
	for _, f := range l.checks {
		f()
	}
}

package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// A phase is a part of a test run. What goes wrong is told by phase.
type phase struct {
	name string

	// killed is true where a server ends without a word. A write that it had may
	// then fail, once, if the answer says that it may have been executed.
	killed bool
}

// A tally counts what the clients of one endpoint send, and what goes wrong.
type tally struct {
	endpoint string

	mu       sync.Mutex
	phase    phase
	phases   []entered // in order
	counts   map[countKey]*count
	failures []failure
}

type entered struct {
	phase
	at time.Time
}

type countKey struct{ phase, client string }

type count struct {
	requests, failed int
	slowest          time.Duration
	slowestRequest   string
}

type failure struct {
	at                  time.Time
	phase, client, what string
	excused             bool // the phase allows it
}

func (f failure) String() string {
	note := ""
	if f.excused {
		note = " (allowed)"
	}
	return fmt.Sprintf("%s %s, %s%s: %s", f.at.Format("15:04:05.000"), f.phase, f.client, note, f.what)
}

func newTally(endpoint string) *tally {
	return &tally{endpoint: endpoint, counts: map[countKey]*count{}}
}

// enter begins a phase.
func (y *tally) enter(p phase) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.phase = p
	y.phases = append(y.phases, entered{p, time.Now()})
}

// killing reports whether a server may have been killed at that time.
func (y *tally) killing(at time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	killed := false
	for _, p := range y.phases {
		if p.at.After(at) {
			break
		}
		killed = p.killed
	}
	return killed
}

// of returns the counters of a client in the current phase. The lock must be held.
func (y *tally) of(client string) *count {
	key := countKey{y.phase.name, client}
	if y.counts[key] == nil {
		y.counts[key] = &count{}
	}
	return y.counts[key]
}

// request counts one request, or one command.
func (y *tally) request(client, what string, took time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	c := y.of(client)
	c.requests++
	if took > c.slowest {
		c.slowest, c.slowestRequest = took, what
	}
}

// requests is how many there were so far.
func (y *tally) requests(client string) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for key, c := range y.counts {
		if key.client == client {
			n += c.requests
		}
	}
	return n
}

// fail notes what must not be.
func (y *tally) fail(client, format string, args ...any) {
	y.note(client, false, format, args...)
}

// failWrite notes a write that failed. It is allowed if a server was killed and the
// answer says that the write may have been executed.
func (y *tally) failWrite(client, answer, format string, args ...any) {
	y.note(client, mayHaveBeenExecuted(answer), format, args...)
}

func (y *tally) note(client string, excusable bool, format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	excused := excusable && y.phase.killed
	y.failures = append(y.failures, failure{time.Now(), y.phase.name, client, fmt.Sprintf(format, args...), excused})
	y.of(client).failed++
}

// mayHaveBeenExecuted recognises the answer that a client must not take for a
// refusal.
func mayHaveBeenExecuted(answer string) bool {
	return strings.Contains(answer, "may have been executed")
}

// unexcused are the failures that no phase allows.
func (y *tally) unexcused() []failure {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(y.failures), func(f failure) bool { return f.excused })
}

// maxTold is how many failures a report lists; a broken endpoint has thousands.
const maxTold = 60

// report logs the figures by phase and by client, and the failures.
func (y *tally) report(t *testing.T) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	byPhase, byClient := map[string]*count{}, map[string]*count{}
	var phases []string
	for _, p := range y.phases {
		phases = append(phases, p.name)
	}
	for key, c := range y.counts {
		add(byPhase, key.phase, c)
		kind, _, _ := strings.Cut(key.client, "-") // candidates and informers are many
		add(byClient, kind, c)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "through %s:\n", y.endpoint)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PHASE\tREQUESTS\tFAILURES\tSLOWEST")
	writeCounts(w, phases, byPhase)
	fmt.Fprintln(w, "CLIENT\tREQUESTS\tFAILURES\tSLOWEST")
	writeCounts(w, slices.Sorted(maps.Keys(byClient)), byClient)
	_ = w.Flush() // to memory
	for i, f := range y.failures {
		if i == maxTold {
			fmt.Fprintf(&b, "and %d more failures\n", len(y.failures)-maxTold)
			break
		}
		fmt.Fprintf(&b, "%.600s\n", f)
	}
	t.Log(b.String())
}

func add(counts map[string]*count, key string, c *count) {
	if counts[key] == nil {
		counts[key] = &count{}
	}
	sum := counts[key]
	sum.requests += c.requests
	sum.failed += c.failed
	if c.slowest > sum.slowest {
		sum.slowest, sum.slowestRequest = c.slowest, c.slowestRequest
	}
}

func writeCounts(w io.Writer, names []string, counts map[string]*count) {
	var sum count
	for _, name := range names {
		c := counts[name]
		if c == nil {
			c = &count{}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%v %.120s\n", name, c.requests, c.failed, c.slowest.Round(time.Millisecond), c.slowestRequest)
		sum.requests += c.requests
		sum.failed += c.failed
	}
	fmt.Fprintf(w, "all\t%d\t%d\t\n", sum.requests, sum.failed)
}

// A counter counts the requests that one client sends. What a client library hides
// by another try is a failure all the same.
type counter struct {
	client string
	tally  *tally
	next   http.RoundTripper
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	what := req.Method + " " + req.URL.RequestURI()
	began := time.Now()
	resp, err := c.next.RoundTrip(req)
	if req.Context().Err() != nil {
		return resp, err // the client gave up, because the test ends
	}
	c.tally.request(c.client, what, time.Since(began))
	switch {
	case err != nil:
		c.failed(req, "", "%s: %v", what, err)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		answer := readAgain(resp)
		c.failed(req, answer, "%s was answered %d: %s", what, resp.StatusCode, answer)
	default:
		resp.Body = &countedBody{resp.Body, c, req, what}
	}
	return resp, err
}

func (c *counter) failed(req *http.Request, answer, format string, args ...any) {
	if req.Method == http.MethodGet {
		c.tally.fail(c.client, format, args...)
		return
	}
	c.tally.failWrite(c.client, answer, format, args...)
}

// readAgain returns the body, which the client can read too.
func readAgain(resp *http.Response) string {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(strings.NewReader(string(body)))
	if err != nil {
		return fmt.Sprintf("%s, and then %v", body, err)
	}
	return string(body)
}

// countedBody notes an answer that breaks off.
type countedBody struct {
	io.ReadCloser
	c    *counter
	req  *http.Request
	what string
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) && b.req.Context().Err() == nil {
		b.c.failed(b.req, "", "%s broke off: %v", b.what, err)
	}
	return n, err
}

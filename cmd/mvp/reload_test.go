package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// reloading is a policy directory that is changed while clients send requests.
type reloading struct {
	*serving
	dir string

	requests, mixed atomic.Int64
	wrong           chan string
}

// numbered are the policy files of generation n. Secrets are denied whatever n is. Both
// warnings of configmaps have the same number, if the files belong together.
func numbered(n int) map[string]string {
	text := fmt.Sprintf("'number %d'", n)
	return map[string]string{"10-deny.deny.cel": text, "20-left.warn.cel": text, "30-right.warn.cel": text}
}

// constantFiles are those that do not change.
var constantFiles = map[string]string{
	"10-deny.match.cel":  `request.resource == 'secrets'`,
	"20-left.match.cel":  `request.resource == 'configmaps'`,
	"30-right.match.cel": `request.resource == 'configmaps'`,
}

const (
	deniedPath = "/api/v1/namespaces/default/secrets"
	warnedPath = "/api/v1/namespaces/default/configmaps"
)

var numberPattern = regexp.MustCompile(`number (\d+)`)

// client sends requests until stop is closed.
func (r *reloading) client(stop <-chan struct{}, strict bool) {
	last := 0
	for {
		select {
		case <-stop:
			return
		default:
		}
		r.requests.Add(2)
		code, body, _, err := r.get(deniedPath)
		if err != nil || code != http.StatusForbidden || !numberPattern.MatchString(body) {
			r.complain("GET secrets: %d %v %.300s", code, err, body)
			return
		}
		denied := numberIn(body)
		code, body, warnings, err := r.get(warnedPath)
		if err != nil || code != http.StatusOK || len(warnings) != 2 {
			r.complain("GET configmaps: %d %v %q %.300s", code, err, warnings, body)
			return
		}
		left, right := numberIn(warnings[0]), numberIn(warnings[1])
		if left != right {
			r.mixed.Add(1)
			if strict {
				r.complain("half a set: %q", warnings)
			}
		}
		if strict && (denied < last || left < denied) {
			r.complain("an old set comes back: %d, then %d and %q", last, denied, warnings)
		}
		last = min(left, right)
	}
}

func (r *reloading) complain(format string, args ...any) {
	select {
	case r.wrong <- fmt.Sprintf(format, args...):
	default: // those that are there are enough
	}
}

func numberIn(text string) int {
	n, err := strconv.Atoi(numberPattern.FindStringSubmatch(text)[1])
	if err != nil {
		panic(err)
	}
	return n
}

// live reports whether requests are decided by the files of generation n.
func (r *reloading) live(n int) bool {
	if !r.proxy.Uses(r.policies.Current()) {
		return false
	}
	_, body, _, err := r.get(deniedPath)
	return err == nil && numberPattern.MatchString(body) && numberIn(body) == n
}

// TestReloadWhileServing changes the policy files 500 times in each way that there is,
// while clients send requests: no request fails, none passes the deny, and none sees one
// file of a change without the other.
func TestReloadWhileServing(t *testing.T) {
	plane, err := demo.Start(demo.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, plane.Close()) })
	for _, style := range reloadStyles {
		t.Run(style.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "policies")
			must(t, os.Mkdir(dir, 0o777))
			swap := style.swap(t, dir)
			swap(0)
			r := &reloading{serving: startServing(t, plane, dir), dir: dir, wrong: make(chan string, 20)}
			r.torture(swap, !style.oneByOne)
		})
	}
}

// Each style is changed this often, while this many clients send requests. After each
// batch, its last change must become live.
const (
	swaps, swapBatch = 500, 25
	reloadClients    = 2
)

func (r *reloading) torture(swap func(n int), strict bool) {
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range reloadClients {
		clients.Go(func() { r.client(stop, strict) })
	}
	for n := 1; n <= swaps; n++ {
		swap(n)
		if n%swapBatch == 0 {
			r.waitFor(fmt.Sprintf("change %d is live", n), func() bool { return r.live(n) })
		}
	}
	close(stop)
	clients.Wait()
	close(r.wrong)
	for what := range r.wrong {
		r.t.Error(what)
	}
	status := r.policies.Status()
	if status.Err != nil || status.Failures != 0 {
		r.t.Errorf("a moment was told as a mistake: %d times, last %v\n%s", status.Failures, status.Err, r.logs)
	}
	r.t.Logf("%d changes, %d reloads, %d requests, %d with files of two changes", swaps, status.Generation-1, r.requests.Load(), r.mixed.Load())
}

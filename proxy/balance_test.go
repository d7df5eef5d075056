package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// balanceRig is MVP before three servers that answer nothing until the test ends.
type balanceRig struct {
	*rig
	servers []*recorder
	arrived chan struct{}
}

func newBalanceRig(t *testing.T) *balanceRig {
	t.Helper()
	f := &balanceRig{arrived: make(chan struct{}, 1000)}
	hang := make(chan struct{})
	for _, name := range []string{"a", "b", "c"} {
		f.servers = append(f.servers, record(t, name, "1.32.13", pods, func(q request) string {
			if strings.Contains(q.target, "quick") {
				return ok("{}")
			}
			f.arrived <- struct{}{}
			<-hang
			return ok("{}")
		}))
	}
	f.rig = start(t, nil, nil, f.servers...)
	t.Cleanup(func() { close(hang) })
	return f
}

// send sends requests of one caller that all stay under way, each after the one
// before has arrived, and returns how many each server has.
func (f *balanceRig) send(method, target string, n int) []int {
	f.t.Helper()
	for range n {
		f.raw(method + " " + target + " HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer operator\r\nContent-Length: 0\r\n\r\n")
		<-f.arrived
	}
	return f.counts()
}

func (f *balanceRig) counts() (counts []int) {
	for _, u := range f.servers {
		counts = append(counts, len(u.got()))
	}
	return counts
}

// One caller that has very many requests under way is spread over all servers, and
// none gets much more than its share.
func TestLoadOfOneCaller(t *testing.T) {
	const n = 240
	f := newBalanceRig(t)
	counts := f.send("POST", "/api/v1/namespaces/d/pods", n)
	for _, got := range counts {
		if limit := n/3*5/4 + 16 + 1; got == 0 || got > limit {
			t.Errorf("%d requests went as %v, want at most %d to each server, and some", n, counts, limit)
		}
	}
}

// What follows on from what a server said stays with that server, however busy it is.
func TestWhatSticksWhenBusy(t *testing.T) {
	for _, query := range []string{"resourceVersion=5", "limit=500&continue=abc", "watch=1&resourceVersion=5", "watch=1"} {
		f := newBalanceRig(t)
		counts := f.send("GET", "/api/v1/namespaces/d/pods?"+query, 60)
		if max(counts[0], counts[1], counts[2]) != 60 {
			t.Errorf("60 requests with %s went as %v, want all to one server", query, counts)
		}
	}
}

// A caller whose requests come one after the other stays on one server, and callers
// are spread.
func TestAffinity(t *testing.T) {
	f := newBalanceRig(t)
	used := map[int]bool{}
	for caller := range 30 {
		before := f.counts()
		for range 5 {
			if got := f.do("GET", "/api/v1/namespaces/d/pods?quick", "", "", "Authorization", fmt.Sprintf("Bearer %d", caller)); got.code != http.StatusOK {
				t.Fatalf("answered %d %s", got.code, got.body)
			}
		}
		moved := 0
		for i, n := range f.counts() {
			if n != before[i] {
				used[i] = true
				moved++
			}
		}
		if moved != 1 {
			t.Errorf("the requests of one caller went to %d servers", moved)
		}
	}
	if len(used) != 3 {
		t.Errorf("30 callers use %d servers of 3", len(used))
	}
}

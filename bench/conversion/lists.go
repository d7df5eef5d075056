package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// listed is what was measured of the lists of one route.
type listed struct {
	took   times
	proxy  times // CPU of MVP
	server times // CPU of kube-apiserver
	bytes  int64 // of the last one
}

// warmLists measures lists of all objects that kube-apiserver has in its caches.
func (s *scene) warmLists(ctx context.Context, o options, out io.Writer) error {
	all := make([]listed, len(s.routes))
	for round := range o.rounds + 1 {
		for k := range s.routes {
			i := (k + round) % len(s.routes)
			into := &all[i]
			if round == 0 { // fills caches and pools, and counts for nothing
				into = &listed{}
			}
			if err := s.list(ctx, s.routes[i], into); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"warm LIST", "median", "times direct", "slowest", "fastest", "times direct", "CPU of MVP", "CPU of kube-apiserver"}}
	for i, r := range s.routes {
		l := &all[i]
		rows = append(rows, []string{
			r.name, millis(l.took.median()), fmt.Sprintf("%.2f", l.took.ratio(all[r.direct].took)), millis(l.took.quantile(1)),
			millis(l.took.quantile(0)), fmt.Sprintf("%.2f", float64(l.took.quantile(0))/float64(all[r.direct].took.quantile(0))),
			millis(l.proxy.median()), millis(l.server.median()),
		})
	}
	title := fmt.Sprintf("LIST of %d objects (%s), %d rounds; %s", o.objects, mebibytes(all[direct].bytes), o.rounds, machine())
	return table(out, title, rows...)
}

// list takes one list of all objects and adds what it took.
func (s *scene) list(ctx context.Context, r *route, into *listed) error {
	server, err := s.lab.Server("a")
	if err != nil {
		return err
	}
	serverCPU := process(server.PID).cpu
	proxyCPU := func() (time.Duration, error) { return 0, nil }
	if r.mvp != nil {
		proxyCPU = r.mvp.cpu
	}
	serverBefore, err := serverCPU()
	if err != nil {
		return err
	}
	proxyBefore, err := proxyCPU()
	if err != nil {
		return err
	}
	body := newSink()
	took, err := r.transfer(ctx, http.MethodGet, r.path(), nil, body.read)
	if err != nil {
		return err
	}
	proxyAfter, err := proxyCPU()
	if err != nil {
		return err
	}
	serverAfter, err := serverCPU()
	if err != nil {
		return err
	}
	into.took = append(into.took, took)
	into.proxy = append(into.proxy, proxyAfter-proxyBefore)
	into.server = append(into.server, serverAfter-serverBefore)
	into.bytes = body.bytes
	return nil
}

// firstLists measures the first list of a kind after kube-apiserver has started: in
// turns one that needs no conversion and one that MVP converts, of one group, and behind
// it one by the webhook, of the other.
func (s *scene) firstLists(ctx context.Context, o options, out io.Writer) error {
	all := make([]listed, len(s.routes))
	for round := range o.restarts {
		if err := s.restart(ctx); err != nil {
			return err
		}
		for _, i := range []int{[]int{direct, byRules}[round%2], byWebhook} {
			if err := s.firstList(ctx, s.routes[i], &all[i]); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"first LIST after a restart", "median", "slowest", "of"}}
	for i, r := range s.routes {
		if took := all[i].took; len(took) > 0 {
			rows = append(rows, []string{r.name, millis(took.median()), millis(took.quantile(1)), fmt.Sprint(len(took))})
		}
	}
	return table(out, fmt.Sprintf("The first LIST of %d objects after kube-apiserver starts; %s", o.objects, machine()), rows...)
}

// firstList is list for a server that says, while it reads what it will serve from, that
// it has too much to do: a client asks again, and waits for as long as it takes.
func (s *scene) firstList(ctx context.Context, r *route, into *listed) error {
	start := time.Now()
	err := eventually(ctx, r.name+" is there", func() error {
		waited := time.Since(start)
		err := s.list(ctx, r, into)
		if err == nil {
			into.took[len(into.took)-1] += waited
		}
		return err
	})
	return err
}

// restart restarts kube-apiserver and waits until all see it.
func (s *scene) restart(ctx context.Context) error {
	if err := s.lab.Restart(ctx, "a"); err != nil {
		return err
	}
	for _, r := range s.routes {
		r.client.CloseIdleConnections()
	}
	for _, m := range []*mvp{s.rules, s.programs} {
		if err := m.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

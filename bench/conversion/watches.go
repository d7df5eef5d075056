package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// watcher is one watch, and when its events came.
type watcher struct {
	name   string
	events chan event
	took   times // from the write to the event
}

type event struct {
	text []byte
	at   time.Time
}

// watches measures when the events of one write arrive at watches that see it by
// different routes. Of each group two are direct: what lies between those is the
// machine's own doing.
func (s *scene) watches(ctx context.Context, o options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	groups := []struct {
		writer *route
		routes []int
	}{
		{s.routes[direct], []int{direct, direct, unconverted, byRules, byPrograms}},
		{s.routes[hookedDirect], []int{hookedDirect, hookedDirect, byWebhook}},
	}
	rows := [][]string{{"watch", "median from write to event", "added, median", "p90", "p99"}}
	for _, g := range groups {
		var all []*watcher
		const name = "watched"
		version, _, err := g.writer.write(ctx, http.MethodPost, g.writer.path(), g.writer.object(name, "new", ""))
		if err != nil {
			return err
		}
		for _, i := range g.routes {
			w, err := s.routes[i].watch(ctx, name, version)
			if err != nil {
				return err
			}
			all = append(all, w)
		}
		all[1].name += " (a second one)"
		for n := range o.events {
			if version, err = g.writer.change(ctx, all, name, version, n); err != nil {
				return err
			}
		}
		if _, err := g.writer.do(ctx, http.MethodDelete, g.writer.path()+"/"+name, nil); err != nil {
			return err
		}
		for _, w := range all {
			added := w.took.minus(all[0].took)
			rows = append(rows, []string{w.name, millis(w.took.median()), millis(added.median()), millis(added.quantile(.9)), millis(added.quantile(.99))})
		}
	}
	title := fmt.Sprintf("%d events of watches, each seen by all at once; added: what lies between the first direct watch's and this one's arrival; %s",
		o.events, machine())
	return table(out, title, rows...)
}

// eventTime is how long an event may take.
const eventTime = 30 * time.Second

// change writes the object once more and waits until all watches have seen it.
func (r *route) change(ctx context.Context, all []*watcher, name, version string, n int) (string, error) {
	mark := fmt.Sprintf("mark %d", n)
	start := time.Now()
	version, _, err := r.write(ctx, http.MethodPut, r.path()+"/"+name, r.object(name, mark, version))
	if err != nil {
		return "", err
	}
	for _, w := range all {
		select {
		case e, open := <-w.events:
			if !open || !bytes.Contains(e.text, []byte(mark)) {
				return "", fmt.Errorf("%s: the watch ended, or its event %d is of something else: %.200q", w.name, n, e.text)
			}
			w.took = append(w.took, e.at.Sub(start))
		case <-time.After(eventTime):
			return "", fmt.Errorf("%s: no event within %v", w.name, eventTime)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return version, nil
}

// watch begins a watch of one object.
func (r *route) watch(ctx context.Context, name, version string) (*watcher, error) {
	query := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + name}, "resourceVersion": {version}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+r.path()+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, fmt.Errorf("%s: cannot watch: %w", r.name, refusal(resp))
	}
	w := &watcher{name: r.name, events: make(chan event, 16)}
	go w.read(ctx, resp.Body)
	return w, nil
}

// read hands on the events until the watch ends.
func (w *watcher) read(ctx context.Context, body io.ReadCloser) {
	defer close(w.events)
	defer body.Close()
	for in := bufio.NewReaderSize(body, 64<<10); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		select {
		case w.events <- event{line, time.Now()}:
		case <-ctx.Done():
			return
		}
	}
}

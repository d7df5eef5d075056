package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
)

// memory looks at how much memory MVP takes while large lists pass, converted: one,
// several at once, and several whose clients read slowly.
func (s *scene) memory(ctx context.Context, o options, out io.Writer) error {
	vast, err := s.vastServer(ctx, int64(o.megabyte)<<20)
	if err != nil {
		return err
	}
	defer vast.close()
	policies := otherPolicies(99)
	maps.Copy(policies, webhook.Rules(gone))
	m, err := startMVP(ctx, s.binary, s.lab, vast.url, policies)
	if err != nil {
		return err
	}
	defer func() { _ = m.stop() }() // it has been measured by then
	r := &route{name: "large list through MVP", base: m.url, group: gone, version: webhook.Old, mvp: m, client: s.routes[direct].client}
	if err := r.answers(ctx); err != nil {
		return err
	}
	rows := [][]string{{"while it passes", "before", "most", "grown by", "MB/s together", "CPU of MVP for 100 MB"}}
	for _, c := range []struct {
		name    string
		clients int
		read    func(io.Reader) (int64, error)
	}{
		{"one client", 1, discard},
		{fmt.Sprintf("%d clients at once", o.clients), o.clients, discard},
		{fmt.Sprintf("%d slow clients at once", o.clients), o.clients, discardSlowly},
	} {
		row, err := m.whileReading(ctx, r, c.clients, c.read)
		if err != nil {
			return err
		}
		rows = append(rows, append([]string{c.name}, row...))
	}
	return table(out, fmt.Sprintf("Memory of MVP (resident) while a list of %s passes, converted by rules; %s", mebibytes(vast.size), machine()), rows...)
}

// whileReading has some clients read the list at once, and tells what that took.
func (m *mvp) whileReading(ctx context.Context, r *route, clients int, read func(io.Reader) (int64, error)) ([]string, error) {
	if err := m.resetPeak(); err != nil {
		return nil, err
	}
	before, _, err := m.memory()
	if err != nil {
		return nil, err
	}
	cpuBefore, err := m.cpu()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	sizes := make([]int64, clients)
	group, readCtx := errgroup.WithContext(ctx)
	for i := range clients {
		group.Go(func() error {
			_, err := r.transfer(readCtx, http.MethodGet, r.path(), nil, func(in io.Reader) (err error) {
				sizes[i], err = read(in)
				return err
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	took := time.Since(start)
	_, peak, err := m.memory()
	if err != nil {
		return nil, err
	}
	cpuAfter, err := m.cpu()
	if err != nil {
		return nil, err
	}
	var passed int64
	for _, n := range sizes {
		passed += n
	}
	return []string{
		mebibytes(before), mebibytes(peak), mebibytes(peak - before),
		fmt.Sprintf("%.0f", float64(passed)/1e6/took.Seconds()),
		millis(time.Duration(float64(cpuAfter-cpuBefore) * 100e6 / float64(passed))),
	}, nil
}

func discard(in io.Reader) (int64, error) {
	s := newSink()
	err := s.read(in)
	return s.bytes, err
}

// discardSlowly reads some 10 MB a second.
func discardSlowly(in io.Reader) (int64, error) {
	const piece, pause = 256 << 10, 25 * time.Millisecond
	buf := make([]byte, piece)
	var sum int64
	for {
		n, err := io.ReadFull(in, buf)
		sum += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return sum, nil
		case err != nil:
			return sum, err
		}
		time.Sleep(pause) // this is what makes it slow
	}
}

// vastServer is the kube-apiserver, with one list that it would need gigabytes of
// memory for: of the objects that it has, again and again.
type vastServer struct {
	url   string
	size  int64 // of the list
	close func()
}

func (s *scene) vastServer(ctx context.Context, size int64) (*vastServer, error) {
	r := s.routes[direct]
	list, err := r.do(ctx, http.MethodGet, r.path(), nil)
	if err != nil {
		return nil, err
	}
	vast, err := repeated(list, size)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(r.base)
	if err != nil {
		return nil, err
	}
	cert, key, err := s.lab.ServingCert("vast", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(s.lab) // clients' tokens pass
	if err != nil {
		return nil, err
	}
	pass := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(server) },
		Transport: transport, FlushInterval: -1,
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, err
	}
	front := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), // connections that MVP closes
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != r.path() || req.URL.RawQuery != "" {
				pass.ServeHTTP(w, req)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			vast.writeTo(w)
		}),
	}
	go func() { _ = front.Serve(listener) }()
	return &vastServer{url: "https://" + listener.Addr().String(), size: vast.size(), close: func() { _ = front.Close() }}, nil
}

// vastList is a list in JSON that has its items several times.
type vastList struct {
	head, items, tail []byte
	times             int
}

// repeated repeats the items of a list until it has at least size bytes.
func repeated(list []byte, size int64) (*vastList, error) {
	const before = `"items":[`
	start, end := bytes.Index(list, []byte(before)), bytes.LastIndex(list, []byte(`],"kind":`))
	if start < 0 || end <= start+len(before) {
		return nil, fmt.Errorf("the list does not look like one: %.200q", list)
	}
	start += len(before)
	items := int64(end - start)
	return &vastList{list[:start], list[start:end], list[end:], int((size + items - 1) / items)}, nil
}

func (l *vastList) size() int64 {
	return int64(len(l.head)) + int64(l.times)*int64(len(l.items)+1) - 1 + int64(len(l.tail))
}

// writeTo writes the list. A client that leaves ends it.
func (l *vastList) writeTo(w io.Writer) {
	parts := [][]byte{l.head, l.items}
	for range l.times - 1 {
		parts = append(parts, []byte{','}, l.items)
	}
	for _, part := range append(parts, l.tail) {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

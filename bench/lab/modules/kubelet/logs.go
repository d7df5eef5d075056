package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// logOptions are the query parameters of a request for a log.
type logOptions struct {
	follow, timestamps bool
	tail, limit        int64 // negative: all
	since              time.Time
}

func parseLogOptions(q url.Values, now time.Time) (logOptions, error) {
	o := logOptions{tail: -1, limit: -1}
	var seconds int64 = -1
	for name, value := range map[string]*int64{"tailLines": &o.tail, "limitBytes": &o.limit, "sinceSeconds": &seconds} {
		s := q.Get(name)
		if s == "" {
			continue
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return o, fmt.Errorf("bad %s %.40q: want a number", name, s)
		}
		*value = n
	}
	if seconds >= 0 {
		o.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if s := q.Get("sinceTime"); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return o, fmt.Errorf("bad sinceTime: %w", err)
		}
		o.since = t
	}
	for name, value := range map[string]*bool{"follow": &o.follow, "timestamps": &o.timestamps} {
		// Present without a value is true, as for a kubelet.
		*value = q.Has(name) && q.Get(name) != "false" && q.Get(name) != "0"
	}
	return o, nil
}

func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	o, err := parseLogOptions(r.URL.Query(), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	c := s.container(w, r)
	if c == nil {
		return
	}
	flush := http.NewResponseController(w)
	number := c.log.tail(o.tail)
	for {
		lines, next := c.log.since(r.Context(), number, o.follow)
		number = next
		for _, line := range lines {
			if err := o.write(w, line); err != nil {
				return
			}
		}
		if flush.Flush() != nil || !o.follow || len(lines) == 0 {
			return
		}
	}
}

// write prints a line, or nothing of it. It is io.EOF when the limit is reached.
func (o *logOptions) write(w io.Writer, line logLine) error {
	if line.time.Before(o.since) {
		return nil
	}
	text := line.text
	if o.timestamps {
		text = append([]byte(line.time.UTC().Format(time.RFC3339Nano)+" "), bytes.Clone(text)...)
	}
	if o.limit >= 0 && int64(len(text)) >= o.limit {
		if _, err := w.Write(text[:o.limit]); err != nil {
			return err
		}
		return io.EOF
	}
	if o.limit >= 0 {
		o.limit -= int64(len(text))
	}
	_, err := w.Write(text)
	return err
}

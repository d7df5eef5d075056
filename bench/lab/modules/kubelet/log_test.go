package main

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestLogBuffer(t *testing.T) {
	l := newLogBuffer()
	write := func(s string) {
		t.Helper()
		if n, err := l.Write([]byte(s)); err != nil || n != len(s) {
			t.Fatalf("Write(%q) = %d, %v", s, n, err)
		}
	}
	text := func(number int) string {
		lines, _ := l.since(t.Context(), number, false)
		var b strings.Builder
		for _, line := range lines {
			b.Write(line.text)
		}
		return b.String()
	}

	write("one\ntw")
	write("o\nthr")
	if got := text(0); got != "one\ntwo\n" {
		t.Errorf("log is %q", got)
	}
	write("ee\n")
	if got := text(l.tail(2)); got != "two\nthree\n" {
		t.Errorf("two lines are %q", got)
	}
	if got := text(l.tail(-1)) + text(l.tail(9)) + text(l.tail(0)); got != strings.Repeat("one\ntwo\nthree\n", 2) {
		t.Errorf("all, all and none are %q", got)
	}
	write(strings.Repeat("x", maxLineBytes+3) + "\n")
	if got := text(3); got != strings.Repeat("x", maxLineBytes)+"xxx\n" {
		t.Errorf("a long line is %d bytes", len(got))
	}
	for i := range maxLogLines {
		write(fmt.Sprintln(i))
	}
	if got := text(0); !strings.HasPrefix(got, "0\n1\n") || strings.Count(got, "\n") != maxLogLines {
		t.Errorf("after many lines the log has %d and begins with %.20q", strings.Count(got, "\n"), got)
	}
}

// TestFollow reads a log while it grows, to its end.
func TestFollow(t *testing.T) {
	l := newLogBuffer()
	const n = 1000
	go func() {
		for i := range n {
			_, _ = fmt.Fprintln(l, i)
		}
		l.close()
	}()
	var got, want bytes.Buffer
	for number := 0; ; {
		lines, next := l.since(t.Context(), number, true)
		if len(lines) == 0 {
			break
		}
		for _, line := range lines {
			got.Write(line.text)
		}
		number = next
	}
	for i := range n {
		fmt.Fprintln(&want, i)
	}
	if got.String() != want.String() {
		t.Errorf("followed %d bytes, want %d", got.Len(), want.Len())
	}
}

func TestLogOptions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lines := []logLine{{now.Add(-time.Minute), []byte("old\n")}, {now, []byte("new\n")}}
	f := func(query, want string) {
		t.Helper()
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		o, err := parseLogOptions(q, now)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for _, line := range lines {
			if err := o.write(&got, line); err != nil {
				break
			}
		}
		if got.String() != want {
			t.Errorf("%q printed %q, want %q", query, got.String(), want)
		}
	}

	f("", "old\nnew\n")
	f("timestamps=true", "2026-01-02T03:03:05Z old\n2026-01-02T03:04:05Z new\n")
	f("timestamps=false", "old\nnew\n")
	f("sinceSeconds=30", "new\n")
	f("sinceTime=2026-01-02T03:04:00Z", "new\n")
	f("limitBytes=6", "old\nne")
	f("limitBytes=0", "")
}

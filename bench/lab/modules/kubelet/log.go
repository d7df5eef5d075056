package main

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// maxLogLines is how much of its log a container keeps: an hour of a line a
// second, and as much again.
const maxLogLines = 7200

// maxLineBytes is where a line without an end is cut, as kubelets do.
const maxLineBytes = 16 << 10

// A logBuffer is the log of one container. All methods may be called from any
// goroutine.
type logBuffer struct {
	mu      sync.Mutex
	lines   []logLine
	first   int // number of lines[0], counted from the start of the container
	partial []byte
	closed  bool
	changed chan struct{} // closed and replaced with each change
}

type logLine struct {
	time time.Time
	text []byte // with its newline
}

func newLogBuffer() *logBuffer { return &logBuffer{changed: make(chan struct{})} }

// Write adds what a container printed. It never fails.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		end := bytes.IndexByte(l.partial, '\n') + 1
		if end == 0 && len(l.partial) < maxLineBytes {
			break
		}
		if end == 0 || end > maxLineBytes {
			end = maxLineBytes
		}
		l.lines = append(l.lines, logLine{time.Now(), bytes.Clone(l.partial[:end])})
		l.partial = l.partial[end:]
	}
	if over := len(l.lines) - maxLogLines; over > 0 {
		l.lines = append([]logLine(nil), l.lines[over:]...)
		l.first += over
	}
	l.notify()
	return len(p), nil
}

// close ends the log: whoever follows it comes to its end.
func (l *logBuffer) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.notify()
}

func (l *logBuffer) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// tail returns the number of the line from which on there are n lines, or of the
// first line that is kept when n is negative.
func (l *logBuffer) tail(n int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > int64(len(l.lines)) {
		return l.first
	}
	return l.first + len(l.lines) - int(n)
}

// since returns the lines from number on, and the number after them. With wait,
// and when there are none, it waits for some; it returns none only when the log
// or ctx has ended.
func (l *logBuffer) since(ctx context.Context, number int, wait bool) ([]logLine, int) {
	for {
		l.mu.Lock()
		start := max(0, number-l.first)
		lines := l.lines[min(start, len(l.lines)):]
		next, closed, changed := l.first+len(l.lines), l.closed, l.changed
		l.mu.Unlock()
		if len(lines) > 0 || !wait || closed {
			return lines, next
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, next
		}
	}
}

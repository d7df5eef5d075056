package main

import (
	"io"
	"os/exec"
	"sync"
)

// A container is one process and those that exec adds to it. What it prints goes
// to its log and to all who are attached.
type container struct {
	home string
	log  *logBuffer
	main *exec.Cmd

	stdin sync.Mutex // held while somebody writes to input
	input io.Writer
	ended chan struct{} // closed when the main process has ended

	mu       sync.Mutex
	attached map[*attachment]struct{}
}

// An attachment is one who sees what a container prints.
type attachment struct {
	out  io.Writer
	gone chan struct{} // closed when out takes no more
}

func startContainer(spec containerSpec, home string) (*container, error) {
	c := &container{home: home, log: newLogBuffer(), ended: make(chan struct{}), attached: map[*attachment]struct{}{}}
	c.main = command(home, spec.Command)
	p, err := start(c.main, spec.TTY, printed{c}, printed{c})
	if err != nil {
		return nil, err
	}
	c.input = p.stdin
	go func() {
		defer close(c.ended)
		_ = p.wait() // nobody asks for the exit code
		c.log.close()
	}()
	return c, nil
}

// printed is the standard output and standard error of a container.
type printed struct{ c *container }

// Write never fails. It waits for the slowest who is attached, as a real
// container does.
func (w printed) Write(p []byte) (int, error) {
	_, _ = w.c.log.Write(p)
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	for a := range w.c.attached {
		if _, err := a.out.Write(p); err != nil {
			delete(w.c.attached, a)
			close(a.gone)
		}
	}
	return len(p), nil
}

// attach connects a client with the main process until the process ends or the
// client takes no more. The end of its input is not the end of the process's.
func (c *container) attach(in io.Reader, out io.Writer) {
	if in != nil {
		go func() { _, _ = io.Copy(inputOf{c}, in) }()
	}
	if out == nil {
		<-c.ended
		return
	}
	a := &attachment{out: out, gone: make(chan struct{})}
	c.mu.Lock()
	c.attached[a] = struct{}{}
	c.mu.Unlock()
	select {
	case <-a.gone:
	case <-c.ended:
		c.mu.Lock()
		delete(c.attached, a)
		c.mu.Unlock()
	}
}

// inputOf is the standard input of a container, for several writers.
type inputOf struct{ c *container }

func (w inputOf) Write(p []byte) (int, error) {
	w.c.stdin.Lock()
	defer w.c.stdin.Unlock()
	return w.c.input.Write(p)
}

// kill ends the main process and waits for it.
func (c *container) kill() {
	_ = c.main.Process.Kill()
	<-c.ended
}

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// server answers requests; see the comment of the command.
type server struct {
	in  *bufio.Reader
	out *bufio.Writer
}

// serve answers all requests of in.
func serve(in *bufio.Reader, out *bufio.Writer) error {
	s := &server{in: in, out: out}
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.answer(strings.Fields(line)); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func (s *server) answer(words []string) error {
	switch {
	case len(words) == 1 && words[0] == "list":
		s.list()
		return nil
	case len(words) == 6 && (words[0] == "client" || words[0] == "server"):
		t, err := parseTask(words[1:4], words[5])
		if err != nil {
			return err
		}
		seed, err := strconv.ParseInt(words[4], 10, 64)
		if err != nil {
			return err
		}
		return s.fuzz(words[0], t, seed)
	case len(words) == 5 && (words[0] == "store" || words[0] == "read"):
		t, err := parseTask(words[1:4], words[4])
		if err != nil {
			return err
		}
		return s.convert(words[0], t)
	}
	return errors.New("no such request")
}

// task is what a request asks for.
type task struct {
	from schema.GroupVersionKind
	to   schema.GroupVersion
	n    int
}

func parseTask(words []string, n string) (task, error) {
	from, err := schema.ParseGroupVersion(words[0])
	if err != nil {
		return task{}, err
	}
	to, err := schema.ParseGroupVersion(words[2])
	if err != nil {
		return task{}, err
	}
	count, err := strconv.Atoi(n)
	return task{from: from.WithKind(words[1]), to: to, n: count}, err
}

// list answers with what the scheme knows.
func (s *server) list() {
	var lines []string
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version != runtime.APIVersionInternal {
			lines = append(lines, gvk.GroupVersion().String()+" "+gvk.Kind+"\n")
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		_, _ = s.out.WriteString(line)
	}
	_ = s.out.WriteByte('\n')
}

// convert answers with the objects that follow the request, converted.
func (s *server) convert(word string, t task) error {
	for range t.n {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return err
		}
		if word == "store" {
			s.put(convert(decoder, line, t.to, true))
		} else {
			s.put(convert(lenientDecoder, line, t.to, false))
		}
	}
	return nil
}

// fuzz answers with random objects and what they convert to.
func (s *server) fuzz(word string, t task, seed int64) error {
	f := newGenerator(seed)
	for range t.n {
		object, internal, err := f.object(t.from)
		if object == nil {
			return err
		}
		var answer []byte
		if word == "server" && err == nil {
			if object, err = encode(internal, t.from.GroupVersion(), true); err != nil {
				return err
			}
			answer, err = convert(decoder, object, t.to, false)
		} else if err == nil {
			answer, err = encode(internal, t.to, true)
		}
		s.put(object, nil)
		s.put(answer, err)
	}
	return nil
}

// put writes one line.
func (s *server) put(object []byte, err error) {
	if err != nil {
		object = []byte("!" + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	_, _ = s.out.Write(bytes.TrimSuffix(object, []byte("\n"))) // Flush reports what fails
	_ = s.out.WriteByte('\n')
}

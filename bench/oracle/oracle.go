// Package oracle asks the code of kube-apiserver itself what an object of one API
// version is in another, and holds the library of policies to its answers.
//
// The answers come from a program for each release of Kubernetes: see
// bench/oracle/modules/oracle. The package compares JSON documents and makes small
// ones of those that show a difference; it knows nothing of any API.
package oracle

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Oracle is a running program that knows the API of one release. It is for one
// goroutine at a time.
type Oracle struct {
	release string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	in      *bufio.Writer
	out     *bufio.Reader
}

// Kind is a kind in one version of the API.
type Kind struct{ APIVersion, Name string }

// Conversion is what an [Oracle] is to do: objects of Kind to the version To.
type Conversion struct {
	Kind
	To string
}

// Answer is what became of an object: the object in JSON, or why there is none.
type Answer struct {
	Object []byte
	Err    error
}

// Start starts the program at path, which is called release in errors. It runs until
// Close, or until ctx is done.
func Start(ctx context.Context, path, release string) (*Oracle, error) {
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "GOGC=400") // it holds little and makes much garbage
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the oracle of Kubernetes %s: %w", release, err)
	}
	return &Oracle{
		release: release, cmd: cmd, stdin: stdin,
		in: bufio.NewWriterSize(stdin, 1<<20), out: bufio.NewReaderSize(stdout, 1<<20),
	}, nil
}

// Close ends the program.
func (o *Oracle) Close() error {
	err := o.stdin.Close()
	return errors.Join(err, o.cmd.Wait())
}

// Kinds returns all that the release knows.
func (o *Oracle) Kinds() (map[Kind]bool, error) {
	if err := o.ask("list"); err != nil {
		return nil, err
	}
	kinds := map[Kind]bool{}
	for {
		line, err := o.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			return kinds, nil
		}
		version, name, _ := strings.Cut(string(line), " ")
		kinds[Kind{version, name}] = true
	}
}

// Client makes n objects as clients may send them, and what clients that speak c.To
// read once the server has them.
func (o *Oracle) Client(c Conversion, seed int64, n int) (objects [][]byte, answers []Answer, err error) {
	return o.fuzz("client", c, seed, n)
}

// Server makes n objects as a server answers, with every default, and what clients
// that speak c.To read instead.
func (o *Oracle) Server(c Conversion, seed int64, n int) (objects [][]byte, answers []Answer, err error) {
	return o.fuzz("server", c, seed, n)
}

// Store returns what clients that speak c.To read once the server has objects, which
// are as clients send them.
func (o *Oracle) Store(c Conversion, objects [][]byte) ([]Answer, error) {
	return o.convert("store", c, objects)
}

// Read returns what clients that speak c.To read of objects, which are as a server
// has them.
func (o *Oracle) Read(c Conversion, objects [][]byte) ([]Answer, error) {
	return o.convert("read", c, objects)
}

func (o *Oracle) fuzz(word string, c Conversion, seed int64, n int) ([][]byte, []Answer, error) {
	if err := o.ask("%s %s %s %s %d %d", word, c.APIVersion, c.Name, c.To, seed, n); err != nil {
		return nil, nil, err
	}
	objects, answers := make([][]byte, n), make([]Answer, n)
	for i := range n {
		object, err := o.answer()
		if err == nil {
			answers[i], err = o.answer()
		}
		if err != nil {
			return nil, nil, err
		}
		objects[i] = object.Object
	}
	return objects, answers, nil
}

func (o *Oracle) convert(word string, c Conversion, objects [][]byte) ([]Answer, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	var lines bytes.Buffer
	for _, object := range objects {
		lines.Write(bytes.ReplaceAll(object, []byte("\n"), []byte(" ")))
		lines.WriteByte('\n')
	}
	if err := o.ask("%s %s %s %s %d\n%s", word, c.APIVersion, c.Name, c.To, len(objects), bytes.TrimSuffix(lines.Bytes(), []byte("\n"))); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(objects))
	for i := range answers {
		var err error
		if answers[i], err = o.answer(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// ask sends a request.
func (o *Oracle) ask(format string, args ...any) error {
	_, err := fmt.Fprintf(o.in, format+"\n", args...)
	if err == nil {
		err = o.in.Flush()
	}
	if err != nil {
		return fmt.Errorf("cannot ask the oracle of Kubernetes %s: %w", o.release, err)
	}
	return nil
}

func (o *Oracle) answer() (Answer, error) {
	line, err := o.line()
	if reason, failed := bytes.CutPrefix(line, []byte("!")); failed {
		return Answer{Err: errors.New(string(reason))}, err
	}
	return Answer{Object: line}, err
}

func (o *Oracle) line() ([]byte, error) {
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the oracle of Kubernetes %s does not answer: %w", o.release, err)
	}
	return line[:len(line)-1], nil
}

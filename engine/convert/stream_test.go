package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// writes records each Write.
type writes struct{ pieces [][]byte }

func (w *writes) Write(b []byte) (int, error) {
	w.pieces = append(w.pieces, bytes.Clone(b))
	return len(b), nil
}

const serverItem = `{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource",` +
	`"metadata":{"name":"object-%d"},"spec":{"config":{"requestTimeoutSeconds":30},"stateManagement":"stateless"}}`

// serverList reads as a list of n items that is never in memory as a whole.
func serverList(n int) io.Reader {
	next := 0
	var pending bytes.Buffer
	pending.WriteString(`{"apiVersion":"myapps.example.com/v1beta1","items":[`)
	return readerFunc(func(b []byte) (int, error) {
		for pending.Len() < len(b) && next <= n {
			switch {
			case next == n:
				pending.WriteString(`],"kind":"CustomResourceList"}` + "\n")
			case next > 0:
				pending.WriteString("," + fmt.Sprintf(serverItem, next))
			default:
				fmt.Fprintf(&pending, serverItem, next)
			}
			next++
		}
		return pending.Read(b)
	})
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestAnswerStreams(t *testing.T) {
	c := mustCompile(t, articleSpec())
	var w writes
	if err := c.Answer(&w, serverList(2000), nil); err != nil {
		t.Fatal(err)
	}
	for i, piece := range w.pieces {
		last := i == len(w.pieces)-1
		if len(piece) > writeChunk+1024 || !last && len(piece) < writeChunk {
			t.Errorf("write %d has %d bytes", i, len(piece))
		}
	}
	got := bytes.Join(w.pieces, nil)
	if n := bytes.Count(got, []byte(`"legacyTimeout":30`)); n != 2000 || bytes.Contains(got, []byte("v1beta1")) {
		t.Errorf("%d items converted", n)
	}
	if !bytes.HasSuffix(got, []byte(`],"kind":"CustomResourceList"}`+"\n")) {
		t.Errorf("it ends in %q", got[len(got)-60:])
	}
}

func TestAnswerMemory(t *testing.T) {
	c := mustCompile(t, articleSpec())
	if err := c.Answer(io.Discard, serverList(10), nil); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := serverList(50_000) // 10 MB
	if err := c.Answer(io.Discard, r, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	// What the list itself costs: the test's Sprintf, about 400 bytes an item.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 50_000*800 {
		t.Errorf("allocated %d bytes for 50,000 items", grown)
	}
}

func TestAnswerErrors(t *testing.T) {
	c := mustCompile(t, articleSpec())
	broken := errors.New("connection reset")
	list := `{"kind":"CustomResourceList","apiVersion":"myapps.example.com/v1beta1","items":[{}`
	err := c.Answer(io.Discard, io.MultiReader(strings.NewReader(list), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) {
		t.Errorf("a broken reader: %v", err)
	}
	r := readerFunc(func([]byte) (int, error) { return 0, nil })
	if err := c.Answer(io.Discard, r, nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
	pr, pw := io.Pipe()
	pr.CloseWithError(broken)
	if err := c.Answer(pw, serverList(1000), nil); !errors.Is(err, broken) {
		t.Errorf("a broken writer: %v", err)
	}
}

// TestLargeValues checks the limit on one object, and that other values are of
// any size.
func TestLargeValues(t *testing.T) {
	c := mustCompile(t, articleSpec())
	large := strings.Repeat("x", MaxAnswerObjectBytes)
	f := func(name, answer, want string) {
		t.Helper()
		err := c.Answer(io.Discard, strings.NewReader(answer), nil)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}

	const tooLarge = "policy article: cannot convert the server's answer: an object in it is larger than 16777216 bytes"
	f("item", `{"kind":"CustomResourceList","apiVersion":"myapps.example.com/v1beta1","items":[{"a":"`+large+large+`"}]}`, tooLarge)
	f("object", `{"kind":"CustomResource","apiVersion":"myapps.example.com/v1beta1","a":"`+large+large+`"}`, tooLarge)
	f("something else", `{"kind":"Other","apiVersion":"v1","a":"`+large+large+`"}`, "")

	_, err := c.Object(nil, []byte(`{"a":"`+large+`"}`), ToServer, nil)
	var e *Error
	if !errors.As(err, &e) || !e.Invalid || !strings.Contains(e.Msg, "the limit is 3145728") {
		t.Errorf("request: %v", err)
	}
}

func TestDepth(t *testing.T) {
	c := mustCompile(t, articleSpec())
	deep := strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1)
	_, err := c.Object(nil, []byte(deep), ToServer, nil)
	if err == nil || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("got %v", err)
	}
	deep = deep[5 : len(deep)-1]
	if got, err := c.Object(nil, []byte(deep), ToServer, nil); err != nil || string(got) != deep {
		t.Errorf("the deepest that is allowed: %v", err)
	}
}

// TestWatchAtOnce checks that an event comes out before anything is read after
// it, in one Write.
func TestWatchAtOnce(t *testing.T) {
	c := mustCompile(t, articleSpec())
	events := []string{"ADDED", "BOOKMARK", "ERROR"}
	var w writes
	sent := 0
	r := readerFunc(func(b []byte) (int, error) {
		if len(w.pieces) != sent {
			t.Errorf("%d events sent, %d written", sent, len(w.pieces))
		}
		if sent == len(events) {
			return 0, io.EOF
		}
		sent++
		return copy(b, `{"type":"`+events[sent-1]+`","object":`+fmt.Sprintf(serverItem, 1)+`}`), nil
	})
	if err := c.Watch(&w, r, nil); err != nil {
		t.Fatal(err)
	}
	for i, piece := range w.pieces {
		if !bytes.HasPrefix(piece, []byte(`{"type":"`+events[i])) || bytes.Count(piece, []byte("\n")) != 1 {
			t.Errorf("event %d is %q", i, piece)
		}
	}
}

// TestWatchLargeEvent checks that an event larger than the buffers comes whole,
// and the ones after it too.
func TestWatchLargeEvent(t *testing.T) {
	c := mustCompile(t, articleSpec())
	large := `{"type":"ADDED","object":{"data":"` + strings.Repeat("x", 3*largeEvent) + `"}}`
	var w writes
	if err := c.Watch(&w, iotest.HalfReader(strings.NewReader(large+"\n{}\n"+large)), nil); err != nil {
		t.Fatal(err)
	}
	if len(w.pieces) != 3 || string(w.pieces[0]) != large+"\n" || string(w.pieces[1]) != "{}\n" || string(w.pieces[2]) != large+"\n" {
		t.Errorf("%d events", len(w.pieces))
	}
}

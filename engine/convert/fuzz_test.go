package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"testing/iotest"
)

var jsonSeeds = []string{
	`{}`, `[]`, `null`, ` {"a" : [1, -0.5e+3, true, "x\u00e9\n"] }` + "\n", `{"a":1,"a":2}`, `"\ud800"`, `01`, `-`, `1.`, `1e`,
	`{"a":}`, `[1,]`, `{"a":1,}`, `"` + "\x01" + `"`, `"\x"`, `tru`, `{"a":1} x`, `""""`, `{"a" "b"}`, "\"\xff\"",
	`{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource","spec":{"config":{"requestTimeoutSeconds":3}}}`,
	`{"kind":"CustomResourceList","apiVersion":"myapps.example.com/v1beta1","items":[{"spec":{"stateManagement":"stateless"}},null]}`,
	`{"apiVersion":"myapps.example.com/v1beta1","items":[{}],"kind":"CustomResourceList"}`,
	`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource"}}]}`,
	`{"type":"ADDED","object":{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource"}}` + "\n" + `{"type":"BOOKMARK"}`,
}

// depthOf is how deep a valid JSON text is nested.
func depthOf(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// FuzzParse compares the scanner with encoding/json, checks that what is not
// edited comes out as it went in, and that a look into everything changes nothing.
func FuzzParse(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDoc()
		defer d.free()
		err := d.parse(b)
		valid := json.Valid(b)
		var syntax *syntaxError
		if errors.As(err, &syntax) && syntax.fault == tooDeep {
			return
		}
		if (err == nil) != valid {
			t.Fatalf("%q: %v, json.Valid %v", b, err, valid)
		}
		if err != nil {
			return
		}
		trimmed := bytes.TrimSpace(b)
		if got := d.bytes(root); !bytes.Equal(got, trimmed) {
			t.Fatalf("%q came out as %q", b, got)
		}
		if depthOf(b) > 200 {
			return
		}
		expandAll(d, root)
		if got := d.bytes(root); !bytes.Equal(got, trimmed) {
			t.Fatalf("%q came out as %q after looking into it", b, got)
		}
		for r := range d.nodes {
			d.nodes[r].dirty = d.nodes[r].expanded
		}
		got := d.bytes(root)
		if !json.Valid(got) || !sameJSON(t, got, b) {
			t.Fatalf("%q was put together as %q", b, got)
		}
		if size := d.size(root); size != len(got) {
			t.Fatalf("%q was said to have %d bytes", got, size)
		}
	})
}

func expandAll(d *doc, r ref) {
	for m := d.first(r); m != 0; m = d.next(m) {
		expandAll(d, m)
	}
}

// FuzzAnswer checks that the size of reads makes no difference, that what comes
// out is JSON if what went in is, and that a cut-off answer is an error.
func FuzzAnswer(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	c := mustCompile(f, articleSpec())
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole, bytewise bytes.Buffer
		err := c.Answer(&whole, bytes.NewReader(b), nil)
		slow := c.Answer(&bytewise, iotest.OneByteReader(bytes.NewReader(b)), nil)
		if (err == nil) != (slow == nil) || err == nil && !bytes.Equal(whole.Bytes(), bytewise.Bytes()) {
			t.Fatalf("%q: %q %v, byte by byte %q %v", b, &whole, err, &bytewise, slow)
		}
		object := bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{"))
		if json.Valid(b) && object && err == nil && !json.Valid(whole.Bytes()) {
			t.Fatalf("%q became %q", b, &whole)
		}
		if end := bytes.LastIndexByte(b, '}'); err == nil && end > 0 {
			if err := c.Answer(&bytewise, bytes.NewReader(b[:end]), nil); err == nil {
				t.Fatalf("%q was taken for whole", b[:end])
			}
		}
	})
}

// FuzzWatch checks the same of watch streams.
func FuzzWatch(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	c := mustCompile(f, articleSpec())
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole, bytewise bytes.Buffer
		err := c.Watch(&whole, bytes.NewReader(b), nil)
		slow := c.Watch(&bytewise, iotest.OneByteReader(bytes.NewReader(b)), nil)
		if (err == nil) != (slow == nil) || !bytes.Equal(whole.Bytes(), bytewise.Bytes()) {
			t.Fatalf("%q: %q %v, byte by byte %q %v", b, &whole, err, &bytewise, slow)
		}
		for line := range bytes.Lines(whole.Bytes()) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				t.Fatalf("%q: event without newline %q", b, line)
			}
		}
	})
}

// FuzzBodies feeds every entry the same bytes: none may panic, and what comes out
// is JSON.
func FuzzBodies(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`[{"op":"add","path":"/spec/config/legacyTimeout","value":"1"}]`))
	f.Add([]byte(`[{"op":"move","from":"/spec/config","path":"/a~0~1b/-1"}]`))
	f.Add([]byte("apiVersion: myapps.example.com/v1alpha1\nspec: {config: {legacyTimeout: '3'}}\n"))
	f.Add([]byte(`{"spec":{"$setElementOrder/config":[],"config":{"$retainKeys":["legacyTimeout"],"$patch":"replace"}}}`))
	c := mustCompile(f, articleSpec())
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(name string, out []byte, err error) {
			t.Helper()
			var e *Error
			switch {
			case err == nil && !json.Valid(out):
				t.Fatalf("%s: %q became %q", name, b, out)
			case err != nil && !errors.Is(err, ErrNeedsObject) && !errors.As(err, &e):
				t.Fatalf("%s: %q: unexpected error %v", name, b, err)
			}
		}
		out, err := c.Object(nil, b, ToServer, nil)
		check("object", out, err)
		out, err = c.Object(nil, b, ToClient, nil)
		check("object back", out, err)
		out, err = c.MergePatch(nil, b, nil)
		check("merge patch", out, err)
		out, err = c.StrategicMergePatch(nil, b, nil)
		check("strategic merge patch", out, err)
		out, err = c.JSONPatch(nil, b, nil)
		check("JSON patch", out, err)
		out, err = c.Apply(nil, b, nil)
		check("apply", out, err)
		c.FieldPath(string(b))
		c.ClientFieldPath(string(b))
	})
}

// FuzzPath checks that a path that parses is written back as an equal one.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"spec.a", `metadata.annotations["a.b/c"]`, "spec.l[*].x[*]", "a..b", "[*]", `a["`, "a]", "a['x']b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePath(s)
		if err != nil {
			return
		}
		again, err := parsePath(p.String())
		if err != nil || !again.equal(p) {
			t.Fatalf("%q is %q, which is %q, %v", s, p, again, err)
		}
	})
}

// FuzzProgram checks that no text of a program panics, and that places in
// messages are in the text.
func FuzzProgram(f *testing.F) {
	for _, seed := range []string{
		".", "rename(.a; .b)", `"\(now)" | test("x")`, "def f(g; $x): g; f(.; 1)", ".a[.b] -= 1", "{a: $x, b}", ". as {a: $y} | $y",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		c, errs := Compile(jqSpec(code, ""))
		for _, err := range errs {
			if err.Pos.Line < 1 || err.Pos.Col < 1 || err.Caret > len(err.Line) {
				t.Fatalf("%q: %v", code, err)
			}
		}
		if c == nil {
			return
		}
		out, err := c.Object(nil, []byte(`{"a":[1,"x",{"b":null}],"b":2}`), ToServer, nil)
		if err == nil && !json.Valid(out) {
			t.Fatalf("%q made %q", code, out)
		}
	})
}

package convert

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestMergePatchApply has the cases of RFC 7386, appendix A, and some of bytes.
func TestMergePatchApply(t *testing.T) {
	f := func(obj, patch, want string) {
		t.Helper()
		got, err := MergePatchApply([]byte(obj), []byte(patch))
		if err != nil || string(got) != want {
			t.Errorf("%s with %s: got %s, %v, want %s", obj, patch, got, err, want)
		}
	}

	f(`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`)
	f(`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`)
	f(`{"a":"b"}`, `{"a":null}`, `{}`)
	f(`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`)
	f(`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`)
	f(`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`)
	f(`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`)
	f(`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`)
	f(`["a","b"]`, `["c","d"]`, `["c","d"]`)
	f(`{"a":"b"}`, `["c"]`, `["c"]`)
	f(`{"a":"foo"}`, `null`, `null`)
	f(`{"a":"foo"}`, `"bar"`, `"bar"`)
	f(`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`)
	f(`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`)
	f(`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`)

	f(`{ "n": 1.10, "a": {"x" : 1e2} }`, `{"a":{"y":2.0}}`, `{ "n": 1.10, "a": {"x" : 1e2,"y": 2.0} }`)
	f(`{"a":1,"a":2,"b":3}`, `{"a":4}`, `{"a":4,"b":3}`)
	f(`{"a":1,"a":2}`, `{"\u0061":null}`, `{}`)
}

func TestMergePatchErrors(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	_, err := MergePatchApply([]byte(`{`), []byte(`{}`))
	f(err, "cannot patch the object: unexpected end at byte 2 of the JSON text")
	_, err = MergePatchApply([]byte(`{}`), []byte(`{a}`))
	f(err, "cannot apply the merge patch: invalid character at byte 2 of the JSON text")
	_, err = MergePatchDiff([]byte(``), []byte(`{}`))
	f(err, "cannot compare the old object: unexpected end at byte 1 of the JSON text")
	_, err = MergePatchDiff([]byte(`{}`), []byte(`tru`))
	f(err, "cannot compare the new object: unexpected end at byte 4 of the JSON text")
	_, err = MergePatchDiff([]byte(`{}`), []byte(`1`))
	f(err, "cannot make a merge patch of something else than two JSON objects")
}

func TestMergePatchDiff(t *testing.T) {
	f := func(from, to, want string) {
		t.Helper()
		got, err := MergePatchDiff([]byte(from), []byte(to))
		if err != nil || string(got) != want {
			t.Errorf("%s to %s: got %s, %v, want %s", from, to, got, err, want)
		}
	}

	f(`{}`, `{}`, `{}`)
	f(`{"a":1,"b":{"c":[1,2]}}`, `{"b":{"c":[1,2.0]},"a":1e0}`, `{}`)
	f(`{"a":1}`, `{"a":"1"}`, `{"a":"1"}`)
	f(`{"a":1,"b":2}`, `{"b":2}`, `{"a":null}`)
	f(`{"a":{"x":1,"y":2}}`, `{"a":{"x":1,"y":3, "z":1.50}}`, `{"a":{"y":3,"z":1.50}}`)
	f(`{"a":{"x":1}}`, `{"a":[1]}`, `{"a":[1]}`)
	f(`{"a":[{"x":1}]}`, `{"a":[{"x":2}]}`, `{"a":[{"x":2}]}`)
	f(`{"a":"\u0061"}`, `{"a":"a"}`, `{}`)
	f(`{"a":1}`, `{"a":null}`, `{"a":null}`)
	f(`{}`, `{"a":null}`, `{}`)
}

// TestMergePatchInverse checks that a difference, applied, is what it was made
// from.
func TestMergePatchInverse(t *testing.T) {
	for seed := range uint64(tries) {
		r := newDice(seed)
		from, to := text(t, r.object(false)), text(t, r.object(false))
		patch, err := MergePatchDiff(from, to)
		if err != nil {
			t.Fatal(err)
		}
		got, err := MergePatchApply(from, patch)
		if err != nil || !sameJSON(t, got, to) {
			t.Fatalf("%s to %s: patch %s gives %s, %v", from, to, patch, got, err)
		}
	}
}

// TestManyMembers checks that work on objects of very many members is not
// quadratic: it would not end.
func TestManyMembers(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,"spec":%d,`, i, i, i)
	}
	b.WriteString(`"spec":{"config":{}}}`)
	obj := []byte(b.String())
	patch := bytes.ReplaceAll(obj, []byte(`"k1`), []byte(`"l1`))

	c := mustCompile(t, articleSpec())
	got, err := c.Object(nil, obj, ToServer, nil)
	if err != nil || bytes.Count(got, []byte(`"spec"`)) != 1 {
		t.Errorf("object: %v, %d specs", err, bytes.Count(got, []byte(`"spec"`)))
	}
	if _, err := MergePatchApply(obj, patch); err != nil {
		t.Error(err)
	}
	diff, err := MergePatchDiff(obj, patch)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := MergePatchApply(obj, diff); err != nil || !sameJSON(t, got, patch) {
		t.Errorf("the difference does not lead there: %v", err)
	}
}

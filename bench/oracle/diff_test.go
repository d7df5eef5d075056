package oracle

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	f := func(got, want, differences string) {
		t.Helper()
		found, err := Diff([]byte(got), []byte(want))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, d := range found {
			lines = append(lines, d.String())
		}
		if text := strings.Join(lines, "; "); text != differences {
			t.Errorf("Diff(%s, %s)\n got %s\nwant %s", got, want, text, differences)
		}
	}

	f(`{"a":1,"b":"<"}`, `{ "b": "\u003c", "a": 1 }`, "")
	f(`{"a":1}`, `{"a":1.0}`, "a: got 1, want 1.0")
	f(`{"a":null}`, `{}`, "a: got null, want nothing")
	f(`{}`, `{"a":{}}`, "a: got nothing, want {}")
	f(`{"a":[]}`, `{"a":null}`, "a: got [], want null")
	f(`{"a":[{"b":1},{"c":2}]}`, `{"a":[{"b":1},{"c":3}]}`, "a[1].c: got 2, want 3")
	f(`{"a":[1]}`, `{"a":[1,2]}`, "a: got [1], want [1,2]")
	f(`{"m":{"x.y/z":"1"}}`, `{"m":{"x.y/z":"2"}}`, `m["x.y/z"]: got "1", want "2"`)
	f(`{"a":{"b":1}}`, `{"a":"x"}`, `a: got {"b":1}, want "x"`)
	f(`[]`, `{}`, "the document: got [], want {}")
}

func TestDiffOfWhatIsNoJSON(t *testing.T) {
	_, err := Diff([]byte(`{"a":`), []byte(`{}`))
	if want := `cannot read {"a":: unexpected EOF`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPattern(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		if got := Pattern(path); got != want {
			t.Errorf("Pattern(%q) = %q, want %q", path, got, want)
		}
	}

	f("spec.replicas", "spec.replicas")
	f("spec.rules[2].http.paths[0].path", "spec.rules[].http.paths[].path")
	f(`metadata.annotations["a.b/c"]`, `metadata.annotations["a.b/c"]`)
	f("", "")
}

func TestShrink(t *testing.T) {
	f := func(document, needs, want string) {
		t.Helper()
		got := Shrink([]byte(document), func(d []byte) bool { return strings.Contains(string(d), needs) })
		if string(got) != want {
			t.Errorf("Shrink(%s)\n got %s\nwant %s", document, got, want)
		}
	}

	f(`{"a":1,"b":{"c":2,"d":[1,{"e":"f"}]}}`, `"e"`, `{"b":{"d":[{"e":"x"}]}}`)
	f(`{"a":[1,2,3],"b":"long"}`, `2`, `{"a":[2]}`)
	f(`{"a":"long"}`, `{`, `{}`)
}

// A document that holds only as a whole stays as it was, and is not asked about for ever.
func TestShrinkGivesUp(t *testing.T) {
	var members []string
	for i := range maxTries {
		members = append(members, fmt.Sprintf(`"k%04d":"v%d"`, i, i))
	}
	whole := "{" + strings.Join(members, ",") + "}"
	tries := 0
	got := Shrink([]byte(whole), func(d []byte) bool { tries++; return string(d) == whole })
	if string(got) != whole || tries > maxTries {
		t.Errorf("%d tries left %d of %d bytes", tries, len(got), len(whole))
	}
}

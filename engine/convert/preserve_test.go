package convert

import (
	"fmt"
	"strings"
	"testing"
)

// keepPaths are preserved in random cases; a default of the rules is among them.
var keepPaths = []string{"spec.a", "spec.b.a", "spec.c.b.a"}

// checkKeep checks that what Keep makes of random objects has, at each preserved path,
// either the client's value or the server's, and that nothing else changed.
func checkKeep(t *testing.T, seed uint64) (kept bool) {
	t.Helper()
	r := newDice(seed)
	spec := r.spec()
	for _, p := range keepPaths {
		spec.Preserve = append(spec.Preserve, Preserved{Path: p})
	}
	c := mustCompile(t, spec)
	current := text(t, r.object(false))
	body, err := c.Object(nil, text(t, r.object(false)), ToServer, nil)
	if err != nil {
		return false
	}
	got, err := c.Keep(body, current, nil)
	if err != nil {
		t.Fatalf("seed %d: %s onto %s: %v", seed, body, current, err)
	}
	before, now, after := parsed(t, body), parsed(t, current), parsed(t, got)
	for _, p := range keepPaths {
		sent, stored, kept := lookUp(before, p), lookUp(now, p), lookUp(after, p)
		if kept != sent && kept != stored {
			t.Fatalf("seed %d: %s onto %s is %s: %s is of neither", seed, body, current, got, p)
		}
		if sent == "" && stored == "" && kept != "" {
			t.Fatalf("seed %d: %s onto %s is %s: %s came out of nothing", seed, body, current, got, p)
		}
	}
	// Once kept, there is nothing more to keep.
	if again, err := c.Keep(got, current, nil); err != nil || string(again) != string(got) {
		t.Fatalf("seed %d: %s onto %s is %s, and then %s %v", seed, body, current, got, again, err)
	}
	return string(got) != string(body)
}

// lookUp is the value at a path, as text; "" where there is none.
func lookUp(v any, path string) string {
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		if v, ok = m[key]; !ok {
			return ""
		}
	}
	return fmt.Sprintf("%v", v)
}

func TestKeepProperty(t *testing.T) {
	kept := 0
	for seed := range uint64(tries) {
		if checkKeep(t, seed) {
			kept++
		}
	}
	if kept < tries/20 {
		t.Errorf("a field was kept in only %d of %d cases", kept, tries)
	}
}

func FuzzKeep(f *testing.F) {
	c, errs := Compile(Spec{
		From: Version{Group: "g", Version: "v1", Resource: "things"}, To: Version{Group: "g", Version: "v2", Resource: "things"},
		Preserve: []Preserved{{Path: "spec.a"}, {Path: "spec.b.a"}, {Path: `metadata.annotations["x/y"]`}},
		Rules:    []Rule{{Action: Rename, Path: "spec.old", TargetPath: "spec.new"}},
	})
	if len(errs) > 0 {
		f.Fatal(errs)
	}
	f.Add([]byte(`{"spec":{}}`), []byte(`{"apiVersion":"g/v2","kind":"Thing","spec":{"a":1,"b":{"a":2}}}`))
	f.Add([]byte(`{"spec":{"\u0061":2,"a":1,"b":null}}`), []byte(`{"spec":{"a":1,"b":{"a":2,"a":3}},"metadata":{"annotations":{"x\/y":""}}}`))
	f.Add([]byte(`[]`), []byte(`{"spec":[]}`))
	f.Fuzz(func(t *testing.T, body, current []byte) {
		got, err := c.Keep(body, current, nil)
		if err != nil {
			return
		}
		d := newDoc()
		defer d.free()
		if err := d.parse(got); err != nil {
			t.Errorf("%s onto %s is %s: %v", body, current, got, err)
		}
	})
}

func TestResourceVersion(t *testing.T) {
	f := func(object, want, wantErr string) {
		t.Helper()
		got, err := ResourceVersion([]byte(object))
		if err != nil {
			got = ""
		}
		if got != want || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: got %q, %v, want %q, %q", object, got, err, want, wantErr)
		}
	}

	f(`{"metadata":{"resourceVersion":"7"}}`, "7", "")
	f(`{"metadata":{"resourceVersion":"7"},"Metadata":{"resourceVersion":"8"}}`, "7", "")
	f(`{"metadata":{"resourceVersion":"7","resourceVersion":"8"}}`, "8", "")
	f(`{"metadata":{"resource\u0056ersion":"7"}}`, "7", "")
	f(`{"metadata":null}`, "", "")
	f(`{}`, "", "")
	f(`{"metadata":{"resourceVersion":null}}`, "", "")
	f(`{"metadata":{"resourceVersion":7}}`, "", "metadata.resourceVersion is no string")
	f(`{"metadata":`, "", "unexpected end at byte 13")
}

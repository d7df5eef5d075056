package convert

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// A composed converter does what its two do one after the other, both ways.
func TestComposeProperty(t *testing.T) {
	counted := 0
	for seed := range uint64(tries) {
		r := newDice(seed)
		first, second := r.spec(), r.spec()
		first.From = Version{Group: "g", Version: "v1", Resource: "things"}
		first.To = Version{Group: "g", Version: "v2", Resource: "things", Kind: ""}
		second.From, second.To = first.To, Version{Group: "g", Version: "v3", Resource: "others"}
		a, b := mustCompile(t, first), mustCompile(t, second)
		both := Compose(a, b)
		if from, to := both.Versions(); from != first.From || to != second.To {
			t.Fatalf("between %v and %v", from, to)
		}
		x := text(t, r.object(false))
		middle, err := a.Object(nil, x, ToServer, nil)
		if err != nil {
			continue
		}
		want, err := b.Object(nil, middle, ToServer, nil)
		if err != nil {
			continue
		}
		counted++
		if got, err := both.Object(nil, x, ToServer, nil); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %s\n got %s %v\nwant %s", seed, x, got, err, want)
		}
		middle, err = b.Object(nil, want, ToClient, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := a.Object(nil, middle, ToClient, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := both.Object(nil, want, ToClient, nil); err != nil || !bytes.Equal(got, back) {
			t.Fatalf("seed %d: %s back\n got %s %v\nwant %s", seed, want, got, err, back)
		}
	}
	if counted < tries/4 {
		t.Errorf("only %d of %d cases counted", counted, tries)
	}
}

// What is preserved on the first part of the way is called as the last part does;
// a wrong value is told in the client's words.
func TestCompose(t *testing.T) {
	v := func(version, kind string) Version {
		return Version{Group: "g", Version: version, Resource: "things", Kind: kind}
	}
	program := func(code string) *source.Text {
		return &source.Text{Start: source.Pos{File: "p.jq", Line: 1, Col: 1}, Code: code}
	}
	a := mustCompile(t, Spec{
		From: v("v1", "Old"), To: v("v2", "New"), Preserve: []Preserved{{Path: "spec.kept.deep"}, {Path: "spec.both"}},
		Rules: []Rule{{Action: Rename, Path: "spec.a", TargetPath: "spec.b"}},
	})
	b := mustCompile(t, Spec{
		From: v("v2", ""), To: v("v3", ""), Preserve: []Preserved{{Path: "spec.both.of"}},
		Rules: []Rule{
			{Action: Rename, Path: "spec.b", TargetPath: "spec.c", Type: "integer"},
			{Action: Rename, Path: "spec.kept", TargetPath: "spec.moved"},
		},
		Request: program(`.spec.seen = "up"`), Response: program(`del(.spec.seen)`),
	})
	both := Compose(a, b)
	up, err := both.Object(nil, []byte(`{"apiVersion":"g/v1","kind":"Old","spec":{"a":"7"}}`), ToServer, nil)
	if want := `{"apiVersion":"g/v3","kind":"New","spec":{"c":7,"seen":"up"}}`; err != nil || string(up) != want {
		t.Errorf("got %s, %v, want %s", up, err, want)
	}
	_, err = both.Object(nil, []byte(`{"apiVersion":"g/v1","kind":"Old","spec":{"a":"x"}}`), ToServer, nil)
	if want := `spec.a: Invalid value: "x": must be an integer (policy  turns it into spec.c)`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	kept, err := both.Keep([]byte(`{"spec":{}}`), []byte(`{"apiVersion":"g/v3","kind":"New","spec":{"moved":{"deep":1},"both":{"of":2}}}`), nil)
	if want := `{"spec":{"both":{"of":2},"moved":{"deep":1}}}`; err != nil || string(kept) != want {
		t.Errorf("kept %s, %v, want %s", kept, err, want)
	}

	same := mustCompile(t, Spec{From: v("v3", ""), To: v("v4", "")})
	up, err = Compose(b, same).Object(nil, []byte(`{"apiVersion":"g/v2","kind":"New","spec":{}}`), ToServer, nil)
	if want := `{"apiVersion":"g/v4","kind":"New","spec":{"seen":"up"}}`; err != nil || string(up) != want {
		t.Errorf("got %s, %v, want %s", up, err, want)
	}
}

// Programs in the middle of a chain run between the rules of theirs, see the versions
// that they convert between, and cost no pass of their own.
func TestComposePrograms(t *testing.T) {
	v := func(version, kind string) Version {
		return Version{Group: "g", Version: version, Resource: "things", Kind: kind}
	}
	program := func(code string) *source.Text {
		return &source.Text{Start: source.Pos{File: "p.jq", Line: 1, Col: 1}, Code: code}
	}
	rename := func(from, to string) []Rule { return []Rule{{Action: Rename, Path: from, TargetPath: to}} }
	a := Spec{
		From: v("v1", "Old"), To: v("v2", "New"), Rules: rename("spec.a", "spec.b"),
		Request:  program(`.spec.b += 1 | .spec.way += [$from, .apiVersion, .kind, $to] | del(.spec.gone)`),
		Response: program(`.spec.b -= 1 | .spec.way += [$from, .apiVersion, .kind, $to] | rename(.metadata.labels.two; .metadata.labels.one)`),
	}
	b := Spec{From: v("v2", "New"), To: v("v3", "Newer"), Rules: []Rule{
		{Action: Rename, Path: "spec.b", TargetPath: "spec.c"},
		{Action: Rename, Path: "metadata.labels.two", TargetPath: "metadata.labels.three"},
	}}
	c := Spec{
		From: v("v3", "Newer"), To: v("v4", "Newer"), Rules: rename("spec.c", "spec.d"),
		Request:  program(`.spec.d *= 2 | .spec.way += [$from, .apiVersion, .kind, $to]`),
		Response: program(`.spec.d /= 2 | .spec.way += [$from, .apiVersion, .kind, $to]`),
	}
	all := Compose(Compose(mustCompile(t, a), mustCompile(t, b)), mustCompile(t, c))
	schemas := all.WithSchemas(types{"spec.a": TypeInteger}, nil)
	f := func(dir Direction, src, want string) {
		t.Helper()
		for _, converter := range []*Converter{all, schemas} {
			got, err := converter.Object(nil, []byte(src), dir, nil)
			if err != nil || !sameJSON(t, got, []byte(want)) {
				t.Errorf("%s\n got %s, %v\nwant %s", src, got, err, want)
			}
		}
	}

	f(ToServer, `{"apiVersion":"g/v1","kind":"Old","spec":{"a":20,"gone":1}}`,
		`{"apiVersion":"g/v4","kind":"Newer","spec":{"d":42,"way":["g/v1","g/v1","Old","g/v2","g/v3","g/v3","Newer","g/v4"]}}`)
	f(ToClient, `{"apiVersion":"g/v4","kind":"Newer","metadata":{"labels":{"three":"3"}},"spec":{"d":42}}`,
		`{"apiVersion":"g/v1","kind":"Old","metadata":{"labels":{"one":"3"}},"spec":{"a":20,"way":["g/v4","g/v4","Newer","g/v3","g/v2","g/v2","New","g/v1"]}}`)

	if _, err := all.MergePatch(nil, []byte(`{"spec":{"a":1}}`), nil); !errors.Is(err, ErrNeedsObject) {
		t.Errorf("a patch through programs was rewritten: %v", err)
	}
	if lost := fmt.Sprint(all.Lost([]byte(`{"spec":{"gone":1}}`))); lost != "[{spec.gone false}]" {
		t.Errorf("lost is %s", lost)
	}
	var partial bytes.Buffer
	const answer = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"labels":{"three":"3"}}}`
	if err := all.Answer(&partial, strings.NewReader(answer), nil); err != nil || partial.String() != strings.Replace(answer, "three", "one", 1) {
		t.Errorf("metadata was answered %s, %v", partial.String(), err)
	}
	_, err := all.Object(nil, []byte(`{"apiVersion":"g/v1","kind":"Old","spec":{"a":{}}}`), ToServer, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "p.jq:1:1: ") {
		t.Errorf("a program that fails says %v", err)
	}
}

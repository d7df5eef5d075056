package convert

import (
	"bytes"
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

	if Compose(b, a) != nil {
		t.Error("rules ran before the program that comes first")
	}
	same := mustCompile(t, Spec{From: v("v3", ""), To: v("v4", "")})
	up, err = Compose(b, same).Object(nil, []byte(`{"apiVersion":"g/v2","kind":"New","spec":{}}`), ToServer, nil)
	if want := `{"apiVersion":"g/v4","kind":"New","spec":{"seen":"up"}}`; err != nil || string(up) != want {
		t.Errorf("got %s, %v, want %s", up, err, want)
	}
}

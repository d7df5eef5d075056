package convert

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// articleSpec is a conversion of a custom resource by declarative rules.
func articleSpec() Spec {
	return Spec{
		Policy: "article",
		Pos:    source.Pos{File: "rules.yaml", Line: 5, Col: 7},
		From:   Version{Group: "myapps.example.com", Version: "v1alpha1", Resource: "customresources", Kind: "CustomResource"},
		To:     Version{Group: "myapps.example.com", Version: "v1beta1", Resource: "customresources", Kind: "CustomResource"},
		Rules: []Rule{
			{
				Pos: source.Pos{File: "rules.yaml", Line: 10, Col: 11}, Action: Rename,
				Path: "spec.config.legacyTimeout", TargetPath: "spec.config.requestTimeoutSeconds", Type: "integer",
			},
			{
				Pos: source.Pos{File: "rules.yaml", Line: 14, Col: 11}, Action: Modify,
				Path: "spec.stateManagement", MatchValue: "ephemeral", HasMatch: true, ReplaceValue: "stateless", HasReplace: true,
			},
		},
	}
}

func mustCompile(t testing.TB, spec Spec) *Converter {
	t.Helper()
	c, errs := Compile(spec)
	if len(errs) > 0 {
		t.Fatalf("cannot compile: %v", errs)
	}
	return c
}

// sameJSON reports whether two texts are the same JSON value, every digit and
// member of it.
func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	d, e := newDoc(), newDoc()
	defer d.free()
	defer e.free()
	if err := errors.Join(d.parse(a), e.parse(b)); err != nil {
		t.Fatalf("cannot compare %s and %s: %v", a, b, err)
	}
	return d.equal(root, e, root)
}

func TestArticleRules(t *testing.T) {
	c := mustCompile(t, articleSpec())
	const client = `{"apiVersion": "myapps.example.com/v1alpha1","kind":"CustomResource","metadata":{"name":"a"},` +
		`"spec":{"config":{"legacyTimeout":"30", "other":1.10},"stateManagement":"ephemeral"}}`
	const server = `{"apiVersion": "myapps.example.com/v1beta1","kind":"CustomResource","metadata":{"name":"a"},` +
		`"spec":{"config":{"requestTimeoutSeconds":30, "other":1.10},"stateManagement":"stateless"}}`
	got, err := c.Object(nil, []byte(client), ToServer, nil)
	if err != nil || string(got) != server {
		t.Fatalf("got %s, %v\nwant %s", got, err, server)
	}
}

// TestConcurrentUse converts with one Converter from many goroutines; the race
// detector watches.
func TestConcurrentUse(t *testing.T) {
	spec := articleSpec()
	spec.Rules = append(spec.Rules, Rule{
		Action: Modify, Path: "spec.list", HasMatch: true, MatchValue: []any{"a"}, HasReplace: true, ReplaceValue: []any{},
	})
	c := mustCompile(t, spec)
	program := jqSpec(`ensure(.spec.n; 1) | .spec.n += 1`, "")
	jq := mustCompile(t, program)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				got, err := c.Object(nil, []byte(`{"spec":{"config":{"legacyTimeout":"1"},"list":["a"]}}`), ToServer, nil)
				if want := `{"spec":{"config":{"requestTimeoutSeconds":1},"list":[]}}`; err != nil || string(got) != want {
					t.Errorf("got %s, %v, want %s", got, err, want)
				}
				got, err = jq.Object(nil, []byte(`{"spec":{}}`), ToServer, &Vars{})
				if want := `{"spec":{"n":2}}`; err != nil || string(got) != want {
					t.Errorf("got %s, %v, want %s", got, err, want)
				}
			}
		})
	}
	group.Wait()
}

// TestUnknownKind checks what a converter that does not know its kind takes for
// it.
func TestUnknownKind(t *testing.T) {
	spec := articleSpec()
	spec.From.Kind, spec.To.Kind = "", ""
	c := mustCompile(t, spec)
	f := func(kind string, converted bool) {
		t.Helper()
		src := `{"apiVersion":"myapps.example.com/v1beta1","kind":"` + kind + `","spec":{"stateManagement":"stateless"}}`
		got, err := c.Object(nil, []byte(src), ToClient, nil)
		if err != nil || strings.Contains(string(got), "ephemeral") != converted {
			t.Errorf("%s: got %s, %v", kind, got, err)
		}
	}

	f("CustomResource", true)
	f("Other", true)
	f("CustomResourceList", false)
	f("DeleteOptions", false)
	f("Scale", false)
	f("Eviction", false)
	f("Status", false)
	f("", false)
}

// TestErrorFields checks what a caller answers with.
func TestErrorFields(t *testing.T) {
	spec := articleSpec()
	spec.Rules = append(spec.Rules,
		Rule{Action: Rename, Path: "spec.old[*].l", TargetPath: "spec.old[*].list"},
		Rule{
			Pos: source.Pos{File: "rules.yaml", Line: 20, Col: 3}, Action: Rename,
			Path: "spec.old[*].list[*].n", TargetPath: "spec.old[*].list[*].m", Type: "boolean",
		},
	)
	c := mustCompile(t, spec)
	_, err := c.Object(nil, []byte(`{"spec":{"old":[{},{"l":[{"n":true},{"n":"no"}]}]}}`), ToServer, nil)
	var e *Error
	if !errors.As(err, &e) || !e.Invalid || e.Policy != "article" || e.Pos.Line != 20 || e.Path != "spec.old[1].l[1].n" {
		t.Errorf("got %+v", err)
	}

	jq := mustCompile(t, jqSpec(`error("no")`, ""))
	_, err = jq.Object(nil, []byte(`{}`), ToServer, nil)
	if !errors.As(err, &e) || e.Invalid || e.Path != "" || e.Pos.String() != "p.request.jq:1:1" || e.Err == nil {
		t.Errorf("got %+v", err)
	}
}

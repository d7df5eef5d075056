package convert

import "testing"

// statusConverter renames fields in every shape of path, the kind, and the group.
func statusConverter(t testing.TB) *Converter {
	t.Helper()
	return mustCompile(t, Spec{
		Policy: "p",
		From:   Version{Group: "old.example.com", Version: "v1alpha1", Resource: "oldthings", Kind: "OldThing"},
		To:     Version{Group: "example.com", Version: "v1", Resource: "things", Kind: "Thing"},
		Rules: []Rule{
			{Action: Rename, Path: "spec.config.old", TargetPath: "spec.config.new"},
			{Action: Rename, Path: "spec.items[*].img", TargetPath: "spec.items[*].image.name"},
			{Action: Rename, Path: "payload", TargetPath: "data"},
		},
	})
}

func TestClientText(t *testing.T) {
	c := statusConverter(t)
	f := func(server, want string) {
		t.Helper()
		if got := c.ClientText(server); got != want {
			t.Errorf("ClientText(%q)\n got %q\nwant %q", server, got, want)
		}
	}

	f(`strict decoding error: unknown field "spec.config.new.x", duplicate field "spec.items[3].image.name"`,
		`strict decoding error: unknown field "spec.config.old.x", duplicate field "spec.items[3].img"`)
	f(`spec.config.new: Invalid value: "string": spec.config.new in body must be of type integer: "string"`,
		`spec.config.old: Invalid value: "string": spec.config.old in body must be of type integer: "string"`)
	f(`[spec.config.new: Required value, spec.items[0].image.name: Too long.]`, `[spec.config.old: Required value, spec.items[0].img: Too long.]`)
	f(`Apply failed with 2 conflicts: conflicts with "a" using example.com/v1:`+"\n- .spec.config.new\n- .spec.items[name=\"x\"].image.name",
		`Apply failed with 2 conflicts: conflicts with "a" using example.com/v1:`+"\n- .spec.config.old\n- .spec.items[name=\"x\"].img")
	f(`.spec.config.new: field not declared in schema`, `.spec.config.old: field not declared in schema`)
	f(`denied: spec.config.new.`, `denied: spec.config.old.`)
	f(`data: Forbidden`, `payload: Forbidden`)
	f(`unknown field "data"`, `unknown field "payload"`)

	// Data, words, longer names, and what does not end.
	for _, text := range []string{
		"", `spec.a: Invalid value: "spec.config.new"`, `Invalid value: "a\"spec.config.new"`, "the data is wrong", "spec.config.newer: no",
		"x.spec.config.new", `unknown field "spec.config.new`[:15] + "spec", `"spec.config.new`, `"`, "spec.items[0", "a[", ".", "..",
	} {
		f(text, text)
	}
}

// The values that a rule exchanges are the client's in what is said of their field, and
// nowhere else.
func TestClientTextOfValues(t *testing.T) {
	modify := func(path, match, replace string) Rule {
		return Rule{Action: Modify, Path: path, MatchValue: match, HasMatch: true, ReplaceValue: replace, HasReplace: true}
	}
	c := mustCompile(t, Spec{
		Policy: "p",
		From:   Version{Group: "example.com", Version: "v1", Resource: "things", Kind: "Thing"},
		To:     Version{Group: "example.com", Version: "v2", Resource: "things", Kind: "Thing"},
		Rules: []Rule{
			modify("spec.state", "ephemeral", "stateless"),
			{Action: Rename, Path: "spec.state", TargetPath: "spec.mode"},
			modify("spec.mode", "on \"it\"", "on"),
			modify("spec.list[*].kind", "a", "b"),
			modify("spec.n", "1", "2"),
		},
	})
	f := func(server, want string) {
		t.Helper()
		if got := c.ClientText(server); got != want {
			t.Errorf("ClientText(%q)\n got %q\nwant %q", server, got, want)
		}
	}

	f(`spec.mode: Unsupported value: "stateless": supported values: "stateful", "stateless", "on"`,
		`spec.state: Unsupported value: "ephemeral": supported values: "stateful", "ephemeral", "on \"it\""`)
	f(`[spec.mode: Invalid value: "stateless": "stateless" is bad, spec.list[2].kind: Unsupported value: "b": supported values: "c"]`,
		`[spec.state: Invalid value: "ephemeral": "stateless" is bad, spec.list[2].kind: Unsupported value: "a": supported values: "c"]`)
	f(`spec.list[0].kind: Duplicate value: "b"`, `spec.list[0].kind: Duplicate value: "a"`)

	// Other fields, other words, and what does not end.
	for _, text := range []string{
		`spec.other: Unsupported value: "stateless"`, `spec.list[0].kind.x: Invalid value: "b"`, `"b"`, `Invalid value: "b"`, `spec.n: Invalid value: 2`,
		`spec.list[0].kind: supported values: "c" or "b"`, `spec.list[0].kind: Invalid value: "b`, `spec.list[0].kind: "b"`,
	} {
		f(text, text)
	}
	status := `{"kind":"Status","details":{"causes":[{"field":"spec.mode","message":"Unsupported value: \"x\": supported values: \"stateless\", \"on\""}]}}`
	want := `{"kind":"Status","details":{"causes":[{"field":"spec.state","message":"Unsupported value: \"x\": supported values: \"ephemeral\", \"on \\\"it\\\"\""}]}}`
	if got := string(c.Status(nil, []byte(status))); got != want {
		t.Errorf("Status(%s)\n got %s\nwant %s", status, got, want)
	}
}

func TestStatus(t *testing.T) {
	c := statusConverter(t)
	f := func(server, want string) {
		t.Helper()
		if got := string(c.Status(nil, []byte(server))); got != want {
			t.Errorf("Status(%s)\n got %s\nwant %s", server, got, want)
		}
	}

	f(`{ "kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Thing.example.com \"x\" is invalid: spec.config.new: Required value","reason":"Invalid","details":{"name":"x","group":"example.com","kind":"Thing","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec.config.new"}]},"code":422}`,
		`{ "kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"OldThing.old.example.com \"x\" is invalid: spec.config.old: Required value","reason":"Invalid","details":{"name":"x","group":"old.example.com","kind":"OldThing","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"spec.config.old"}]},"code":422}`)
	f(`{"kind":"Status","message":"things.example.com \"x\" not found","details":{"group":"example.com","kind":"things"}}`,
		`{"kind":"Status","message":"oldthings.old.example.com \"x\" not found","details":{"group":"old.example.com","kind":"oldthings"}}`)
	f(`{"kind":"Status","message":"m","details":{"causes":[{"field":".spec.items[0].image.name","message":"conflict with \"a\": .spec.config.new"}]}}`,
		`{"kind":"Status","message":"m","details":{"causes":[{"field":".spec.items[0].img","message":"conflict with \"a\": .spec.config.old"}]}}`)

	f(`{"kind":"Status","message":"Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: unknown field \"spec.config.new.x\"","code":400}`,
		`{"kind":"Status","message":"OldThing in version \"v1alpha1\" cannot be handled as a OldThing: strict decoding error: unknown field \"spec.config.old.x\"","code":400}`)

	f(`{"kind":"Status","message":"failed to create typed patch object (d/x; example.com/v1, Kind=Thing): .spec.config.new.x: field not declared in schema","code":500}`,
		`{"kind":"Status","message":"failed to create typed patch object (d/x; old.example.com/v1alpha1, Kind=OldThing): .spec.config.old.x: field not declared in schema","code":500}`)
	f(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"x","group":"example.com","kind":"things","uid":"u"}}`,
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"x","group":"old.example.com","kind":"oldthings","uid":"u"}}`)

	// About something else, or nothing that a Status is.
	for _, text := range []string{
		`{"kind":"Status","message":"namespaces \"x\" not found","details":{"name":"x","kind":"namespaces"}}`,
		`{"kind":"Status","message":"things.other.com \"x\" not found","details":{"group":"other.com","kind":"things"}}`,
		`{"kind":"Status","metadata":{"continue":"spec.config.new"},"message":"The provided continue parameter is too old","code":410}`,
		`{"kind":"Status","message":7,"details":[],"code":400}`, `{"kind":"Status","details":{"causes":{"a":1}}}`, `{"kind":"Status","details":{"causes":[1,null]}}`,
		`{"kind":"Thing","message":"spec.config.new"}`, `{"message":"spec.config.new"}`, `[]`, `nonsense`, ``,
	} {
		f(text, text)
	}
}

func FuzzClientText(f *testing.F) {
	f.Add(`[spec.config.new: Invalid value: "a\"b", unknown field "data"]`)
	f.Add(`{"kind":"Status","message":"Thing.example.com \"x\": data:","details":{"causes":[{"field":".spec.items[0].image.name"}]}}`)
	c := statusConverter(f)
	f.Fuzz(func(t *testing.T, text string) {
		c.ClientText(text)
		once := c.Status(nil, []byte(text))
		d := newDoc()
		defer d.free()
		if d.parse([]byte(text)) == nil && d.parse(once) != nil {
			t.Errorf("Status made %q of %q", once, text)
		}
	})
}

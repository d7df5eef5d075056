package roundtrip

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies"
)

// trip makes the way through the one conversion of a policy in files.
func trip(t *testing.T, files map[string]string) *Trip {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policies.Load(policies.Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return New(set.Conversions()[0])
}

// rules is a policy of the transformations.
func rules(transformations string) map[string]string {
	return map[string]string{"rules.yaml": `
apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: rules}
spec:
  apiMigrationRules:
    - {apiGroup: acme.io, resource: wheels, kind: Wheel, fromVersion: v1beta1, toVersion: v1, preserve: [spec.kept], transformations: [` + transformations + `]}
`}
}

// program is a policy of jq programs.
func program(request, response string) map[string]string {
	return map[string]string{
		"10.convert.cel": `{'resource': 'wheels', 'kind': 'Wheel', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"10.request.jq":  request,
		"10.response.jq": response,
	}
}

func TestCheck(t *testing.T) {
	f := func(files map[string]string, side Side, spec, want string) {
		t.Helper()
		way := trip(t, files)
		object := fmt.Sprintf(`{"apiVersion":%q,"kind":"Wheel","spec":%s}`, way.Version(side).APIVersion(), spec)
		failure, told, err := way.Check(side, []byte(object))
		got := "same"
		var refused *Refused
		switch {
		case errors.As(err, &refused):
			got = "refused: " + err.Error()
		case failure != nil:
			got = failure.String()
		case len(told) > 0:
			got = "told: " + told[0].String()
		}
		if err == nil && failure != nil && failure.Err != nil {
			_, got, _ = strings.Cut(got, "policy ")
		}
		if got != want {
			t.Errorf("%s %s\n got %s\nwant %s", side, spec, got, want)
		}
	}

	renames := rules("{path: spec.a, action: rename, targetPath: spec.b, type: integer}")
	f(renames, Client, `{"a":1,"x":{}}`, "same")
	f(renames, Client, `{"a":"x"}`, `refused: spec.a: Invalid value: "x": must be an integer (policy rules/apiMigrationRules[0] turns it into spec.b)`)
	f(renames, Client, `{"a":"30"}`, `it comes back as another object: spec.a "30" → 30`) // without a schema
	f(renames, Server, `{"b":1,"kept":[1]}`, "same")

	// What a rule says that it does for good is no loss that nobody knows of.
	f(rules("{path: spec.a, action: remove}"), Client, `{"a":1,"b":2}`, "told: spec.a removed: 1")
	ensures := rules("{path: 'spec.list[*].a', action: ensureFieldExistence, defaultValue: 1}")
	f(ensures, Client, `{"list":[{"a":2},{"b":1}]}`, "told: spec.list[1].a added: 1")
	f(ensures, Client, `{"list":[{}]}`, "told: spec.list[0] removed: {}")
	f(rules("{path: spec.a, action: modify, replaceValue: x}"), Server, `{"a":"y"}`, `told: spec.a "y" → "x"`)

	f(program(`.`, `.`), Client, `{"a":1}`, "same")
	f(program(`rename(.spec.old; .spec.new)`, `.`), Client, `{"old":1}`, "it comes back as another object: spec.old 1 → spec.new 1")
	f(program(`.`, `del(.spec.a)`), Server, `{"a":1,"b":2}`, "it comes back as another object: spec.a removed: 1")
	f(program(`error("not today")`, `.`), Client, `{}`, "10: the program failed: error: not today")
	f(program(`.`, `error("not today")`), Server, `{}`, "10: the program failed: error: not today")

	// A program that fills in a default does so in an object with nothing in it.
	f(program(`.spec.a //= 3`, `.`), Client, `{"b":1}`, "told: spec.a added: 3")
	f(program(`.spec.a //= .spec.b`, `.`), Client, `{"b":1}`, "it comes back as another object: spec.a added: 1")
}

// The smallest object that fails has nothing in it that it does not need for that.
func TestSmallest(t *testing.T) {
	f := func(request, object, want string, allowed func([]byte) bool) {
		t.Helper()
		way := trip(t, program(request, `.`))
		failure, _, err := way.Check(Client, []byte(object))
		if err != nil || failure == nil {
			t.Fatalf("%s does not fail: %v", object, err)
		}
		smallest := way.Smallest(failure, allowed)
		if got := string(smallest.Object); got != want {
			t.Errorf("%s\n got %s\nwant %s", object, got, want)
		}
		if (smallest.Err == nil) != (failure.Err == nil) {
			t.Errorf("%s fails in another way: %v", smallest.Object, smallest.Err)
		}
	}

	const big = `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","metadata":{"name":"w","labels":{"a":"b"}},"spec":{"x":true,"list":[{"n":1},{"n":5000,"m":"text"},{"n":2}],"name":"a long text"}}`
	f(`if (.spec.list | length) > 0 then .spec.list |= map(if (.n // 0) > 40 then .n = 0 else . end) else . end`, big,
		`{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"list":[{"n":78}]}}`, nil)
	f(`if .spec.name then .spec.name |= ascii_upcase else . end`, big, `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"name":"a"}}`, nil)
	f(`if .spec.x then error("x") else . end`, big, `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"x":true}}`, nil)
	f(`if .spec.list then error("x") else del(.spec.name) end`, big, `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"list":[]}}`, nil) // not one that differs
	// It stays one that there can be.
	f(`del(.spec.x)`, big, `{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"name":"","x":false}}`,
		func(object []byte) bool { return strings.Contains(string(object), `"name"`) })
}

// Words are what a policy looks for, by the side that it does so on.
func TestWords(t *testing.T) {
	way := trip(t, rules("{path: spec.state, action: modify, matchValue: ephemeral, replaceValue: stateless}"))
	if client, server := way.Words(Client), way.Words(Server); !slices.Equal(client, []string{"ephemeral"}) || !slices.Equal(server, []string{"stateless"}) {
		t.Errorf("the words are %q and %q", client, server)
	}
	way = trip(t, program(`if .spec.a == "x \"y\"" then .spec.b = "z" else . end`, `.spec.c = "w"`))
	if client, server := way.Words(Client), way.Words(Server); !slices.Equal(client, []string{`x "y"`, "z"}) || !slices.Equal(server, []string{"w"}) {
		t.Errorf("the words are %q and %q", client, server)
	}
}

type textSchema struct{}

func (textSchema) TypeAt([]string) convert.Type { return convert.TypeString }

func TestValues(t *testing.T) {
	c := *trip(t, rules("{path: spec.a, action: rename, targetPath: spec.b, type: boolean}")).Conversion()
	if got := New(&c).Values(); len(got) != 0 {
		t.Errorf("without a schema there are %v", got)
	}
	c.Converter = c.WithSchemas(textSchema{}, nil)
	if got := New(&c).Values(); !slices.Equal(got["a"], []string{`"true"`, `"false"`}) {
		t.Errorf("the values are %v", got)
	}
}

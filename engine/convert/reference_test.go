package convert

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/docs/doctable"
)

const reference = "../../docs/policies-reference.md"

// TestReferencePrograms runs the jq examples of the reference and looks whether any
// function that a program may use is missing.
func TestReferencePrograms(t *testing.T) {
	page, err := doctable.Read(reference)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, heading := range []string{"jq helpers", "jq functions"} {
		rows, err := page.Tables(heading, "program", "spec", "result")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			checkExample(t, row)
			query, err := gojq.Parse(row.Cells[0])
			if err != nil {
				t.Errorf("line %d: %v", row.Line, err)
				continue
			}
			noteFunctions(used, reflect.ValueOf(query))
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(allowedFuncs)), jqFormats...) {
		if !used[name] {
			t.Errorf("the reference has no example of %s", name)
		}
	}
}

// checkExample runs the program of row.
func checkExample(t *testing.T, row doctable.Row) {
	t.Helper()
	program, before, result := row.Cells[0], row.Cells[1], row.Cells[2]
	object := func(version, spec string) string {
		return `{"apiVersion":"example.com/` + version + `","kind":"Thing","metadata":{"name":"a"},"spec":` + spec + `}`
	}
	refused, isRefused := strings.CutPrefix(result, "refused: ")
	c, errs := Compile(jqSpec(program, ""))
	if errs != nil || isRefused {
		if !isRefused || errs == nil || !strings.Contains(errs.Error(), refused) {
			t.Errorf("line %d: %s compiles with the mistakes %v, want %s", row.Line, program, errs, result)
		}
		return
	}
	got, err := c.Object(nil, []byte(object("v1", before)), ToServer, &Vars{Request: map[string]any{"verb": "patch"}})
	if err != nil {
		message, isError := strings.CutPrefix(result, "error: ")
		if !isError || !strings.Contains(err.Error(), message) {
			t.Errorf("line %d: %s: %v, want %s", row.Line, program, err, result)
		}
		return
	}
	if strings.HasPrefix(result, "error: ") || !sameJSON(t, got, []byte(object("v2", result))) {
		t.Errorf("line %d: %s\n got %s\nwant %s", row.Line, program, got, result)
	}
}

// noteFunctions notes in used the functions and formats that are called anywhere below
// the syntax tree v.
func noteFunctions(used map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			noteFunctions(used, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteFunctions(used, v.Index(i))
		}
	case reflect.Struct:
		switch node := v.Interface().(type) {
		case gojq.Func:
			used[jqName(node.Name, len(node.Args))] = true
		case gojq.Term:
			used[node.Format] = true
		}
		for i := range v.NumField() {
			noteFunctions(used, v.Field(i))
		}
	}
}

// TestReferenceRefused compares the functions that the reference says are refused with
// those that are, and what it says an operator may allow with what then compiles.
func TestReferenceRefused(t *testing.T) {
	page, err := doctable.Read(reference)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := page.Tables("jq that is refused", "functions", "reason", "--allow-unbounded-jq")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range rows {
		for name := range strings.FieldsSeq(row.Cells[0]) {
			documented[name] = true
			checkRefused(t, row.Line, name, row.Cells[1])
			if allowed := row.Cells[2] == "yes"; allowed != mayBeAllowed(name) {
				t.Errorf("line %d: the reference says %s of %s", row.Line, row.Cells[2], name)
			}
		}
	}
	for name := range refusedFuncs {
		if !documented[name] {
			t.Errorf("the reference does not say that %s is refused", name)
		}
	}
	for name := range unboundedFuncs {
		if base, _, _ := strings.Cut(name, "/"); !allowedFuncs[name] && !documented[base] {
			t.Errorf("the reference does not say that an operator can allow %s", name)
		}
	}
}

// checkRefused compiles a call of name, with more arguments than any function takes,
// since a name may be refused with some numbers of them only.
func checkRefused(t *testing.T, line int, name, reason string) {
	t.Helper()
	program := fmt.Sprintf(".spec.x = %s(1; 2; 3; 4; 5)", name)
	if strings.HasPrefix(name, "$") {
		program = ".spec.x = " + name
	}
	if _, errs := Compile(jqSpec(program, "")); errs == nil || !strings.Contains(errs.Error(), "cannot be used here: "+reason) {
		t.Errorf("line %d: %s: got the mistakes %v, want %q", line, program, errs, reason)
	}
}

func mayBeAllowed(name string) bool {
	for known := range unboundedFuncs {
		if base, _, _ := strings.Cut(known, "/"); base == name {
			return true
		}
	}
	return false
}

package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/docs/doctable"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// TestRequestFields holds the fields that a program may name to those that there are, and
// the documentation to both.
func TestRequestFields(t *testing.T) {
	request, err := ParseRequest("GET", "/api/v1/pods?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	given := slices.Sorted(maps.Keys(request.Vars()))
	if !slices.Equal(given, convert.RequestFields) {
		t.Errorf("a program is given\n%q\nand may name\n%q", given, convert.RequestFields)
	}
	page, err := doctable.Read("../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := page.Tables("jq", "field", "holds")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range rows {
		documented = append(documented, strings.TrimPrefix(row.Cells[0], "$request."))
	}
	slices.Sort(documented)
	if !slices.Equal(documented, convert.RequestFields) {
		t.Errorf("documented are\n%q\nwant\n%q", documented, convert.RequestFields)
	}
}

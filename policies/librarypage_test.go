package policies

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// libraryPage documents the library. The tables on it follow from the library.
const libraryPage = "../docs/library.md"

// TestLibraryPage holds that the page has all that is shipped: what each is converted to,
// what that costs, so that a program which is no longer done on bytes is noticed, and
// what it cannot.
func TestLibraryPage(t *testing.T) {
	page, err := os.ReadFile(libraryPage)
	if err != nil {
		t.Fatal(err)
	}
	want := page
	want = replaceTable(t, want, "| removed in | policy | from | to | bodies |", conversionTable(t))
	want = replaceTable(t, want, "| policy | limits |", limitsTable())
	want = replaceTable(t, want, "| removed in | policy | why |", goneTable())
	if bytes.Equal(page, want) {
		return
	}
	if *update {
		if err := os.WriteFile(libraryPage, want, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the tables are not what the library is; -update writes them:\n%s", want)
}

// replaceTable puts rows in place of those below the table's head.
func replaceTable(t *testing.T, page []byte, head, rows string) []byte {
	t.Helper()
	line := strings.Repeat("|---", strings.Count(head, "|")-1) + "|\n"
	before, after, ok := bytes.Cut(page, []byte(head+"\n"+line))
	if !ok {
		t.Fatalf("%s has no table\n%s\n%s", libraryPage, head, line)
	}
	for bytes.HasPrefix(after, []byte("|")) {
		_, after, _ = bytes.Cut(after, []byte("\n"))
	}
	return fmt.Appendf(nil, "%s%s\n%s%s%s", before, head, line, rows, after)
}

func conversionTable(t *testing.T) string {
	var b strings.Builder
	for _, shipped := range Library() {
		for _, doc := range shipped.Docs {
			if doc.From != "" {
				fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", shipped.Release, doc.Name, doc.From, doc.To, bodiesOf(t, doc, shipped))
			}
		}
	}
	return b.String()
}

// bodiesOf says what is done with the bodies of the policies that doc is about.
func bodiesOf(t *testing.T, doc ShippedDoc, shipped Shipped) string {
	t.Helper()
	found := ""
	for _, p := range shipped.Policies {
		if !doc.isOf(p.Name) {
			continue
		}
		c := shippedConversion(t, p.Name)
		one := "same"
		switch {
		case c.Decodes(convert.ToServer) || c.Decodes(convert.ToClient):
			one = "decoded"
		case c.UsesJQ():
			one = "program on bytes"
		case len(p.Convert.Rules) > 0:
			one = "rules"
		}
		if found = cmp.Or(found, one); found != one {
			t.Errorf("%s: the bodies of its policies are %s and %s", doc.Name, found, one)
		}
	}
	return found
}

func limitsTable() string {
	var b strings.Builder
	for _, shipped := range Library() {
		for _, doc := range shipped.Docs {
			if doc.From != "" && doc.Limits != "" {
				fmt.Fprintf(&b, "| `%s` | %s |\n", doc.Name, strings.ReplaceAll(doc.Limits, "|", `\|`))
			}
		}
	}
	return b.String()
}

func goneTable() string {
	var b strings.Builder
	for _, shipped := range Library() {
		for _, doc := range shipped.Docs {
			if doc.From == "" {
				fmt.Fprintf(&b, "| %s | `%s` | %s |\n", shipped.Release, doc.Name, strings.ReplaceAll(doc.Limits, "|", `\|`))
			}
		}
	}
	return b.String()
}

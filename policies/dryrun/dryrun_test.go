package dryrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// names are what Read found: "source apiVersion kind name".
func names(t *testing.T, manifests []Manifest) string {
	t.Helper()
	list := make([]string, len(manifests))
	for i := range manifests {
		list[i] = manifests[i].String()
	}
	return strings.Join(list, ", ")
}

func TestRead(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		manifests, err := Read(strings.NewReader(text), "in")
		got := names(t, manifests)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%q reads as\n%s\nwant\n%s", text, got, want)
		}
	}

	const a, b = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"b-"}}`
	f(a, "in: v1 Pod a")
	f(a+b, "in#1: v1 Pod a, in#2: v1 Pod b-")
	f(a+"\n"+b+"\n", "in#1: v1 Pod a, in#2: v1 Pod b-")
	f("apiVersion: v1\nkind: Pod\n---\n# nothing\n---\napiVersion: v1\nkind: Secret\n", "in#1: v1 Pod , in#3: v1 Secret ")
	f(`{"apiVersion":"v1","kind":"List","items":[`+a+`,{"apiVersion":"apps/v1","kind":"Deployment"}]}`, "in#1.items[0]: v1 Pod a, in#1.items[1]: apps/v1 Deployment ")
	f(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"x"}}]}`, "in: v1 Pod x")
	f(`{"apiVersion":"acme.io/v1","kind":"WishList","spec":{}}`, "in: acme.io/v1 WishList ")
	f("", "")

	f("a: [", "error: cannot read document 1 of in: yaml: line 1: did not find expected node content")
	f(a+"{", "error: cannot read document 2 of in: unexpected EOF")
	f("kind: Pod", "error: cannot read in#1: it is no Kubernetes object: apiVersion and kind are wanted")
	f("- 1", "error: cannot read in#1: it is no Kubernetes object: a map is wanted")
}

// A folder is read like kubectl reads one; what a ConfigMap volume keeps behind
// its links is not read twice.
func TestReadPath(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\n", "sub/a.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		"..2026/b.yaml": "apiVersion: v1\nkind: Pod\n", ".git/x.yaml": "x: [", "README.md": "text", "case.test.yaml": "x: [",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifests, err := ReadPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(names(t, manifests), dir+string(filepath.Separator), "")
	if want := "b.yaml: v1 Pod b, " + filepath.Join("sub", "a.json") + ": v1 Pod a"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	if _, err := ReadPath(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "cannot read manifests") {
		t.Errorf("a path that is not there gave %v", err)
	}
}

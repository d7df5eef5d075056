package discovery

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata")

// TestGolden runs every archive in testdata; to add a case, add a file. Parts:
//
//	server NAME VERSION [unreachable]   what a server serves (see groups)
//	conversions                         what is converted (see conversions)
//	want summary                        the whole of what clients see (see summary)
//	want PATH [v2|v2beta1]              the indented answer to a GET of PATH
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runArchive(t, archive)
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i, f := range got.Files {
				if want := string(archive.Files[i].Data); string(f.Data) != want {
					t.Errorf("%s\n got:\n%s\nwant:\n%s", f.Name, f.Data, want)
				}
			}
		})
	}
}

// runArchive returns the archive with its want parts as they come out.
func runArchive(t *testing.T, archive *txtar.Archive) *txtar.Archive {
	t.Helper()
	var sources []Source
	var convert []Conversion
	for _, f := range archive.Files {
		words := strings.Fields(f.Name)
		switch words[0] {
		case "server":
			sources = append(sources, Source{
				Server: words[1], Version: words[2], Reachable: !slices.Contains(words, "unreachable"),
				Groups: groups(t, string(f.Data)),
			})
		case "conversions":
			convert = conversions(t, string(f.Data))
		}
	}
	m := Merge(sources, convert, nil)
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		if words := strings.Fields(f.Name); words[0] == "want" {
			f.Data = []byte(want(t, m, words[1:]))
		}
		out.Files = append(out.Files, f)
	}
	return out
}

func want(t *testing.T, m *Merged, words []string) string {
	t.Helper()
	if words[0] == "summary" {
		return summary(m)
	}
	req := Request{Path: words[0], Pretty: true, Host: "mvp.example:6443"}
	if len(words) > 1 {
		req.Accept = "application/json;as=APIGroupDiscoveryList;v=" + words[1] + ";g=apidiscovery.k8s.io"
	}
	a, ok := m.Answer(req)
	if !ok {
		return "forwarded\n"
	}
	return string(a.Body) + "\n"
}

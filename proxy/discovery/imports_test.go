package discovery

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// This package imports no other of ours, and nothing that talks to a server.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			for _, forbidden := range []string{"github.com/mixed-version-proxy/", "github.com/valyala/", "k8s.io/client-go", "os"} {
				if path == forbidden || strings.HasPrefix(path, forbidden) && strings.Contains(forbidden, "/") {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
	}
}

package convert

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestImports holds that the package needs nothing but the standard library's
// text and maths, jq, YAML, and places in policy files.
func TestImports(t *testing.T) {
	allowed := map[string]bool{
		"github.com/mixed-version-proxy/mvp/engine/source": true,
		"github.com/itchyny/gojq":                          true,
		"sigs.k8s.io/yaml":                                 true,
	}
	refused := map[string]bool{"net": true, "os": true, "net/http": true, "log": true, "log/slog": true}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(path, ".") && !allowed[path] || refused[path] {
				t.Errorf("%s imports %s", entry.Name(), path)
			}
		}
	}
}

package proxy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reported are the numbers of the faults of two kinds, which the table at the head of
// fieldreports_test.go must have a row for: of proxies in front of kube-apiserver, and
// of fasthttp and reverse proxies in general.
var reported = strings.Fields(`
	1.01 1.02 1.05 1.06 1.07 1.08 1.09 1.11 1.12 1.13 1.14 1.17 1.20 1.21 1.22 1.23 1.24 1.25 1.26 1.27 1.28 1.29 1.30 1.31 1.32
	5.02 5.03 5.06 5.07 5.08 5.10 5.11 5.12 5.13 5.14 5.15 5.16 5.17 5.18 5.19 5.20`)

// tableRow is a row of the table: a number, a name, and tests, each behind the
// directory of its package where that is not this one.
var (
	tableRow  = regexp.MustCompile(`(?m)^\t?(\d\.\d\d) (.+)$`)
	tableTest = regexp.MustCompile(`(?:([a-z0-9/]+) )?((?:Test|Fuzz)\w+)`)
)

// The table names tests that there are.
func TestFieldReportsHaveTests(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "fieldreports_test.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]string{} // by directory
	var rows []string
	for _, row := range tableRow.FindAllStringSubmatch(file.Comments[0].Text(), -1) {
		rows = append(rows, row[1])
		found := 0
		for part := range strings.SplitSeq(row[2], "; ") {
			dir := "."
			for _, named := range tableTest.FindAllStringSubmatch(part, -1) {
				found++
				if named[1] != "" && isDir(named[1]) != "" {
					dir = isDir(named[1])
				}
				if tests[dir] == nil {
					tests[dir] = testsIn(t, dir)
				}
				if !slices.ContainsFunc(tests[dir], func(have string) bool { return have == named[2] || strings.HasPrefix(have, named[2]+"_") }) {
					t.Errorf("%s names %s in %s, and there is none", row[1], named[2], dir)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s names no test", row[1])
		}
	}
	for _, number := range reported {
		if !slices.Contains(rows, number) {
			t.Errorf("%s has no row", number)
		}
	}
}

// isDir is the directory that the table calls name, or empty.
func isDir(name string) string {
	for _, dir := range []string{name, filepath.Join("..", name)} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// testsIn are the names of the test functions in a directory.
func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

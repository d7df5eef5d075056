package policies

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A policy file that is too large is refused before a byte of it is read; what is
// wrong with the others is told beside it.
func Test4_02_FileSize(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "10-huge.match.cel")
	if err := os.WriteFile(huge, []byte("request.verb == 'get'"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 50<<20); err != nil {
		t.Fatal(err)
	}
	long := "'" + strings.Repeat("x", 100<<10) + "' == ''"
	for name, text := range map[string]string{"20-long.match.cel": long, "20-long.warn.cel": "'a'", "30-program.convert.cel": "{'resource': 'things', 'from': 'a.io/v1', 'to': 'a.io/v2'}", "30-program.request.jq": strings.Repeat(" ", 100<<10) + "."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Load(Options{Dirs: []string{dir}})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("it loads")
	}
	for _, want := range []string{
		"10-huge.match.cel: it has 52428800 bytes, more than the 1048576 a policy file may have: split it",
		"20-long.match.cel:1:1: the expression is too long: it has 102408 bytes, more than 65536",
		"30-program.request.jq:1:1: the jq program has 102401 bytes; the limit is 65536",
	} {
		want = strings.Replace(want, ": it has", ": cannot read the policy file: it has", strings.Count(want, "split it"))
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %.2000v does not have %q", err, want)
		}
	}
	if errs := asErrors(err); len(errs) != 3 {
		t.Errorf("%d mistakes, want 3: %.2000v", len(errs), errs)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 20 {
		t.Errorf("refusing it took %d MiB", n)
	}
}

package kubelet

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModule runs the tests of the kubelet, which has a module of its own. It
// skips where that module's dependencies have not been downloaded yet: plain
// tests fetch nothing.
func TestModule(t *testing.T) {
	dir := filepath.Join("..", "modules", "kubelet")
	// The result of this test is cached until a file changes that it has opened.
	if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_, err = os.ReadFile(filepath.Join(dir, path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case strings.Contains(string(out), "GOPROXY=off"):
		// Plain go test downloads nothing; the gate's lab step builds the kubelet first.
		t.Skip("the kubelet's dependencies are not here: run \"go run ./bench/lab build\" once")
	default:
		t.Errorf("go test in %s: %v\n%s", cmd.Dir, err, out)
	}
}

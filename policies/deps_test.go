package policies

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies holds the import graph: policies stand on the engine alone.
func TestDependencies(t *testing.T) {
	const module = "github.com/mixed-version-proxy/mvp/"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		ours := strings.HasPrefix(dep, module)
		switch {
		case ours && !strings.HasPrefix(dep, module+"engine") && dep != module+"policies",
			strings.HasPrefix(dep, "github.com/valyala/fasthttp"),
			strings.HasPrefix(dep, "k8s.io/client-go"):
			t.Errorf("policies must not depend on %s", dep)
		}
	}
}

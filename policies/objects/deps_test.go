package objects

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies holds the import graph: the package stands on policies and the engine.
func TestDependencies(t *testing.T) {
	const module = "github.com/mixed-version-proxy/mvp/"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		ours, mine := strings.CutPrefix(dep, module)
		switch {
		case mine && ours != "policies" && ours != "policies/objects" && ours != "engine" && !strings.HasPrefix(ours, "engine/"),
			strings.HasPrefix(dep, "github.com/valyala/fasthttp"):
			t.Errorf("objects must not depend on %s", dep)
		}
	}
}

package engine_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies holds the package to what it is: no I/O and no connection. It
// may not import what does these; that Kubernetes' CEL library links net/http for
// its own types is not ours to change.
func TestDependencies(t *testing.T) {
	const module = "github.com/mixed-version-proxy/mvp/"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		ours, isOurs := strings.CutPrefix(dep, module)
		if isOurs && ours != "engine" && !strings.HasPrefix(ours, "engine/") {
			t.Errorf("engine depends on %s", dep)
		}
		for _, banned := range []string{"github.com/valyala/fasthttp", "k8s.io/client-go", "github.com/fsnotify/fsnotify"} {
			if dep == banned || strings.HasPrefix(dep, banned+"/") {
				t.Errorf("engine depends on %s", dep)
			}
		}
	}

	out, err = exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for direct := range strings.Lines(string(out)) {
		switch direct = strings.TrimSpace(direct); direct {
		case "net", "net/http", "os", "log", "log/slog", "time/tzdata", "k8s.io/klog/v2":
			t.Errorf("engine imports %s", direct)
		}
	}
}

package endpoints

import (
	"os/exec"
	"strings"
	"testing"
)

// Of ours the package imports only the pool that it fills.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("cannot list dependencies: %v", err)
	}
	const ours = "github.com/mixed-version-proxy/mvp/"
	for path := range strings.FieldsSeq(string(out)) {
		switch path {
		case ours + "proxy/upstream/endpoints", ours + "proxy/upstream", ours + "proxy/wire":
			continue
		}
		if strings.HasPrefix(path, ours) || strings.HasPrefix(path, "github.com/valyala/fasthttp") {
			t.Errorf("endpoints must not import %s", path)
		}
	}
}

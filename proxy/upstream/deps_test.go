package upstream

import (
	"os/exec"
	"strings"
	"testing"
)

// The package stands alone: of ours it imports only what front and upstream share.
// It speaks HTTP itself: of Kubernetes' clients it takes what follows objects, over its
// own connections.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("cannot list dependencies: %v", err)
	}
	const ours = "github.com/mixed-version-proxy/mvp/"
	for path := range strings.FieldsSeq(string(out)) {
		switch {
		case path == ours+"proxy/upstream", path == ours+"proxy/wire":
		case strings.HasPrefix(path, ours),
			strings.HasPrefix(path, "github.com/valyala/fasthttp"),
			strings.HasPrefix(path, "k8s.io/client-go/kubernetes"),
			strings.HasPrefix(path, "k8s.io/apiserver"):
			t.Errorf("upstream must not import %s", path)
		}
	}
}

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// TestEndToEnd shows on real binaries what the README promises. The parts share
// one control plane and clean up after themselves.
func TestEndToEnd(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	article := map[string]string{"mvp-rules.yaml": read(t, demo.Manifests, "mvp-rules.yaml")}
	t.Run("article", func(t *testing.T) { testArticle(t, l, article) })
	t.Run("article as files", func(t *testing.T) { testArticle(t, l, files(t, "../../examples/article-files")) })
	t.Run("old kubectl", func(t *testing.T) { testOldKubectl(t, l) })
	t.Run("served by one server", func(t *testing.T) { testServedByOne(t, l) })
	t.Run("preference", func(t *testing.T) { testPreference(t, l, article) })
	t.Run("reload", func(t *testing.T) { testReload(t, l, article) })
	t.Run("watch", func(t *testing.T) { testWatch(t, l, article) })
	t.Run("many watches", func(t *testing.T) { testManyWatches(t, l, article) })
	t.Run("1.26 slashes", func(t *testing.T) { testSlashes(t, l) })
	t.Run("test-policy", func(t *testing.T) { testTestPolicy(t, l, article) })
}

func read(t *testing.T, fsys fs.FS, name string) string {
	t.Helper()
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// files reads a policy directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); ext == ".cel" || ext == ".jq" {
			all[entry.Name()] = read(t, os.DirFS(dir), entry.Name())
		}
	}
	return all
}

const (
	oldCR = "customresources.v1alpha1.myapps.example.com"
	newCR = "customresources.v1beta1.myapps.example.com"
)

// testArticle is the article's scenario with kubectl of every age.
func testArticle(t *testing.T, l *lab, policies map[string]string) {
	m := l.serve(t, policies)
	for _, version := range clients.KubectlVersions() {
		t.Run("kubectl "+version, func(t *testing.T) {
			testCustomResource(t, m.kubectl(version).in(t), l.direct(t, "b"))
		})
	}
	t.Run("disruption budget", func(t *testing.T) {
		k, direct := m.kubectl(newKubectl).in(t), l.direct(t, "b")
		file := manifest(t, "pdb-v1beta1.yaml")
		direct.fails("no matches for kind", "apply", "-f", file)
		k.says("created", "apply", "-f", file)
		budget := direct.object("poddisruptionbudgets.v1.policy", "shop")
		if got := field(budget, "spec.minAvailable"); got != "float64 1" {
			t.Errorf("minAvailable is stored as %s, want the number 1", got)
		}
		// kubectl patches a budget's selector at every apply, through MVP or not; the
		// server finds nothing to change.
		k.ok("apply", "-f", file)
		again := direct.object("poddisruptionbudgets.v1.policy", "shop")
		if a, b := field(budget, "metadata.resourceVersion"), field(again, "metadata.resourceVersion"); a != b {
			t.Errorf("applying the same again changed the budget: resourceVersion %s became %s", a, b)
		}
		k.ok("delete", "-f", file)
	})
}

func testCustomResource(t *testing.T, k, direct kubectl) {
	file := manifest(t, "customresource-v1alpha1.yaml")
	direct.fails("no matches for kind", "apply", "-f", file)

	k.says("created", "apply", "-f", file)
	wantStored(t, direct, "float64 30", "string stateless")
	k.says("unchanged", "apply", "-f", file)

	seen := k.object(oldCR, "shop")
	if got := field(seen, "apiVersion") + ", " + field(seen, "spec.config.legacyTimeout") + ", " + field(seen, "spec.stateManagement"); got !=
		"string myapps.example.com/v1alpha1, string 30, string ephemeral" {
		t.Errorf("through mvp it is %s", got)
	}
	k.says("legacyTimeout: \"30\"", "get", oldCR, "shop", "-o", "yaml")
	k.says("shop", "get", oldCR, "-o", "wide")
	k.says("legacyTimeout", "get", oldCR, "-o", "jsonpath={.items[0].spec.config}")

	k.says("patched", "patch", oldCR, "shop", "--type", "merge", "-p", `{"spec":{"config":{"legacyTimeout":"45"}}}`)
	wantStored(t, direct, "float64 45", "string stateless")

	testEdit(t, k)
	wantStored(t, direct, "float64 50", "string stateless")

	testGetWatch(t, k, direct)

	k.says("deleted", "delete", oldCR, "shop")
	direct.fails("not found", "get", newCR, "shop")

	testServerSideApply(t, k, direct, file)
	k.ok("delete", oldCR, "--all")
}

func wantStored(t *testing.T, direct kubectl, timeout, state string) {
	t.Helper()
	stored := direct.object(newCR, "shop")
	if got := field(stored, "spec.config.requestTimeoutSeconds"); got != timeout {
		t.Errorf("requestTimeoutSeconds is stored as %s, want %s", got, timeout)
	}
	if got := field(stored, "spec.stateManagement"); got != state {
		t.Errorf("stateManagement is stored as %s, want %s", got, state)
	}
	if got := field(stored, "spec.config.legacyTimeout"); got != "<nil> <nil>" {
		t.Errorf("legacyTimeout is stored as %s", got)
	}
}

// testEdit edits with an editor that changes what a person would.
func testEdit(t *testing.T, k kubectl) {
	t.Helper()
	cmd := k.command(t.Context(), "edit", oldCR, "shop")
	cmd.Env = append(cmd.Env, `KUBE_EDITOR=sed -i s/legacyTimeout:.*/legacyTimeout:\ "50"/`)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "edited") {
		t.Errorf("kubectl %s edit: %v\n%s", k.version, err, out)
	}
}

func testServerSideApply(t *testing.T, k, direct kubectl, file string) {
	t.Helper()
	const apply = "--server-side"
	k.says("serverside-applied", "apply", apply, "-f", file)
	wantStored(t, direct, "float64 30", "string stateless")
	before := direct.object(newCR, "shop")
	k.says("serverside-applied", "apply", apply, "-f", file)
	after := direct.object(newCR, "shop")
	if a, b := field(before, "metadata.resourceVersion"), field(after, "metadata.resourceVersion"); a != b {
		t.Errorf("applying the same again changed the object: resourceVersion %s became %s", a, b)
	}
}

package binaries

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
)

// modules is where the committed modules are, seen from this package.
var modules = filepath.Join("..", "modules")

func TestParseVersion(t *testing.T) {
	f := func(in, want, wantErr string) {
		t.Helper()
		v, err := ParseVersion(in)
		if wantErr != "" {
			if err == nil || err.Error() != wantErr {
				t.Errorf("ParseVersion(%q): %v, want %q", in, err, wantErr)
			}
			return
		}
		if err != nil || v.String() != want {
			t.Errorf("ParseVersion(%q) = %v, %v; want %s", in, v, err, want)
		}
	}

	f("1.31.14", "1.31.14", "")
	f("v1.32.0", "1.32.0", "")
	f("1.31", "", `bad Kubernetes version "1.31": want a full version such as 1.31.14`)
	f("2.0.0", "", `bad Kubernetes version "2.0.0": want a full version such as 1.31.14`)
	f("1.031.1", "", `bad Kubernetes version "1.031.1": want a full version such as 1.31.14`)
	f("1.31.14 -X a.b=c", "", `bad Kubernetes version "1.31.14 -X a.b=c": want a full version such as 1.31.14`)
}

func TestLdflags(t *testing.T) {
	got := Version{Minor: 31, Patch: 14}.ldflags()
	for _, want := range []string{
		" -X k8s.io/component-base/version.gitVersion=v1.31.14 ",
		" -X k8s.io/component-base/version.gitMajor=1 ",
		" -X k8s.io/component-base/version.gitMinor=31 ",
		" -X k8s.io/client-go/pkg/version.gitVersion=v1.31.14 ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("ldflags lack %q: %s", want, got)
		}
	}
}

func TestParseKubernetesMod(t *testing.T) {
	mod := `module k8s.io/kubernetes

go 1.23.0

godebug default=go1.23

require (
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.130.1
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/apimachinery => ./staging/src/k8s.io/apimachinery
)

replace k8s.io/kms => ./staging/src/k8s.io/kms
`
	goVersion, staging, err := parseKubernetesMod([]byte(mod))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := goVersion+" "+strings.Join(staging, " "), "1.23.0 k8s.io/api k8s.io/apimachinery k8s.io/kms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	f := func(mod, want string) {
		t.Helper()
		if _, _, err := parseKubernetesMod([]byte(mod)); err == nil || err.Error() != want {
			t.Errorf("parseKubernetesMod(%q): %v, want %q", mod, err, want)
		}
	}
	f("module m\n", "go.mod of k8s.io/kubernetes has no go line")
	f("module m\n\ngo 1.23.0\n", "go.mod of k8s.io/kubernetes replaces no staging modules")
}

func TestComponentMod(t *testing.T) {
	got := apiServer.mod(Version{31, 14}, "1.22.0", []stagingModule{
		{"k8s.io/api", "v0.31.14"},
		{"k8s.io/kms", "v0.31.13"},
	})
	want := `module kube-apiserver

go 1.22.0

require k8s.io/kubernetes v1.31.14

replace (
	k8s.io/api => k8s.io/api v0.31.14
	k8s.io/kms => k8s.io/kms v0.31.13
)
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestNearestPatch(t *testing.T) {
	f := func(patch int, versions, want string) {
		t.Helper()
		if got := nearestPatch(Version{31, patch}, strings.Fields(versions)); got != want {
			t.Errorf("nearestPatch(%d, %s) = %q, want %q", patch, versions, got, want)
		}
	}

	f(14, "v0.31.11 v0.31.13 v0.32.14", "v0.31.13")
	f(3, "v0.31.1 v0.31.4", "v0.31.4")
	f(3, "v0.31.4 v0.31.2", "v0.31.2")
	f(0, "v0.31.0-rc.1 v0.31.2", "v0.31.2")
	f(14, "v0.30.14 v0.310.14", "")
	f(14, "", "")
}

// The committed modules are what the generator makes, before go mod tidy.
func TestCommittedModules(t *testing.T) {
	dirs, err := os.ReadDir(modules)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.Name() == "kubelet" {
			continue // it is a program of ours
		}
		t.Run(d.Name(), func(t *testing.T) {
			mod := read(t, d.Name(), "go.mod")
			main, start := etcdMain, etcdMod()
			for _, c := range []component{apiServer, controllerManager} {
				version, ok := strings.CutPrefix(d.Name(), c.name+"-")
				if !ok {
					continue
				}
				v, err := ParseVersion(version)
				if err != nil {
					t.Fatal(err)
				}
				main, start = c.main(), "module "+c.name+"\n"
				checkReplacements(t, v, mod)
			}
			if got := read(t, d.Name(), "main.go"); got != main {
				t.Errorf("main.go is:\n%s\nwant:\n%s", got, main)
			}
			if !strings.HasPrefix(mod, start) {
				t.Errorf("go.mod does not begin with:\n%s", start)
			}
			read(t, d.Name(), "go.sum")
		})
	}
	if len(dirs) < 5 {
		t.Errorf("%d modules are committed, want etcd, the kubelet, two kube-apiservers and a kube-controller-manager", len(dirs))
	}
}

// checkReplacements checks that go.mod maps each part of Kubernetes to the minor
// version of v.
func checkReplacements(t *testing.T, v Version, mod string) {
	t.Helper()
	if !strings.Contains(mod, "k8s.io/kubernetes v"+v.String()+"\n") {
		t.Errorf("go.mod does not require Kubernetes %s", v)
	}
	n := 0
	for line := range strings.Lines(mod) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			continue
		}
		n++
		version, ok := strings.CutPrefix(to, from+" ")
		if !ok || nearestPatch(v, []string{version}) != version {
			t.Errorf("go.mod replaces %s by %s", from, to)
		}
	}
	if n < 30 {
		t.Errorf("go.mod has %d replacements, want one per staging module, of which there are 30 or more", n)
	}
}

func TestBinaryName(t *testing.T) {
	dir := t.TempDir()
	src := source{name: "etcd", ldflags: "-s"}
	write := func(name, content string) {
		t.Helper()
		if err := cache.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary := func() string {
		t.Helper()
		path, err := src.binary("/bin", dir)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("go.mod", "m")
	write("go.sum", "s")
	write("main.go", "g")

	first := binary()
	if again := binary(); again != first {
		t.Errorf("same module, other name: %s, %s", first, again)
	}
	if !strings.HasPrefix(first, "/bin/etcd-") {
		t.Errorf("name is %s", first)
	}
	write("go.sum", "t")
	second := binary()
	src.ldflags = "-w"
	third := binary()
	if first == second || second == third || first == third {
		t.Errorf("other modules or flags, same name: %s, %s, %s", first, second, third)
	}
}

func TestTimeOutHint(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	want := "context deadline exceeded\nout of time: run \"go run ./bench/lab build\" once, then try again"
	if got := withHint(ctx, ctx.Err()).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func read(t *testing.T, module, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(modules, module, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestOracleModules holds that the module of the oracle is found with the module file of
// its release: only the sources of that one make its binary.
func TestOracleModules(t *testing.T) {
	dir := filepath.Join("..", "..", "oracle", "modules", "oracle")
	src := source{name: "oracle-1.32.13", dir: "bench/oracle/modules/oracle", modFile: "1.32.13.mod"}
	if found := src.committed(t.Context()); filepath.Base(found) != filepath.Base(dir) {
		t.Fatalf("the module is in %q, want %q", found, dir)
	}
	names, err := sourceFiles(dir, src.mod())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names[:2], " "); got != "1.32.13.mod 1.32.13.sum" {
		t.Errorf("the module's first files are %s", got)
	}
	src.modFile = "1.0.0.mod"
	if found := src.committed(t.Context()); found != "" {
		t.Errorf("a release without a module file has its module in %q", found)
	}
}

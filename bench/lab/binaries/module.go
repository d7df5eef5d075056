package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
)

// etcdVersion is what a kube-apiserver of 1.31 or 1.32 is released with, give or
// take a patch; newer ones work with it too.
const etcdVersion = "v3.5.24"

// etcdMain is the main.go of the etcd module, committed or generated.
const etcdMain = `// Command etcd is the etcd server of the version in go.mod, built for the lab.
// See bench/lab/README.md.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
`

// A component is a program that Kubernetes is released with.
type component struct {
	name    string // of the program and of its directory in k8s.io/kubernetes/cmd
	what    string // in a sentence
	command string // the function of its package app that makes the command
}

var (
	apiServer         = component{"kube-apiserver", "the Kubernetes API server", "NewAPIServerCommand"}
	controllerManager = component{"kube-controller-manager", "the Kubernetes controller manager", "NewControllerManagerCommand"}
)

// main is the main.go of every module of c, committed or generated.
func (c component) main() string {
	return fmt.Sprintf(`// Command %[1]s is %[2]s of the version in go.mod,
// built for the lab. See bench/lab/README.md.
package main

import (
	"os"
	_ "time/tzdata" // cron jobs name time zones

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	"k8s.io/kubernetes/cmd/%[1]s/app"
)

func main() {
	os.Exit(cli.Run(app.%[3]s()))
}
`, c.name, c.what, c.command)
}

// etcdMod is the go.mod of the etcd module before go mod tidy fills it in.
func etcdMod() string {
	return "module etcd\n\ngo 1.24.0\n\nrequire go.etcd.io/etcd/server/v3 " + etcdVersion + "\n"
}

// mod is the go.mod of a module of c before go mod tidy fills it in.
//
// k8s.io/kubernetes requires its staging modules at v0.0.0 and replaces them by
// directories of its own repository. Replacements count in the main module only,
// so ours must replace each of them by the published module.
func (c component) mod(v Version, goVersion string, staging []stagingModule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n\ngo %s\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n", c.name, goVersion, v)
	for _, m := range staging {
		fmt.Fprintf(&b, "\t%s => %s %s\n", m.path, m.path, m.version)
	}
	b.WriteString(")\n")
	return b.String()
}

// A stagingModule is a part of Kubernetes that is published as its own module.
type stagingModule struct {
	path, version string
}

var (
	goLine      = regexp.MustCompile(`(?m)^go (\S+)$`)
	stagingLine = regexp.MustCompile(`(?m)^\s*(?:replace )?(k8s\.io/\S+) => \./staging/src/k8s\.io/\S+$`)
)

// parseKubernetesMod reads, from the go.mod of k8s.io/kubernetes, its Go version
// and the paths of its staging modules.
func parseKubernetesMod(mod []byte) (goVersion string, staging []string, err error) {
	m := goLine.FindSubmatch(mod)
	if m == nil {
		return "", nil, fmt.Errorf("go.mod of k8s.io/kubernetes has no go line")
	}
	for _, r := range stagingLine.FindAllSubmatch(mod, -1) {
		staging = append(staging, string(r[1]))
	}
	if len(staging) == 0 {
		return "", nil, fmt.Errorf("go.mod of k8s.io/kubernetes replaces no staging modules")
	}
	return string(m[1]), staging, nil
}

// generate makes a module of c that is not committed.
func (c component) generate(ctx context.Context, v Version, dir string) error {
	return generate(ctx, dir, c.main(), func(tmp string) (string, error) {
		out, err := goTool(ctx, tmp, "mod", "download", "-json", "k8s.io/kubernetes@v"+v.String())
		if err != nil {
			return "", fmt.Errorf("cannot fetch Kubernetes %s, does it exist? %w", v, err)
		}
		var info struct{ GoMod string }
		if err := json.Unmarshal(out, &info); err != nil {
			return "", fmt.Errorf("cannot read output of go mod download: %w", err)
		}
		mod, err := os.ReadFile(info.GoMod)
		if err != nil {
			return "", fmt.Errorf("cannot read go.mod of Kubernetes %s: %w", v, err)
		}
		goVersion, paths, err := parseKubernetesMod(mod)
		if err != nil {
			return "", err
		}
		staging, err := resolveStaging(ctx, tmp, v, paths)
		if err != nil {
			return "", err
		}
		return c.mod(v, goVersion, staging), nil
	})
}

func generateEtcd(ctx context.Context, dir string) error {
	return generate(ctx, dir, etcdMain, func(string) (string, error) { return etcdMod(), nil })
}

// generate writes a module with the given main.go into dir, which appears only
// when it is complete. The function mod returns the go.mod; it can use the go
// command in the directory it is given.
func generate(ctx context.Context, dir, main string, mod func(tmp string) (string, error)) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return fmt.Errorf("cannot generate module: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	modFile := filepath.Join(tmp, "go.mod")
	if err := cache.WriteFile(modFile, []byte("module empty\n"), 0o644); err != nil {
		return err
	}
	text, err := mod(tmp)
	if err != nil {
		return err
	}
	if err := cache.WriteFile(modFile, []byte(text), 0o644); err != nil {
		return err
	}
	if err := cache.WriteFile(filepath.Join(tmp, "main.go"), []byte(main), 0o644); err != nil {
		return err
	}
	if _, err := goTool(ctx, tmp, "mod", "tidy"); err != nil {
		return fmt.Errorf("cannot generate module %s: %w", filepath.Base(dir), err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("cannot generate module: %w", err)
	}
	return nil
}

// resolveStaging finds the version of each staging module: the exact patch of v,
// or the nearest there is.
func resolveStaging(ctx context.Context, dir string, v Version, paths []string) ([]stagingModule, error) {
	args := []string{"list", "-m", "-e", "-f", "{{.Path}} {{if not .Error}}{{.Version}}{{end}}"}
	for _, p := range paths {
		args = append(args, p+"@"+v.stagingVersion())
	}
	out, err := goTool(ctx, dir, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot look up the parts of Kubernetes %s: %w", v, err)
	}
	var modules []stagingModule
	for line := range bytes.Lines(out) {
		path, version, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if version == "" {
			version = nearestStaging(ctx, dir, v, path)
		}
		modules = append(modules, stagingModule{path, version})
	}
	return modules, nil
}

// nearestStaging returns the exact version, which does not exist, when there is
// none near it: some staging modules, the samples, are replaced but never built.
// For the others go mod tidy says what is missing.
func nearestStaging(ctx context.Context, dir string, v Version, path string) string {
	out, err := goTool(ctx, dir, "list", "-m", "-versions", path)
	if err != nil {
		return v.stagingVersion()
	}
	if version := nearestPatch(v, strings.Fields(string(out))); version != "" {
		return version
	}
	return v.stagingVersion()
}

// nearestPatch picks the version of v's minor with the patch closest to v's, the
// older of two as close.
func nearestPatch(v Version, versions []string) string {
	var patches []int
	prefix := fmt.Sprintf("v0.%d.", v.Minor)
	for _, s := range versions {
		rest, ok := strings.CutPrefix(s, prefix)
		if patch, err := strconv.Atoi(rest); ok && err == nil {
			patches = append(patches, patch)
		}
	}
	if len(patches) == 0 {
		return ""
	}
	slices.Sort(patches)
	best := slices.MinFunc(patches, func(a, b int) int { return distance(a, v.Patch) - distance(b, v.Patch) })
	return prefix + strconv.Itoa(best)
}

func distance(a, b int) int { return max(a-b, b-a) }

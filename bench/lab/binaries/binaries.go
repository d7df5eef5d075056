// Package binaries builds the servers of a lab, etcd, kube-apiserver and
// kube-controller-manager, from Go modules of a few lines, and keeps them in the
// user's cache directory.
//
// The modules of the usual versions are committed in bench/lab/modules. For
// other versions, and where the repository is not at hand, the package generates
// them. It builds each binary once, whoever asks: builds wait for each other,
// between processes too. It does not run what it builds.
package binaries

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

// Logf reports progress, like log.Printf. It may be nil.
type Logf func(format string, args ...any)

func (f Logf) printf(format string, args ...any) {
	if f != nil {
		f(format, args...)
	}
}

// Etcd returns the path of the etcd binary, and builds it when it is not there.
func Etcd(ctx context.Context, logf Logf) (string, error) {
	return build(ctx, source{
		name:     "etcd",
		ldflags:  "-s -w",
		generate: generateEtcd,
	}, logf)
}

// Kubelet returns the path of the lab's own kubelet, and builds it when it is not
// there. It can be built in the repository only.
func Kubelet(ctx context.Context, logf Logf) (string, error) {
	return build(ctx, source{
		name:    "kubelet",
		ldflags: "-s -w",
		generate: func(context.Context, string) error {
			return errors.New("cannot build the kubelet outside of the repository, which has its source in bench/lab/modules/kubelet")
		},
	}, logf)
}

// APIServer returns the path of the kube-apiserver binary of a version, and
// builds it when it is not there, which takes minutes.
func APIServer(ctx context.Context, v Version, logf Logf) (string, error) {
	return build(ctx, apiServer.source(v), logf)
}

// ControllerManager returns the path of the kube-controller-manager binary of a
// version, and builds it when it is not there, which takes minutes.
func ControllerManager(ctx context.Context, v Version, logf Logf) (string, error) {
	return build(ctx, controllerManager.source(v), logf)
}

func (c component) source(v Version) source {
	return source{
		name:     c.name + "-" + v.String(),
		ldflags:  v.ldflags(),
		generate: func(ctx context.Context, dir string) error { return c.generate(ctx, v, dir) },
	}
}

// A source says how to make one binary.
type source struct {
	name     string // of the binary and, without dir, of the module's directory
	dir      string // of the committed module, seen from the repository's root
	modFile  string // in that directory; "" for go.mod
	tags     string // build constraints that hold
	ldflags  string
	generate func(ctx context.Context, dir string) error
}

func build(ctx context.Context, src source, logf Logf) (string, error) {
	bin, err := cache.Dir("bin")
	if err != nil {
		return "", err
	}

	// With the committed module, what is built needs no lock.
	dir := src.committed(ctx)
	if dir != "" {
		out, err := src.binary(bin, dir)
		if err != nil || exists(out) {
			return out, err
		}
	}

	// One lock for all: builds at the same time would only slow each other down.
	lock, err := flock.Acquire(ctx, filepath.Join(bin, "build.lock"), func() {
		logf.printf("waiting for another process that builds")
	})
	if err != nil {
		return "", withHint(ctx, err)
	}
	defer lock.Release()

	if dir == "" {
		if dir, err = src.generated(ctx, logf); err != nil {
			return "", withHint(ctx, err)
		}
	}
	out, err := src.binary(bin, dir)
	if err != nil || exists(out) {
		return out, err
	}
	logf.printf("building %s; the first time a part of Kubernetes takes minutes", src.name)
	start := time.Now()
	if err := src.compile(ctx, dir, out); err != nil {
		return "", withHint(ctx, fmt.Errorf("cannot build %s from %s: %w", src.name, dir, err))
	}
	logf.printf("built %s in %s", src.name, time.Since(start).Round(time.Second))
	return out, nil
}

// committed returns the directory of the committed module, or "" where there is
// none: another version, or not in the repository.
func (src source) committed(ctx context.Context) string {
	mod, err := goTool(ctx, "", "env", "GOMOD")
	if err != nil {
		return ""
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	dir := filepath.Join(root, filepath.FromSlash(cmp.Or(src.dir, "bench/lab/modules/"+src.name)))
	if !exists(filepath.Join(dir, src.mod())) {
		return ""
	}
	return dir
}

// generated returns the directory of the generated module, and generates it when
// it is not there. The build lock must be held.
func (src source) generated(ctx context.Context, logf Logf) (string, error) {
	parent, err := cache.Dir("modules")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(parent, src.name)
	if exists(dir) {
		return dir, nil
	}
	logf.printf("generating module %s", src.name)
	return dir, src.generate(ctx, dir)
}

// mod is the name of the module file.
func (src source) mod() string { return cmp.Or(src.modFile, "go.mod") }

// binary returns the path of the binary of the module in dir. Its name has a
// hash of all that makes it: a changed module is another binary.
func (src source) binary(bin, dir string) (string, error) {
	h := sha256.New()
	names, err := sourceFiles(dir, src.mod())
	if err != nil {
		return "", err
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("cannot read module: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", name, len(data))
		h.Write(data)
	}
	_, _ = io.WriteString(h, src.ldflags+src.tags)
	key := hex.EncodeToString(h.Sum(nil))[:12]
	return filepath.Join(bin, fmt.Sprintf("%s-%s-%s-%s", src.name, runtime.GOOS, runtime.GOARCH, key)), nil
}

// sourceFiles returns the names of the files that make the binary of a module whose
// module file is mod.
func sourceFiles(dir, mod string) ([]string, error) {
	code, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot read module: %w", err)
	}
	names := []string{mod, strings.TrimSuffix(mod, ".mod") + ".sum"}
	for _, path := range code { // sorted
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names, nil
}

// compile builds the module in dir. The file out appears only when it is
// complete.
func (src source) compile(ctx context.Context, dir, out string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(out), ".build-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	file := filepath.Join(tmp, src.name)
	_, err = goTool(ctx, dir, "build", "-trimpath", "-buildvcs=false", "-modfile", src.mod(), "-tags", src.tags,
		"-ldflags", src.ldflags, "-o", file, ".")
	if err != nil {
		return err
	}
	return os.Rename(file, out)
}

// goTool runs the go command and returns what it printed on stdout.
func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// The caller's workspace and flags are for the caller's own build.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GO111MODULE=on", "GOFLAGS=-mod=readonly")
	// Interrupted, go removes what it was writing and stops its compilers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err, tail(stderr.String(), 20))
	}
	return stdout.Bytes(), nil
}

// withHint explains an error that comes from a deadline: tests have one, and the
// first build does not fit into it.
func withHint(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("%w\nout of time: run \"go run ./bench/lab build\" once, then try again", err)
	}
	return err
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

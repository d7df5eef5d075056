package policies

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
)

// rules returns a document whose only policy is called <name>/apiRoutingRules[0].
func rules(name string) string {
	return fmt.Sprintf(`apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: %s}
spec:
  apiRoutingRules:
    - {apiGroup: apps, resource: deployments, clientVersion: v1, preferApiServerVersion: v1.32.y}
`, name)
}

// running is a Store that runs, and what it told.
type running struct {
	*Store
	t       *testing.T
	changes chan *engine.Set
	logs    *logLines
}

// start opens and runs a Store. A missing file's policies stay for grace.
func start(t *testing.T, opts Options, grace time.Duration) *running {
	t.Helper()
	return startPatient(t, opts, grace, 10*time.Millisecond)
}

// startPatient is start where mistakes are told after patience.
func startPatient(t *testing.T, opts Options, grace, patience time.Duration) *running {
	t.Helper()
	r := &running{t: t, changes: make(chan *engine.Set, 1000), logs: &logLines{}}
	store, err := Open(opts, slog.New(slog.NewTextHandler(r.logs, nil)), func(set *engine.Set) { r.changes <- set })
	if err != nil {
		t.Fatal(err)
	}
	store.grace, store.patience = grace, patience
	r.Store = store
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

// waitFor polls until ok, and fails the test with what is live when that takes
// too long.
func (r *running) waitFor(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s; live: %s; status: %+v\nlog:\n%s", what, r.names(), r.Status(), r.logs)
		}
		time.Sleep(time.Millisecond)
	}
}

// waitLive waits until the only policies are those of the documents names.
func (r *running) waitLive(names ...string) {
	r.t.Helper()
	var want []string
	for _, name := range names {
		want = append(want, name+"/apiRoutingRules[0]")
	}
	r.waitFor("live are "+strings.Join(want, " "), func() bool { return r.names() == strings.Join(want, " ") })
}

func (r *running) names() string {
	var names []string
	for _, info := range r.Current().Policies() {
		names = append(names, info.Name)
	}
	return strings.Join(names, " ")
}

// logLines is a log that a test can read while it is written.
type logLines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// replace puts a file in the place of another at once, as a careful editor does. Of one
// that is written in place the store may see half, and says so until the rest is there.
func replace(t *testing.T, name, content string) {
	t.Helper()
	whole := filepath.Join(t.TempDir(), "whole")
	write(t, whole, content)
	must(t, os.Rename(whole, name))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreReloadsEdits(t *testing.T) {
	edits := map[string]func(t *testing.T, file, content string){
		"in place": write,
		"rename over": func(t *testing.T, file, content string) {
			write(t, file+".new~", content)
			must(t, os.Rename(file+".new~", file))
		},
		"rename away and create": func(t *testing.T, file, content string) {
			must(t, os.Rename(file, file+"~"))
			write(t, file, content)
			must(t, os.Remove(file+"~"))
		},
		"delete and create": func(t *testing.T, file, content string) {
			must(t, os.Remove(file))
			write(t, file, content)
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "rules.yaml")
			write(t, file, rules("v0"))
			r := start(t, Options{Dirs: []string{dir}}, time.Minute)
			for i := range 5 {
				name := fmt.Sprintf("v%d", i+1)
				edit(t, file, rules(name))
				r.waitLive(name)
			}
			if s := r.Status(); s.Generation < 6 || s.Err != nil {
				t.Errorf("after 5 edits: %+v", s)
			}
		})
	}
}

func TestStoreFollowsOneFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mvp-rules.yaml")
	write(t, file, rules("a"))
	write(t, filepath.Join(filepath.Dir(file), "notes.txt"), "not a policy, and not named")
	r := start(t, Options{Dirs: []string{file}}, 10*time.Millisecond)
	write(t, file+"~", rules("b"))
	must(t, os.Rename(file+"~", file))
	r.waitLive("b")

	// A named file that is gone is a mistake, whatever the grace.
	must(t, os.Remove(file))
	r.waitFor("the missing file is reported", func() bool { return r.Status().Err != nil })
	if got, want := r.Status().Err.Error(), file+": cannot read policies: no such file or directory"; got != want {
		t.Errorf("error\n got %s\nwant %s", got, want)
	}
	r.waitLive("b")
	write(t, file, rules("c"))
	r.waitLive("c")
}

// configMap is a directory as the kubelet makes it for a ConfigMap volume.
type configMap struct {
	t   *testing.T
	dir string
	n   int
}

// set swaps in new content the way the kubelet's atomic writer does.
func (c *configMap) set(files map[string]string) {
	c.t.Helper()
	old, _ := os.Readlink(filepath.Join(c.dir, "..data"))
	c.n++
	stamp := fmt.Sprintf("..2026_01_02_03_04_05.%d", c.n)
	must(c.t, os.Mkdir(filepath.Join(c.dir, stamp), 0o777))
	for name, content := range files {
		write(c.t, filepath.Join(c.dir, stamp, name), content)
	}
	must(c.t, os.Symlink(stamp, filepath.Join(c.dir, "..data_tmp")))
	must(c.t, os.Rename(filepath.Join(c.dir, "..data_tmp"), filepath.Join(c.dir, "..data")))
	for name := range files {
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(c.dir, name))
		if err != nil && !os.IsExist(err) {
			c.t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(c.dir)
	must(c.t, err)
	for _, entry := range entries {
		if _, ok := files[entry.Name()]; !ok && !strings.HasPrefix(entry.Name(), "..") {
			must(c.t, os.Remove(filepath.Join(c.dir, entry.Name())))
		}
	}
	if old != "" {
		must(c.t, os.RemoveAll(filepath.Join(c.dir, old)))
	}
}

func TestStoreFollowsConfigMap(t *testing.T) {
	t.Parallel()
	volume := &configMap{t: t, dir: t.TempDir()}
	volume.set(map[string]string{"a.yaml": rules("a0")})
	r := start(t, Options{Dirs: []string{volume.dir}}, 10*time.Millisecond)
	r.waitLive("a0")

	volume.set(map[string]string{"a.yaml": rules("a1")})
	r.waitLive("a1")

	volume.set(map[string]string{"a.yaml": rules("a1"), "b.yaml": rules("b")})
	r.waitLive("a1", "b")

	volume.set(map[string]string{"b.yaml": rules("b")})
	r.waitLive("b")

	// Many swaps, faster than they are read: the last one counts.
	for i := range 100 {
		volume.set(map[string]string{"b.yaml": rules(fmt.Sprintf("b%d", i))})
	}
	r.waitLive("b99")
	r.waitFor("no mistake stays", func() bool { return r.Status().Err == nil })
}

func TestStoreKeepsLastGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	replace(t, file, rules("good"))
	r := start(t, Options{Dirs: []string{dir}}, time.Minute)
	first := r.Status()

	replace(t, file, strings.Replace(rules("bad"), "resource:", "resourc:", 1))
	r.waitFor("the mistake is reported", func() bool { return r.Status().Err != nil })
	s := r.Status()
	want := file + `:6:7: the apiRoutingRule has no resource
      - {apiGroup: apps, resourc: deployments, clientVersion: v1, preferApiServerVersion: v1.32.y}
        ^
` + file + `:6:24: the apiRoutingRule has an unknown field "resourc"; did you mean "resource"?
      - {apiGroup: apps, resourc: deployments, clientVersion: v1, preferApiServerVersion: v1.32.y}
                         ^`
	if s.Err.Error() != want {
		t.Errorf("error\n got %s\nwant %s", s.Err, want)
	}
	if s.Generation != 1 || s.Hash != first.Hash || s.Failures != 1 || s.ErrTime.IsZero() {
		t.Errorf("status after a broken edit: %+v", s)
	}
	r.waitLive("good")
	if want := `level=ERROR msg="cannot reload policies, the last good ones stay" at=` + file + `:6:7 error="the apiRoutingRule has no resource"`; !strings.Contains(r.logs.String(), want) {
		t.Errorf("the log lacks %s:\n%s", want, r.logs)
	}

	// An empty file is what an editor may leave for a moment.
	write(t, file, "")
	r.waitFor("the empty file is reported", func() bool { return r.Status().Failures == 2 })
	r.waitLive("good")

	replace(t, file, rules("better"))
	r.waitLive("better")
	if s := r.Status(); s.Err != nil || s.Generation != 2 || s.Failures != 2 {
		t.Errorf("status after a good edit: %+v", s)
	}

	// Undoing a broken edit is a good edit, and no new generation.
	replace(t, file, "{")
	r.waitFor("the mistake is reported", func() bool { return r.Status().Err != nil })
	replace(t, file, rules("better"))
	r.waitFor("the mistake is gone", func() bool { return r.Status().Err == nil })
	if s := r.Status(); s.Generation != 2 {
		t.Errorf("status after undoing an edit: %+v", s)
	}
	if len(r.changes) != 1 {
		t.Errorf("%d changes announced, want 1", len(r.changes))
	}
}

func TestStoreKeepsPoliciesOfMissingFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), rules("a"))
	write(t, filepath.Join(dir, "b.yaml"), rules("b"))
	r := start(t, Options{Dirs: []string{dir}}, time.Minute)

	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	r.waitFor("the missing file is noticed", func() bool {
		return strings.Contains(r.logs.String(), "a policy file is gone")
	})
	r.waitLive("a", "b")
	write(t, filepath.Join(dir, "a.yaml"), rules("a2"))
	r.waitLive("a2", "b")
}

func TestStoreGivesUpRemovedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), rules("a"))
	write(t, filepath.Join(dir, "b.yaml"), rules("b"))
	r := start(t, Options{Dirs: []string{dir}}, 10*time.Millisecond)

	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	r.waitLive("b")
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	r.waitLive()
}

func TestStoreSurvivesItsDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "policies")
	must(t, os.Mkdir(dir, 0o777))
	write(t, filepath.Join(dir, "a.yaml"), rules("a"))
	r := start(t, Options{Dirs: []string{dir}}, 10*time.Millisecond)

	must(t, os.RemoveAll(dir))
	r.waitFor("the missing directory is reported", func() bool { return r.Status().Err != nil })
	if got, want := r.Status().Err.Error(), dir+": cannot read policies: no such file or directory"; got != want {
		t.Errorf("error\n got %s\nwant %s", got, want)
	}
	r.waitLive("a")

	must(t, os.Mkdir(dir, 0o777))
	write(t, filepath.Join(dir, "a.yaml"), rules("a2"))
	r.waitLive("a2")

	// A directory that takes its place, and a later edit in that.
	other := dir + ".new"
	must(t, os.Mkdir(other, 0o777))
	write(t, filepath.Join(other, "a.yaml"), rules("a3"))
	must(t, os.Rename(dir, dir+".old"))
	must(t, os.Rename(other, dir))
	r.waitLive("a3")
	write(t, filepath.Join(dir, "a.yaml"), rules("a4"))
	r.waitLive("a4")
}

func TestOpenReportsEverything(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "{")
	write(t, filepath.Join(dir, "b.deny.cel"), " \n")
	must(t, os.Symlink("nowhere", filepath.Join(dir, "c.deny.cel")))
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o777))
	must(t, os.Mkdir(filepath.Join(dir, ".hidden"), 0o777))
	write(t, filepath.Join(dir, "latin1.deny.cel"), "'\xe9t\xe9'")
	for _, name := range []string{"README.md", ".a.yaml.swp", "a.yaml~", "x.test.yaml", "x_test.txtar"} {
		write(t, filepath.Join(dir, name), "not a policy")
	}
	_, err := Open(Options{Dirs: []string{dir, dir + "/gone"}, Library: []string{"policy-v1beta", "all-of-it"}}, slog.New(slog.DiscardHandler), nil)
	if err == nil {
		t.Fatal("no error")
	}
	want := `cannot load the shipped policies "all-of-it": there are none of that name; give kubernetes-1.N, the release of the servers, or a name that 'mvp library' lists
cannot load the shipped policies "policy-v1beta": there are none of that name; did you mean "policy-v1beta1"?
DIR/a.yaml:1:1: not YAML: did not find expected node content
  {
  ^
DIR/b.deny.cel:1:1: the file is empty: write the policy or remove the file
DIR/c.deny.cel: cannot read the policy file: no such file or directory
DIR/gone: cannot read policies: no such file or directory
DIR/latin1.deny.cel:1:2: byte 0xe9 is not text: policy files are in UTF-8
  '` + "\xe9t\xe9" + `'
   ^
DIR/sub: a directory in a policy directory is not read, which is flat: move its files up, or name it as a policy directory of its own`
	if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHugeFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "huge.match.cel")
	write(t, file, "")
	must(t, os.Truncate(file, 50<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	files, _ := readAll([]string{dir})
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; len(files) != 0 || allocated > MaxFileBytes {
		t.Errorf("%d files read, %d bytes allocated to refuse 50 MiB", len(files), allocated)
	}
	_, err := Load(Options{Dirs: []string{dir}})
	want := file + ": cannot read the policy file: it has 52428800 bytes, more than the 1048576 a policy file may have: split it"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

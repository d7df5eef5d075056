package policies

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A ConfigMap volume changes by a swap of the link that all its files go through, one
// time after the other: nobody writes to the files that are watched.
func Test4_13_ConfigMapVolume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay := func(stamp, name string) {
		t.Helper()
		must(t, os.Mkdir(filepath.Join(dir, stamp), 0o777))
		write(t, filepath.Join(dir, stamp, "p.yaml"), rules(name))
	}
	lay("..1", "v1")
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink(filepath.Join("..data", "p.yaml"), filepath.Join(dir, "p.yaml")))
	r := start(t, Options{Dirs: []string{dir}}, time.Minute)
	for n := 2; n < 6; n++ {
		stamp, name := fmt.Sprintf("..%d", n), fmt.Sprintf("v%d", n)
		lay(stamp, name)
		must(t, os.Symlink(stamp, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		must(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..%d", n-1))))
		r.waitLive(name)
	}
	if s := r.Status(); s.Generation != 5 || s.Failures != 0 {
		t.Errorf("after four swaps: %+v", s)
	}
}

// What events a swap sends depends on the file system: on each, many swaps in a row end
// with the last one live.
func Test4_14_FileSystems(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		swapMany(t, t.TempDir())
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			dir, err := os.MkdirTemp("/dev/shm", "policies")
			must(t, err)
			t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
			swapMany(t, dir)
		}
		againInNamespace(t)
		return
	}
	dir := t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs")
	swapMany(t, dir)

	// The other side of a bind mount is what a container sees of a volume.
	source, target := t.TempDir(), t.TempDir()
	mount(t, source, target, "bind")
	swapManySeen(t, source, target)

	lower, upper, work, merged := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(lower, "other.yaml"), rules("other"))
	if err := tryMount(t, "overlay", merged, "overlay", "lowerdir="+lower+",upperdir="+upper+",workdir="+work); err != nil {
		t.Logf("no overlay file system in a namespace of the test's own: %v", err)
		return
	}
	must(t, os.Remove(filepath.Join(merged, "other.yaml")))
	swapMany(t, merged)
}

func swapMany(t *testing.T, dir string) {
	t.Helper()
	swapManySeen(t, dir, dir)
}

// swapManySeen swaps 500 times in dir, of a store that sees it as seen.
func swapManySeen(t *testing.T, dir, seen string) {
	t.Helper()
	volume := &configMap{t: t, dir: dir}
	volume.set(map[string]string{"a.yaml": rules("v0"), "b.yaml": rules("w0")})
	r := startPatient(t, Options{Dirs: []string{seen}}, time.Minute, time.Minute)
	r.waitLive("v0", "w0")
	const swaps = 500
	for n := 1; n <= swaps; n++ {
		volume.set(map[string]string{"a.yaml": rules(fmt.Sprintf("v%d", n)), "b.yaml": rules(fmt.Sprintf("w%d", n))})
	}
	r.waitLive(fmt.Sprintf("v%d", swaps), fmt.Sprintf("w%d", swaps))
	if s := r.Status(); s.Failures != 0 || s.Err != nil {
		t.Errorf("after %d swaps: %+v", swaps, s)
	}
}

// A watch does not end with the file that was there first. Five updates in each way to
// make one are five reloads, and while the file is away its policies stay.
func Test4_15_EveryUpdate(t *testing.T) {
	// A save takes the old file away (it may), and puts the new content there.
	saves := []struct {
		name      string
		away, put func(t *testing.T, file, content string)
	}{
		{"vim: rename to a backup, create, remove the backup", func(t *testing.T, file, _ string) {
			must(t, os.Rename(file, file+"~"))
		}, func(t *testing.T, file, content string) {
			write(t, file, content)
			must(t, os.Remove(file+"~"))
		}},
		{"gedit: create beside, rename over", nil, func(t *testing.T, file, content string) {
			beside := filepath.Join(filepath.Dir(file), ".goutputstream-1")
			write(t, beside, content)
			must(t, os.Rename(beside, file))
		}},
		{"mv from another directory", nil, replace},
		{"delete and create", func(t *testing.T, file, _ string) {
			must(t, os.Remove(file))
		}, write},
		{"write in place", nil, write},
		{"empty it, write half, write the rest", func(t *testing.T, file, content string) {
			write(t, file, "")
			write(t, file, content[:len(content)/4])
		}, write},
	}
	for _, save := range saves {
		t.Run(save.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "rules.yaml")
			write(t, file, rules("v0"))
			r := startPatient(t, Options{Dirs: []string{dir}}, time.Minute, time.Minute)
			for n := range 5 {
				name := fmt.Sprintf("v%d", n+1)
				if save.away != nil {
					save.away(t, file, rules(name))
					r.waitFor("the store has seen what is there in between", func() bool {
						logs := r.logs.String()
						return strings.Count(logs, "a policy file is gone")+strings.Count(logs, "the policy files have mistakes") == n+1
					})
					r.waitLive(fmt.Sprintf("v%d", n))
				}
				save.put(t, file, rules(name))
				r.waitLive(name)
			}
			if s := r.Status(); s.Generation != 6 || s.Failures != 0 || s.Err != nil {
				t.Errorf("after five saves: %+v", s)
			}
		})
	}
}

// A file that is mounted by itself never changes, whatever becomes of the ConfigMap. The
// start says so, and nothing that is shipped mounts policies in that way.
func Test4_17_SubPath(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		dir := t.TempDir()
		source, file := filepath.Join(dir, "source"), filepath.Join(dir, "one", "rules.yaml")
		must(t, os.Mkdir(filepath.Dir(file), 0o777))
		write(t, source, rules("v0"))
		write(t, file, "")
		mount(t, source, file, "bind")
		var logs bytes.Buffer
		for _, name := range []string{file, filepath.Dir(file)} {
			logs.Reset()
			if _, err := Open(Options{Dirs: []string{name}}, slog.New(slog.NewTextHandler(&logs, nil)), nil); err != nil {
				t.Fatal(err)
			}
			want := `level=WARN msg="the policy file is a mount of its own (subPath): it will never change; mount its directory" file=` + file + "\n"
			if !strings.HasSuffix(logs.String(), want) {
				t.Errorf("of %s the log says\n%s\nwant\n%s", name, logs.String(), want)
			}
		}
		return
	}
	againInNamespace(t)
	err := filepath.WalkDir("../examples", func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(data, []byte("subPath:")) {
			t.Errorf("%s mounts a file by itself", name)
		}
		return err
	})
	must(t, err)
}

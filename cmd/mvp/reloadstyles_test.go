package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// reloadStyle is a way to change the files of a policy directory.
type reloadStyle struct {
	name string

	// swap returns what writes the files of a generation into dir. In between there is
	// no state in which each file is whole, some are old and some new, unless oneByOne
	// says so.
	swap     func(t *testing.T, dir string) func(n int)
	oneByOne bool
}

var reloadStyles = []reloadStyle{
	{name: "ConfigMap volume", swap: configMapSwap},
	{name: "rename and create", swap: func(t *testing.T, dir string) func(int) {
		return swapFiles(t, dir, func(files map[string]string) {
			for _, name := range existing(dir, files) {
				must(t, os.Rename(name, name+"~"))
			}
			for name, text := range files {
				write(t, filepath.Join(dir, name), text)
			}
			for name := range files {
				_ = os.Remove(filepath.Join(dir, name+"~")) // there is none the first time
			}
		})
	}},
	{name: "delete and create", swap: func(t *testing.T, dir string) func(int) {
		return swapFiles(t, dir, func(files map[string]string) {
			for _, name := range existing(dir, files) {
				must(t, os.Remove(name))
			}
			for name, text := range files {
				write(t, filepath.Join(dir, name), text)
			}
		})
	}},
	{name: "write in place", oneByOne: true, swap: func(t *testing.T, dir string) func(int) {
		return swapFiles(t, dir, func(files map[string]string) {
			for name, text := range files {
				write(t, filepath.Join(dir, name), text)
			}
		})
	}},
	{name: "empty, then half written", swap: func(t *testing.T, dir string) func(int) {
		return swapFiles(t, dir, func(files map[string]string) {
			for name := range files {
				write(t, filepath.Join(dir, name), "")
			}
			for name, text := range files {
				write(t, filepath.Join(dir, name), text[:len(text)/2])
			}
			for name, text := range files {
				write(t, filepath.Join(dir, name), text)
			}
		})
	}},
	{name: "directory removed and made anew", swap: func(t *testing.T, dir string) func(int) {
		return func(n int) {
			must(t, os.RemoveAll(dir))
			must(t, os.Mkdir(dir, 0o777))
			for _, files := range []map[string]string{constantFiles, numbered(n)} {
				for name, text := range files {
					write(t, filepath.Join(dir, name), text)
				}
			}
		}
	}},
	{name: "directory renamed over", swap: func(t *testing.T, dir string) func(int) {
		return func(n int) {
			beside := dir + ".new"
			must(t, os.Mkdir(beside, 0o777))
			for _, files := range []map[string]string{constantFiles, numbered(n)} {
				for name, text := range files {
					write(t, filepath.Join(beside, name), text)
				}
			}
			must(t, os.Rename(dir, dir+".old"))
			must(t, os.Rename(beside, dir))
			must(t, os.RemoveAll(dir+".old"))
		}
	}},
}

// swapFiles writes the constant files once, and the others with change.
func swapFiles(t *testing.T, dir string, change func(files map[string]string)) func(n int) {
	for name, text := range constantFiles {
		write(t, filepath.Join(dir, name), text)
	}
	return func(n int) { change(numbered(n)) }
}

func existing(dir string, files map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			names = append(names, filepath.Join(dir, name))
		}
	}
	return names
}

// configMapSwap changes dir as the kubelet changes a ConfigMap volume.
func configMapSwap(t *testing.T, dir string) func(n int) {
	volume := &configMapVolume{t, dir, func(n int) map[string]string {
		files := maps.Clone(constantFiles)
		maps.Copy(files, numbered(n))
		return files
	}}
	return func(n int) {
		volume.lay(n)
		volume.swap(n)
		volume.drop(n - 1)
	}
}

// configMapVolume is a directory as the kubelet makes it for a ConfigMap, whose content in
// generation n is files(n).
type configMapVolume struct {
	t     testing.TB
	dir   string
	files func(n int) map[string]string
}

func (v *configMapVolume) stamp(n int) string { return fmt.Sprintf("..2026_01_02.%d", n) }

// lay writes generation n beside the one that is there.
func (v *configMapVolume) lay(n int) {
	must(v.t, os.Mkdir(filepath.Join(v.dir, v.stamp(n)), 0o777))
	for name, text := range v.files(n) {
		write(v.t, filepath.Join(v.dir, v.stamp(n), name), text)
		if n == 0 {
			must(v.t, os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)))
		}
	}
}

// swap puts it in its place, by one rename of the link that all files go through.
func (v *configMapVolume) swap(n int) {
	data := filepath.Join(v.dir, "..data")
	must(v.t, os.Symlink(v.stamp(n), data+"_tmp"))
	must(v.t, os.Rename(data+"_tmp", data))
}

// drop removes generation n, if there was one.
func (v *configMapVolume) drop(n int) { must(v.t, os.RemoveAll(filepath.Join(v.dir, v.stamp(n)))) }

func write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o666))
}

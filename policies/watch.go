package policies

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watcher tells when something happens in the policy directories. It watches
// directories, never files: an editor or a ConfigMap volume replaces a file, and
// the watch of the old one would see nothing more.
type watcher struct {
	dirs   []string
	log    *slog.Logger
	notify *fsnotify.Watcher // nil: the system gives none, only polling is left
	failed map[string]bool   // directories whose failure is logged
}

func newWatcher(paths []string, log *slog.Logger) *watcher {
	w := &watcher{log: log, failed: map[string]bool{}}
	for _, path := range paths {
		w.dirs = append(w.dirs, watchedDir(path))
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("cannot watch policy directories, polling only", "error", err)
		return w
	}
	w.notify = notify
	return w
}

// watchedDir is the directory in which a change of path shows: path itself, or
// the parent of a single file.
func watchedDir(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return filepath.Clean(path)
}

// watch begins to watch the directories, also those that were removed and made
// anew since the last call: a watch ends with its directory.
func (w *watcher) watch() {
	if w.notify == nil {
		return
	}
	for _, dir := range w.dirs {
		err := w.notify.Add(dir)
		if err == nil {
			delete(w.failed, dir)
			continue
		}
		// A directory that is gone is reported by whoever reads it.
		if !errors.Is(err, fs.ErrNotExist) && !w.failed[dir] {
			w.failed[dir] = true
			w.log.Warn("cannot watch the policy directory, polling it only", "dir", dir, "error", err)
		}
	}
}

// events and errors are never ready without a watch.

func (w *watcher) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watcher) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // at the end of Run; there is nothing left to lose
	}
}

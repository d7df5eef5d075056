package policies

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A watch ends with its directory; that of the one in its place must work too.
func TestWatcherFollowsReplacedDirectory(t *testing.T) {
	replace := map[string]func(t *testing.T, dir string){
		"removed and made anew": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.Mkdir(dir, 0o777))
		},
		"renamed and made anew": func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".old"))
			must(t, os.Mkdir(dir, 0o777))
		},
		"replaced by a link": func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".1"))
			must(t, os.Mkdir(dir+".2", 0o777))
			must(t, os.Symlink(dir+".2", dir))
		},
	}
	for name, replace := range replace {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "policies")
			must(t, os.Mkdir(dir, 0o777))
			w := newWatcher([]string{dir}, slog.New(slog.DiscardHandler))
			defer w.close()
			if w.notify == nil {
				t.Skip("the system gives no watch")
			}
			w.watch()
			replace(t, dir)

			// The end of the old watch is told through its events, so it may take a
			// few before the new one stands: the store calls watch after each.
			deadline := time.After(20 * time.Second)
			retry := time.NewTicker(5 * time.Millisecond)
			defer retry.Stop()
			for {
				w.watch()
				write(t, filepath.Join(dir, "new.yaml"), "")
				select {
				case event := <-w.events():
					if filepath.Base(event.Name) == "new.yaml" {
						return
					}
				case <-retry.C:
				case <-deadline:
					t.Fatal("no event for a file in the new directory")
				}
			}
		})
	}
}

package policies

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Files that are others at each reading may be half of one state and half of another:
// they never become live, and are told of.
func TestUnrest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), rules("a"))
	logs := &logLines{}
	s, err := Open(Options{Dirs: []string{dir}}, slog.New(slog.NewTextHandler(logs, nil)), nil)
	must(t, err)
	const told = "the policy files change all the time; what is live stays until they come to rest"
	s.rests(false)
	s.restless = s.restless.Add(-maxMistakeGrace)
	s.rests(true)
	s.rests(false)
	if strings.Contains(logs.String(), told) {
		t.Error("a moment of unrest is told")
	}
	s.restless = time.Now().Add(-2 * maxMistakeGrace)
	s.rests(false)
	s.rests(false)
	if n := strings.Count(logs.String(), told); n != 1 {
		t.Errorf("unrest is told %d times, want once", n)
	}

	// A snapshot that no reading is the same as: the first reading differs from it, and
	// the second is the same as the first.
	if snap, ok := (snapshot{hash: "other"}).settled([]string{dir}); !ok || snap.hash != s.tried {
		t.Errorf("files at rest: %t, %s", ok, snap.hash)
	}
	if _, ok := (snapshot{}).settled([]string{"/proc/self/io"}); ok { // another text each time it is read
		t.Error("files that change all the time count as read")
	}
}

package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sawMistakes waits until the store has read files with mistakes n times.
func (r *running) sawMistakes(n int) {
	r.t.Helper()
	r.waitFor(fmt.Sprintf("the files are read with mistakes %d times", n), func() bool {
		return strings.Count(r.logs.String(), "the policy files have mistakes") >= n
	})
}

// What is empty or half there for a moment is no mistake: a plain write leaves a file so.
func TestStoreForgivesMoments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	write(t, file, rules("v0"))
	r := startPatient(t, Options{Dirs: []string{dir}}, time.Minute, time.Minute)
	for i, moment := range []string{"", "apiVersion: mvp.k8s.io/v1\nkind: Trans", "{"} {
		write(t, file, moment)
		r.sawMistakes(i + 1)
		r.waitLive(fmt.Sprintf("v%d", i))
		next := fmt.Sprintf("v%d", i+1)
		write(t, file, rules(next))
		r.waitLive(next)
	}
	if s := r.Status(); s.Failures != 0 || s.Err != nil || s.Generation != 4 {
		t.Errorf("after three moments: %+v", s)
	}
	if logs := r.logs.String(); strings.Contains(logs, "level=ERROR") {
		t.Errorf("a moment is told as a mistake:\n%s", logs)
	}
}

// A file that stays empty is told, also when a good edit of another one comes behind, and
// so is one that is wrong in another way each time it is read.
func TestStoreTellsWhatStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	write(t, a, rules("a0"))
	write(t, b, rules("b0"))
	r := startPatient(t, Options{Dirs: []string{dir}}, time.Minute, 100*time.Millisecond)
	write(t, a, "")
	r.waitFor("the empty file is told", func() bool { return r.Status().Failures == 1 })
	replace(t, b, rules("b1"))
	r.waitFor("it is told again", func() bool { return r.Status().Failures == 2 })
	r.waitLive("a0", "b0")
	want := a + ":1:1: the file is empty: write the policy or remove the file"
	if got := r.Status().Err.Error(); got != want {
		t.Errorf("error\n got %s\nwant %s", got, want)
	}
	write(t, a, rules("a1"))
	r.waitLive("a1", "b1")
	r.waitFor("nothing is wrong any more", func() bool { return r.Status().Err == nil })
}

// forgives is asked by one goroutine at a time: here by the test's.
func TestForgives(t *testing.T) {
	s := openQuiet(t, nil)
	s.patience = time.Hour
	for range 2 {
		if !s.forgives("one", nil) {
			t.Error("new mistakes are told at once")
		}
	}
	s.wrong.same = s.wrong.same.Add(-time.Hour)
	if s.forgives("one", nil) {
		t.Error("mistakes that stay are not told")
	}
	if !s.forgives("another", nil) {
		t.Error("other mistakes have no patience of their own")
	}
	s.wrong.since = s.wrong.since.Add(-time.Hour)
	if s.forgives("a third", nil) {
		t.Error("files that are always wrong in another way are never told")
	}
	s.decided("good")
	if !s.forgives("one", nil) {
		t.Error("mistakes after a good edit have no patience")
	}
}

// The files are read when nothing has happened for a while, or has gone on for too long,
// and not before those that take long to read have been left alone for as long.
func TestSettling(t *testing.T) {
	var s settling
	s.again()
	first, until := s.done, s.until
	s.again()
	if s.done == first {
		t.Error("an event does not put the reading off")
	}
	if !s.until.Equal(until) {
		t.Error("an event puts off the end of the wait")
	}
	s.until = time.Now()
	s.again()
	<-s.done // at once

	s.over(10 * time.Minute)
	if s.done != nil || time.Until(s.free) < 20*time.Minute {
		t.Errorf("after a long reading %v, the next one may be in %v", s.done, time.Until(s.free))
	}
	s.again()
	s.until = time.Now()
	s.again()
	select {
	case <-s.done:
		t.Error("files that take ten minutes to read are read again at once")
	default:
	}
}

// A file that is a link to one elsewhere changes without any event in the directory: the
// poll finds it.
func TestStorePolls(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "rules.yaml")
	write(t, elsewhere, rules("v0"))
	must(t, os.Symlink(elsewhere, filepath.Join(dir, "rules.yaml")))
	r := start(t, Options{Dirs: []string{dir}}, 10*time.Millisecond) // which is also how often it polls
	write(t, elsewhere, rules("v1"))
	r.waitLive("v1")
}

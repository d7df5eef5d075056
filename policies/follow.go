package policies

import (
	"context"
	"time"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Run follows the files until ctx is done; it then returns nil. It must run once
// only.
func (s *Store) Run(ctx context.Context) error {
	w := newWatcher(s.opts.Dirs, s.log)
	defer w.close()

	// What changed between Open and the watch sends no event: look at once.
	w.watch()
	var settle settling
	if _, other := s.look(); other {
		settle.again()
	}
	poll := time.NewTimer(s.pollAfter())
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.events():
			// What kind of event on which file says little: a volume's swap of links
			// looks different on every file system. The contents decide.
			settle.again()
			continue
		case err := <-w.errors():
			s.log.Warn("the watch of the policy directories lost events, reading them", "error", err)
			settle.again()
			continue
		case <-poll.C:
			// A change that no event told may be half done, too.
			if settle.done != nil {
				break
			}
			if _, other := s.look(); other {
				settle.again()
			}
		case <-settle.done:
			rested := s.check()
			settle.over(s.cost)
			if !rested {
				settle.again()
			}
		}
		w.watch()
		poll.Reset(s.pollAfter())
	}
}

// settling waits until nothing has happened for a while.
type settling struct {
	done  <-chan time.Time // ready then, or at until; nil: nothing has happened
	until time.Time        // when the wait has been too long
	free  time.Time        // before that the files are not read again
}

// again notes that something happens.
func (s *settling) again() {
	now := time.Now()
	if s.done == nil {
		s.until = now.Add(maxSettleTime)
	}
	s.done = time.After(max(min(settleTime, s.until.Sub(now)), s.free.Sub(now)))
}

// over notes that the files were read, which took cost for each reading.
func (s *settling) over(cost time.Duration) {
	s.done, s.free = nil, time.Now().Add(settleShare*cost)
}

// wrongFiles are files with mistakes that may be those of a moment.
type wrongFiles struct {
	since time.Time // when files were first wrong, zero: they are not
	same  time.Time // when these ones were
	hash  string
	errs  source.Errors
}

// pollAfter returns when to poll next.
func (s *Store) pollAfter() time.Duration {
	after := max(min(pollInterval, s.grace), pollShare*s.cost)
	if !s.wrong.since.IsZero() {
		after = min(after, max(settleTime, time.Until(s.wrong.same.Add(s.patience))))
	}
	return after
}

// look reads the files once. Other says that they are not those that were last
// decided on.
func (s *Store) look() (snap snapshot, other bool) {
	start := time.Now()
	snap = takeSnapshot(s.opts.Dirs)
	s.cost = time.Since(start)
	if snap.hash == s.tried {
		s.missingSince, s.wrong = time.Time{}, wrongFiles{}
		return snap, false
	}
	return snap, true
}

// check reads the files, and makes what they hold live if it is new and good. It returns
// false when it could not read one state of them, since they change all the time.
func (s *Store) check() bool {
	snap, other := s.look()
	if !other {
		return true
	}
	snap, ok := snap.settled(s.opts.Dirs)
	s.rests(ok)
	if ok {
		s.decide(snap)
	}
	return ok
}

// rests notes whether the files have come to rest, and tells when they do not.
func (s *Store) rests(ok bool) {
	switch {
	case ok:
		s.restless = time.Time{}
	case s.restless.IsZero():
		s.restless = time.Now()
	case time.Since(s.restless) > maxMistakeGrace:
		s.restless = time.Now()
		s.log.Warn("the policy files change all the time; what is live stays until they come to rest")
	}
}

// decide makes what the files hold live if it is good.
func (s *Store) decide(snap snapshot) {
	if s.waits(snap) || snap.hash == s.wrong.hash && s.forgives(snap.hash, s.wrong.errs) {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if snap.hash == s.files.hash {
		s.decided(snap.hash)
		s.bad = false
		s.recovered()
		s.told()
		return
	}
	set, policies, errs := compileFiles(snap.files, s.opts, snap.errs)
	if len(errs) > 0 && s.forgives(snap.hash, errs) {
		return
	}
	defer s.told()
	s.decided(snap.hash)
	if s.bad = len(errs) > 0; s.bad {
		s.failed(errs)
		return
	}
	s.files = files{snap, policies, set}
	s.assemble()
}

// decided notes that files of that hash are done with, for good or bad.
func (s *Store) decided(hash string) { s.tried, s.wrong = hash, wrongFiles{} }

// forgives reports whether mistakes may yet go away by themselves: the files are just
// being written.
func (s *Store) forgives(hash string, errs source.Errors) bool {
	now := time.Now()
	if s.wrong.since.IsZero() {
		s.wrong.since = now
		s.log.Info("the policy files have mistakes; what is live stays, and they are told if they stay, too", "mistakes", len(errs), "after", s.patience)
	}
	if s.wrong.hash != hash {
		s.wrong.same, s.wrong.hash, s.wrong.errs = now, hash, errs
	}
	return now.Sub(s.wrong.same) < s.patience && now.Sub(s.wrong.since) < max(s.patience, maxMistakeGrace)
}

// waits reports whether a file of the live set is missing and may yet come back.
func (s *Store) waits(snap snapshot) bool {
	name, missing := snap.missing(s.Status().Files)
	if !missing {
		s.missingSince = time.Time{}
		return false
	}
	if s.missingSince.IsZero() {
		s.missingSince = time.Now()
		s.log.Info("a policy file is gone; its policies stay a moment longer, in case it is being replaced", "file", name, "for", s.grace)
	}
	return time.Since(s.missingSince) < s.grace
}

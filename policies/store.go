package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// How a Store follows its files.
const (
	// pollInterval is how often the contents are compared, beside the watch: file
	// systems exist that report nothing, and a change may fall between two watches.
	pollInterval = time.Second

	// pollShare keeps the poll of a huge directory below 1% of a processor: it
	// waits that many times as long as it took to read.
	pollShare = 100

	// settleTime is how long to wait after the first event, so that an editor's
	// several writes are one reload.
	settleTime = 50 * time.Millisecond

	// settleShare keeps reading below a quarter of a processor when events never
	// end: it waits that many times as long as it took to read.
	settleShare = 3

	// removalGrace is how long a file that was loaded may be missing before its
	// policies are given up. Some tools delete a file and create it again, seconds
	// later, and in between a deny must not be lifted.
	removalGrace = 5 * time.Second

	// maxLogged is how many mistakes of one reload are logged, a record each.
	maxLogged = 20
)

// Store keeps the set that is live: it loads the policies, and loads them again
// when a file changes, or when it is given other objects. Files with a mistake never
// take the place of good ones; of an object with a mistake, the last good version stays.
// All methods are safe for concurrent use.
type Store struct {
	opts     Options
	log      *slog.Logger
	onChange func(*engine.Set)
	grace    time.Duration

	live    atomic.Pointer[live]
	changes chan struct{} // see Changes

	// mu is held while the live set is made anew, from what follows.
	mu      sync.Mutex
	files   files
	bad     bool // the files are others by now, and have mistakes
	objects objects

	// What follows belongs to the goroutine that runs Run.

	tried        string        // the hash of the files that were last looked at
	missingSince time.Time     // when a loaded file was first missing, zero: none is
	cost         time.Duration // of the last reading
}

// files are the policy files as they are live.
type files struct {
	snapshot
	policies []engine.Policy // with the shipped ones
	set      *engine.Set     // of these alone
}

// live is what readers see at one moment.
type live struct {
	set    *engine.Set
	status Status
}

// Status says what a Store has loaded, and what is wrong with what it has not.
type Status struct {
	// Generation counts the sets that were live, from 1. A set is another one
	// when the content of some file or object is.
	Generation uint64

	// Hash is of the names and contents of the files and objects of the live set.
	Hash string

	// Loaded is when the live set was compiled.
	Loaded time.Time

	// Files are the names of the files of the live set, without the library's.
	Files []string

	// Objects are what became of the objects of SetObjects, in their order.
	Objects []ObjectStatus

	// Policies counts the policies of the live set.
	Policies int

	// Failures counts the reloads that failed.
	Failures uint64

	// Err is what was wrong with the last reload, at ErrTime. It is nil when the
	// files are what is live.
	Err     source.Errors
	ErrTime time.Time
}

// Open loads the policies for the first time. That must succeed: the error is
// that of [Load]. From then on onChange is called with each new set, one call at a
// time, after Current returns it; a nil onChange is no one to tell. The first set is
// not announced.
func Open(opts Options, log *slog.Logger, onChange func(*engine.Set)) (*Store, error) {
	s := &Store{opts: opts, log: log, onChange: onChange, grace: removalGrace, changes: make(chan struct{}, 1)}
	start := time.Now()
	snap := takeSnapshot(opts.Dirs)
	s.cost = time.Since(start)
	snap = snap.settled(opts.Dirs)
	set, policies, errs := compileFiles(snap.files, opts, snap.errs)
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	warnMounted(snap.names(), log)
	s.files = files{snap, policies, set}
	s.swap(set, snap.hash, nil)
	s.tried = snap.hash
	return s, nil
}

// Current returns the live set. It is never nil, and never changes.
func (s *Store) Current() *engine.Set { return s.live.Load().set }

// Status returns what is live and what is wrong. The caller must not change its
// slices.
func (s *Store) Status() Status { return s.live.Load().status }

// Changes has an element after Status changed. It is for one receiver.
func (s *Store) Changes() <-chan struct{} { return s.changes }

// SetObjects replaces all objects, which are in the order in which they take
// precedence: one that converts what an earlier one does is in conflict. Files come
// before all of them. When it returns, Status says what became of each, and what is
// accepted is live. The files need not be read again for that.
func (s *Store) SetObjects(objects []Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.set(objects, s.opts.Limits)
	s.assemble()
}

// Run follows the files until ctx is done; it then returns nil. It must run once
// only.
func (s *Store) Run(ctx context.Context) error {
	w := newWatcher(s.opts.Dirs, s.log)
	defer w.close()

	// What changed between Open and the watch sends no event: look at once.
	w.watch()
	s.check()

	poll := time.NewTimer(s.pollAfter())
	defer poll.Stop()
	var settle <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.events():
			// What kind of event on which file says little: a volume's swap of links
			// looks different on every file system. The contents decide.
			if settle == nil {
				settle = time.After(max(settleTime, settleShare*s.cost))
			}
			continue
		case err := <-w.errors():
			s.log.Warn("the watch of the policy directories lost events, reading them", "error", err)
		case <-settle:
		case <-poll.C:
		}
		settle = nil
		w.watch()
		s.check()
		poll.Reset(s.pollAfter())
	}
}

// pollAfter returns when to poll next.
func (s *Store) pollAfter() time.Duration {
	return max(min(pollInterval, s.grace), pollShare*s.cost)
}

// check reads the files, and makes what they hold live if it is new and good.
func (s *Store) check() {
	start := time.Now()
	snap := takeSnapshot(s.opts.Dirs)
	s.cost = time.Since(start)
	if snap.hash == s.tried {
		s.missingSince = time.Time{}
		return
	}
	snap = snap.settled(s.opts.Dirs)
	if s.waits(snap) {
		return
	}
	s.tried = snap.hash

	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.told()
	if snap.hash == s.files.hash {
		s.bad = false
		s.recovered()
		return
	}
	set, policies, errs := compileFiles(snap.files, s.opts, snap.errs)
	if s.bad = len(errs) > 0; s.bad {
		s.failed(errs)
		return
	}
	s.files = files{snap, policies, set}
	s.assemble()
}

// assemble makes what the files and the objects hold live, if that is another set. It
// is called with the lock held, and files that have no mistake.
func (s *Store) assemble() {
	defer s.told()
	set, all, statuses := s.files.set, s.files.policies, []ObjectStatus(nil)
	if len(s.objects.list) > 0 {
		all, statuses = s.objects.join(s.files.policies)
	}
	hash := s.files.hash + s.objects.hash()
	if len(hash) > len(s.files.hash) {
		sum := sha256.Sum256([]byte(hash))
		hash = hex.EncodeToString(sum[:])
	}
	old := s.live.Load()
	if hash == old.status.Hash {
		s.judged(statuses)
		if !s.bad {
			s.recovered()
		}
		return
	}
	if len(all) > len(s.files.policies) {
		var err error
		if set, err = compileAll(all, s.opts.Limits); err != nil {
			s.failed(asErrors(err))
			return
		}
	}
	s.objects.live()
	s.swap(set, hash, statuses)
	s.logObjects(old.status.Objects, statuses)
	s.log.Info("policies reloaded", "generation", old.status.Generation+1, "policies", len(set.Policies()),
		"files", len(s.files.files), "objects", len(s.objects.list))
	if s.onChange != nil {
		s.onChange(set)
	}
}

// told says that the status may have changed.
func (s *Store) told() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
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

// swap makes set live. What is wrong with the files stays told while they have mistakes.
func (s *Store) swap(set *engine.Set, hash string, objects []ObjectStatus) {
	next := &live{set: set, status: Status{
		Generation: 1,
		Hash:       hash,
		Loaded:     time.Now(),
		Files:      s.files.names(),
		Objects:    objects,
		Policies:   len(set.Policies()),
	}}
	if old := s.live.Load(); old != nil {
		next.status.Generation += old.status.Generation
		next.status.Failures = old.status.Failures
		if s.bad {
			next.status.Err, next.status.ErrTime = old.status.Err, old.status.ErrTime
		}
	}
	s.live.Store(next)
}

// judged notes what became of the objects where that changes nothing of what is live.
func (s *Store) judged(objects []ObjectStatus) {
	next := *s.live.Load()
	s.logObjects(next.status.Objects, objects)
	next.status.Objects = objects
	s.live.Store(&next)
}

// logObjects logs which objects are, and are not any more, accepted, and why.
func (s *Store) logObjects(before, now []ObjectStatus) {
	wrong := map[string]string{}
	for _, o := range before {
		wrong[o.Name] = o.Err.Error()
	}
	for _, o := range now {
		if o.Err.Error() == wrong[o.Name] {
			continue
		}
		if o.Accepted() {
			s.log.Info("the policy object is accepted", "object", o.Name, "policies", o.Policies)
			continue
		}
		for _, e := range o.Err[:min(len(o.Err), maxLogged)] {
			s.log.Error("cannot accept the policy object", "object", o.Name, "reason", o.Reason, "at", e.Pos.String(), "error", e.Msg, "live", o.Policies)
		}
	}
}

// recovered notes that the files are again those that are live.
func (s *Store) recovered() {
	old := s.live.Load()
	if old.status.Err == nil {
		return
	}
	next := *old
	next.status.Err, next.status.ErrTime = nil, time.Time{}
	s.live.Store(&next)
	s.log.Info("the policy files are again as loaded", "generation", next.status.Generation)
}

// failed notes what is wrong with the files; what was live stays. The log has it
// before the status does, so that whoever sees a failure there finds its reasons.
func (s *Store) failed(errs source.Errors) {
	next := *s.live.Load()
	for _, e := range errs[:min(len(errs), maxLogged)] {
		s.log.Error("cannot reload policies, the last good ones stay", "at", e.Pos.String(), "error", e.Msg)
	}
	s.log.Error("policies not reloaded", "mistakes", len(errs), "generation", next.status.Generation)
	next.status.Failures++
	next.status.Err, next.status.ErrTime = slices.Clone(errs), time.Now()
	s.live.Store(&next)
}

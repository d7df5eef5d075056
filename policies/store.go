package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
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

	// settleTime is how long nothing must have happened before the files are read, so
	// that an editor's several writes are one reload.
	settleTime = 50 * time.Millisecond

	// maxSettleTime is how long to wait for that. It bounds what files that never
	// come to rest hold up.
	maxSettleTime = time.Second

	// settleShare keeps reading below half of a processor when events never end: between
	// two times, that many times as long as a reading took must pass. Each is two readings.
	settleShare = 3

	// maxOpenReads bounds how often files that keep changing are read at the start: some
	// seconds of a thousand files.
	maxOpenReads = 20

	// removalGrace is how long a file that was loaded may be missing before its
	// policies are given up. Some tools delete a file and create it again, seconds
	// later, and in between a deny must not be lifted.
	removalGrace = 5 * time.Second

	// mistakeGrace is how long files may have the same mistakes before that is told. A
	// file that is written in place is empty, or half there, for a moment.
	mistakeGrace = time.Second

	// maxMistakeGrace is how long files may have mistakes at all, when they change all
	// the time, and how long files may not come to rest before that is told.
	maxMistakeGrace = 10 * time.Second

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
	grace    time.Duration // removalGrace
	patience time.Duration // mistakeGrace

	live    atomic.Pointer[live]
	changes chan struct{} // see Changes

	// mu is held while the live set is made anew, from what follows.
	mu      sync.Mutex
	files   files
	bad     bool // the files are others by now, and have mistakes
	objects objects

	// What follows belongs to the goroutine that runs Run.

	tried        string        // the hash of the files that were last decided on
	missingSince time.Time     // when a loaded file was first missing, zero: none is
	wrong        wrongFiles    // files with mistakes that are not told yet
	restless     time.Time     // since when the files do not come to rest, zero: they do
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
	s := &Store{opts: opts, log: log, onChange: onChange, grace: removalGrace, patience: mistakeGrace, changes: make(chan struct{}, 1)}
	start := time.Now()
	snap := takeSnapshot(opts.Dirs)
	s.cost = time.Since(start)
	snap, ok := snap.settled(opts.Dirs)
	for tries := 0; !ok && tries < maxOpenReads; tries++ {
		snap, ok = snap.settled(opts.Dirs)
	}
	if !ok {
		return nil, errors.New("cannot load the policies: their files change all the time; start when they have come to rest")
	}
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
	s.logWarnings(set.Warnings())
	s.live.Store(next)
}

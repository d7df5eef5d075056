package oracle_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/binaries"
	"github.com/mixed-version-proxy/mvp/bench/oracle"
)

// releases are those whose code answers. The first that knows both versions of a kind
// is asked: most are in the first.
var releases = []string{"1.32.13", "1.37.2", "1.20.15"}

// oracles are the running programs: of each release as many as are in use at once.
type oracles struct {
	ctx   context.Context
	paths map[string]string
	kinds map[string]map[oracle.Kind]bool

	mu   sync.Mutex
	idle map[string][]*oracle.Oracle
}

// startOracles builds the programs and asks what they know.
func startOracles(t testing.TB) *oracles {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // which ends before the clean-up
	t.Cleanup(cancel)
	o := &oracles{
		ctx:   ctx,
		paths: map[string]string{}, kinds: map[string]map[oracle.Kind]bool{}, idle: map[string][]*oracle.Oracle{},
	}
	t.Cleanup(func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	for _, release := range releases {
		v, err := binaries.ParseVersion(release)
		if err != nil {
			t.Fatal(err)
		}
		if o.paths[release], err = binaries.Oracle(t.Context(), v, t.Logf); err != nil {
			t.Fatal(err)
		}
		err = o.with(release, func(one *oracle.Oracle) error {
			o.kinds[release], err = one.Kinds()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o *oracles) close() error {
	var errs []error
	for _, idle := range o.idle {
		for _, one := range idle {
			errs = append(errs, one.Close())
		}
	}
	return errors.Join(errs...)
}

// with calls f with a program of release that nobody else uses meanwhile.
func (o *oracles) with(release string, f func(*oracle.Oracle) error) error {
	one := o.take(release)
	if one == nil {
		var err error
		if one, err = oracle.Start(o.ctx, o.paths[release], release); err != nil {
			return err
		}
	}
	if err := f(one); err != nil {
		return errors.Join(err, one.Close())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.idle[release] = append(o.idle[release], one)
	return nil
}

func (o *oracles) take(release string) *oracle.Oracle {
	o.mu.Lock()
	defer o.mu.Unlock()
	idle := o.idle[release]
	if len(idle) == 0 {
		return nil
	}
	o.idle[release] = idle[:len(idle)-1]
	return idle[len(idle)-1]
}

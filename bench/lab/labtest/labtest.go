// Package labtest gives tests a control plane of real servers, or skips them.
package labtest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// env is the environment variable that must be 1 for tests that need a lab.
const env = "MVP_LAB"

// Start starts a control plane that ends with the test. It skips the test unless
// MVP_LAB=1.
//
// With no cfg.Dir it uses a directory of the test's. Servers must have been built
// before ("go run ./bench/lab build"): a test has no time for it.
func Start(t testing.TB, cfg controlplane.Config) *controlplane.ControlPlane {
	t.Helper()
	SkipUnlessLab(t)
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Logf == nil {
		cfg.Logf = t.Logf
	}
	ctx, cancel := beforeDeadline(t)
	defer cancel()
	c, err := controlplane.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Clients returns real kubectl and helm binaries, and fetches them when they are
// not there. It skips the test unless MVP_LAB=1.
func Clients(t testing.TB) *clients.Set {
	t.Helper()
	SkipUnlessLab(t)
	ctx, cancel := beforeDeadline(t)
	defer cancel()
	set, err := clients.Fetch(ctx, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// SkipUnlessLab skips a test that needs what takes minutes to build the first time: it is
// not for everybody who runs go test. The gate sets MVP_LAB=1.
func SkipUnlessLab(t testing.TB) {
	t.Helper()
	if os.Getenv(env) != "1" {
		t.Skipf("needs a lab of real servers: run \"go run ./bench/lab build\" once, then set %s=1", env)
	}
}

// reserve is the time before the test's deadline that is left to report an
// error and to end servers.
const reserve = 20 * time.Second

// beforeDeadline returns a context that ends before go test does, which kills
// the process and tells only where it was.
func beforeDeadline(t testing.TB) (context.Context, context.CancelFunc) {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok {
			return context.WithDeadline(t.Context(), deadline.Add(-reserve))
		}
	}
	return context.WithCancel(t.Context())
}

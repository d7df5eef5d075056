package objects

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leaseTimes are how long a Lease is held without being renewed, how long its holder
// tries to renew it, and how often.
type leaseTimes struct{ duration, deadline, retry time.Duration }

// defaultLeaseTimes are those of Kubernetes' own components. A replica that is killed
// is followed by another one within 15 s and a little.
var defaultLeaseTimes = leaseTimes{15 * time.Second, 10 * time.Second, 2 * time.Second}

// lead holds the Lease when it can, and writes while it does, until ctx is done.
func (w *Watcher) lead(ctx context.Context) {
	client, err := coordinationclient.NewForConfigAndClient(w.rest(), w.http)
	if err != nil {
		w.problems.note(ctx, "make a client for the Lease", err)
		return
	}
	identity := identity()
	lock := &notingLock{w: w, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: w.cfg.LeaseNamespace, Name: w.cfg.LeaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	for ctx.Err() == nil {
		w.leadOnce(klog.NewContext(ctx, klog.Logger{}), lock) // silent: the lock tells what is wrong
		sleep(ctx, w.cfg.lease.retry)
	}
}

// leadOnce waits for the Lease and holds it until it is lost, or ctx is done.
func (w *Watcher) leadOnce(ctx context.Context, lock *notingLock) {
	lock.acquired.Store(false)
	wrote := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: w.cfg.LeaseName, ReleaseOnCancel: true,
		LeaseDuration: w.cfg.lease.duration, RenewDeadline: w.cfg.lease.deadline, RetryPeriod: w.cfg.lease.retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(wrote)
				w.leads.Store(true)
				defer w.leads.Store(false)
				w.cfg.Log.Info("this replica tells what became of the policy objects", "lease", lock.Describe(), "identity", lock.Identity())
				w.write(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil { // only for times that do not go together
		w.problems.note(ctx, "take part in the election of the replica that writes", err)
		return
	}
	elector.Run(ctx)
	if lock.acquired.Load() { // and so the writing was begun, or will be, and ends
		<-wrote
	}
}

// identity tells replicas apart, also two on one machine.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = fieldManager
	}
	return fmt.Sprintf("%s_%s", host, uuid.NewUUID())
}

// notingLock notes why the Lease cannot be had.
type notingLock struct {
	resourcelock.Interface
	w        *Watcher
	acquired atomic.Bool // the Lease was had since this was last false
}

// Get implements resourcelock.Interface.
func (l *notingLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if !apierrors.IsNotFound(err) {
		l.note(ctx, err)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *notingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if !apierrors.IsAlreadyExists(err) {
		l.note(ctx, err)
	}
	l.had(err)
	return err
}

// Update implements resourcelock.Interface.
func (l *notingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if !apierrors.IsConflict(err) {
		l.note(ctx, err)
	}
	l.had(err)
	return err
}

func (l *notingLock) note(ctx context.Context, err error) {
	l.w.problems.note(ctx, "hold the Lease "+l.Describe(), err)
}

func (l *notingLock) had(err error) {
	if err == nil {
		l.acquired.Store(true)
	}
}

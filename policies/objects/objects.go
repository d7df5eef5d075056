// Package objects hands a [policies.Store] the policies that are objects of a cluster:
// TransformationRules, and ConfigMaps with policy files in them. It says on each what
// became of it: in the status of TransformationRules, by events, and in the log.
//
// Every replica of MVP follows the objects, one that holds a Lease writes. While no
// kube-apiserver answers, and whatever else is wrong with reading them, the objects that
// are known stay. The package decides nothing about policies, and serves no request.
package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mixed-version-proxy/mvp/policies"
)

const (
	// DefaultTimeout is time enough for a control plane that starts together with MVP.
	DefaultTimeout = 30 * time.Second

	// DefaultLeaseName is that of the Lease of the replica that writes.
	DefaultLeaseName = "mvp-policy-objects"

	// fieldManager is who writes, in server-side apply and in events.
	fieldManager = "mvp"

	// settleTime is how long to wait after the first change, so that `kubectl apply` of
	// several objects is one load.
	settleTime = 50 * time.Millisecond

	// settleShare keeps loading below a quarter of a processor when changes never end.
	settleShare = 3
)

// Config is what a Watcher needs.
type Config struct {
	// Store gets the policies. Required.
	Store *policies.Store

	// Cluster sends requests to a kube-apiserver, with MVP's own credential. Required.
	Cluster http.RoundTripper

	// Rules says to follow TransformationRules.
	Rules bool

	// ConfigMaps are the ConfigMaps to follow.
	ConfigMaps []ConfigMaps

	// LeaseNamespace and LeaseName are of the Lease that the replica holds that
	// writes. LeaseNamespace is required; LeaseName is DefaultLeaseName by default.
	LeaseNamespace, LeaseName string

	// Timeout is how long Ready waits for the first look at the objects. Default
	// DefaultTimeout.
	Timeout time.Duration

	// Log gets what cannot be read or written. Required.
	Log *slog.Logger

	lease leaseTimes // zero: those of every Kubernetes component
}

// ConfigMaps are those in a namespace whose labels match a selector.
type ConfigMaps struct{ Namespace, Selector string }

// ParseConfigMaps reads NAMESPACE/SELECTOR, such as "kube-system/mvp.k8s.io/policies=true".
func ParseConfigMaps(s string) (ConfigMaps, error) {
	namespace, selector, _ := strings.Cut(s, "/")
	if namespace == "" || selector == "" {
		return ConfigMaps{}, fmt.Errorf("cannot use %q: want NAMESPACE/SELECTOR, such as kube-system/mvp.k8s.io/policies=true", s)
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return ConfigMaps{}, fmt.Errorf("cannot use %q: the selector %q: %w", s, selector, err)
	}
	if parsed.Empty() {
		return ConfigMaps{}, fmt.Errorf("cannot use %q: the selector takes every ConfigMap: name a label", s)
	}
	return ConfigMaps{namespace, selector}, nil
}

// Watcher follows the objects. It is safe for concurrent use.
type Watcher struct {
	cfg      Config
	sources  []*follower
	problems *problems
	events   *events
	http     *http.Client

	changed chan struct{} // holds an element when an object changed
	dirty   chan struct{} // holds an element when a status may be another
	leads   atomic.Bool

	known atomic.Bool // every source was listed, and the store has what came
	late  atomic.Bool // the time to wait for that is over

	mu     sync.Mutex
	handed []handed // what the store has
}

// New checks cfg. It connects nowhere before Run.
func New(cfg Config) (*Watcher, error) {
	switch {
	case cfg.Store == nil, cfg.Cluster == nil, cfg.Log == nil:
		return nil, errors.New("cannot follow policy objects: Config.Store, Config.Cluster and Config.Log must be set")
	case cfg.LeaseNamespace == "":
		return nil, errors.New("cannot follow policy objects: Config.LeaseNamespace is not set")
	case !cfg.Rules && len(cfg.ConfigMaps) == 0:
		return nil, errors.New("cannot follow policy objects: neither TransformationRules nor ConfigMaps are asked for")
	}
	cfg.LeaseName = cmp.Or(cfg.LeaseName, DefaultLeaseName)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.lease = cmp.Or(cfg.lease, defaultLeaseTimes)
	w := &Watcher{
		cfg: cfg, problems: newProblems(cfg.Log), http: &http.Client{Transport: cfg.Cluster, CheckRedirect: noRedirect},
		changed: make(chan struct{}, 1), dirty: make(chan struct{}, 1),
	}
	client, err := dynamic.NewForConfigAndClient(w.rest(), w.http)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the cluster: %w", err)
	}
	if w.events, err = newEvents(w); err != nil {
		return nil, err
	}
	if cfg.Rules {
		w.sources = append(w.sources, w.rules(client))
	}
	for _, c := range cfg.ConfigMaps {
		w.sources = append(w.sources, w.configMaps(client, c))
	}
	return w, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// rest is the configuration of every client. The host is not looked at: Cluster knows
// where the servers are.
func (w *Watcher) rest() *rest.Config {
	return &rest.Config{
		Host: "https://" + fieldManager, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		WarningHandlerWithContext: rest.NoWarnings{},
	}
}

// Run follows the objects until ctx is done, and then returns nil. It must run once only.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, s := range w.sources {
		wg.Go(func() { s.run(ctx) })
	}
	wg.Go(func() { w.feed(ctx) })
	wg.Go(func() { w.lead(ctx) })
	wg.Go(func() { w.events.run(ctx) })
	wg.Go(func() {
		if !sleep(ctx, w.cfg.Timeout) || w.known.Load() {
			return
		}
		w.late.Store(true)
		w.cfg.Log.Error("the policy objects of the cluster cannot be read yet, MVP is ready without them", "waited", w.cfg.Timeout.String(), "problem", w.problem())
	})
	wg.Wait()
	return nil
}

// Look has the Watcher look again for what the cluster did not serve. Call it when what
// the kube-apiservers serve has changed.
func (w *Watcher) Look() {
	for _, s := range w.sources {
		wake(s.look)
	}
}

// Ready is nil once the objects are known, or could not be read for Config.Timeout: a
// deny among them must not be passed by because nobody has read it yet.
func (w *Watcher) Ready() error {
	if w.known.Load() || w.late.Load() {
		return nil
	}
	return errors.New("the policy objects of the cluster are not known yet: " + w.problem())
}

func (w *Watcher) problem() string {
	if text := w.problems.reading(); text != "" {
		return text
	}
	return "no kube-apiserver has answered yet"
}

// Leads reports whether this replica is the one that writes.
func (w *Watcher) Leads() bool { return w.leads.Load() }

// handed is an object that the store was handed.
type handed struct {
	*item
	source *follower
}

// version tells whether an object says something else.
func (h *handed) version() string {
	return h.name + " " + string(h.object.GetUID()) + " " + h.source.version(h.object)
}

// feed hands the store what changed.
func (w *Watcher) feed(ctx context.Context) {
	var cost time.Duration
	var last []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.cfg.Store.Changes():
			wake(w.dirty)
			continue
		case <-w.changed:
		}
		if !sleep(ctx, max(settleTime, settleShare*cost)) {
			return
		}
		start := time.Now()
		last = w.hand(last)
		cost = time.Since(start)
	}
}

// hand gives the store the objects, if they say something else than the versions last,
// and returns their versions.
func (w *Watcher) hand(last []string) []string {
	known := true
	var all []handed
	for _, s := range w.sources {
		items, listed := s.items()
		known = known && listed
		for _, it := range items {
			all = append(all, handed{it, s})
		}
	}
	slices.SortFunc(all, func(a, b handed) int {
		return cmp.Or(a.created().Compare(b.created()), cmp.Compare(a.name, b.name))
	})
	// One ConfigMap may match two selectors.
	all = slices.CompactFunc(all, func(a, b handed) bool { return a.name == b.name })
	versions := make([]string, len(all))
	for i := range all {
		versions[i] = all[i].version()
	}
	if last == nil || !slices.Equal(versions, last) {
		objects := make([]policies.Object, len(all))
		for i := range all {
			objects[i] = all[i].source.read(all[i].item)
		}
		w.cfg.Store.SetObjects(objects)
	}
	w.mu.Lock()
	w.handed = all
	w.mu.Unlock()
	if known && !w.known.Swap(true) {
		w.cfg.Log.Info("the policy objects of the cluster are known", "objects", len(all))
	}
	wake(w.dirty)
	return versions
}

// wake puts an element into a channel of capacity 1, so that its reader runs once more
// after now.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits and reports whether ctx is still not done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// created is when an object was made.
func (it *item) created() time.Time { return timeOf(it.object.GetCreationTimestamp()) }

func timeOf(t metav1.Time) time.Time { return t.Time }

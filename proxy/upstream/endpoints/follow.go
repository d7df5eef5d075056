package endpoints

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

const (
	// listTimeout bounds one list of the EndpointSlices, which are a few kilobytes.
	listTimeout = 10 * time.Second

	// lingerTick is how exactly the time is kept that an address lingers.
	lingerTick = time.Second
)

// backoff is the pause after a failed list or watch, with as much again at random.
var backoff = wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 10 * time.Second}

// Run keeps the pool's servers those of the EndpointSlices until ctx is done.
func (s *Source) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.expire(ctx) })
	silent := klog.Logger{} // report tells what is wrong
	reflector := cache.NewReflectorWithOptions(s.listWatch(), &discoveryv1.EndpointSlice{}, s.store(), cache.ReflectorOptions{
		Name: "endpointslices", Logger: &silent, Backoff: &backoff,
	})
	reflector.RunWithContext(klog.NewContext(ctx, silent))
	wg.Wait()
	utilnet.CloseIdleConnectionsFor(s.http.Transport)
	return nil
}

// listWatch reads the service's EndpointSlices.
func (s *Source) listWatch() cache.ListerWatcher {
	selector := discoveryv1.LabelServiceName + "=" + s.cfg.Service
	return plainList{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			listCtx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			options.LabelSelector = selector
			list, err := s.api.List(listCtx, options)
			s.report(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			w, err := s.api.Watch(ctx, options)
			s.report(ctx, err)
			return w, err
		},
	}}
}

// plainList lists before it watches: also servers that are too old for a watch that
// begins with the list.
type plainList struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what the reflector asks.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }

// report logs why the EndpointSlices cannot be read, when that is new. The next attempt
// is made on a new connection, to another address if one is known.
func (s *Source) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the source ends
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if s.problem != "" {
			s.cfg.Log.Info("the EndpointSlices of the kube-apiservers can be read again")
		}
		s.problem = ""
		return
	}
	s.failures++
	utilnet.CloseIdleConnectionsFor(s.http.Transport)
	if s.problem != err.Error() {
		s.problem = err.Error()
		s.cfg.Log.Warn("cannot read the EndpointSlices of the kube-apiservers, those that are known stay", "error", err)
	}
}

// store is what the reflector writes to.
func (s *Source) store() store { return store{s} }

type store struct{ *Source }

func (s store) Add(o any) error    { return s.change(o, false) }
func (s store) Update(o any) error { return s.change(o, false) }
func (s store) Delete(o any) error { return s.change(o, true) }
func (s store) Resync() error      { return nil }

func (s store) Replace(all []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.slices)
	for _, o := range all {
		if es, ok := o.(*discoveryv1.EndpointSlice); ok {
			s.slices[es.Name] = read(es)
		}
	}
	s.apply()
	return nil
}

func (s store) change(o any, deleted bool) error {
	es, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		return fmt.Errorf("the watch of EndpointSlices sent a %T", o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if deleted {
		delete(s.slices, es.Name)
	} else {
		s.slices[es.Name] = read(es)
	}
	s.apply()
	return nil
}

// apply notes which addresses have come and gone. It is called with the lock held.
func (s *Source) apply() {
	here := map[string]bool{}
	for _, addrs := range s.slices {
		for _, addr := range addrs {
			here[addr] = true
		}
	}
	wasEmpty := s.empty
	if s.empty = len(here) == 0; s.empty {
		if !wasEmpty {
			s.cfg.Log.Warn("the EndpointSlices name no kube-apiserver, those that are known stay",
				"service", s.cfg.Namespace+"/"+s.cfg.Service, "known", len(s.servers))
		}
		return
	}
	now := time.Now()
	for addr, left := range s.servers {
		if !here[addr] && left.IsZero() {
			s.servers[addr] = now
			s.cfg.Log.Info("a kube-apiserver left the EndpointSlices", "upstream", addr, "linger", max(s.cfg.Linger, 0).String())
		}
	}
	for addr := range here {
		if _, known := s.servers[addr]; !known {
			s.told = false
		}
		s.servers[addr] = time.Time{}
	}
	s.tell(now)
}

// tell forgets who has lingered for long enough, and gives the pool its servers if
// those have changed. It is called with the lock held.
func (s *Source) tell(now time.Time) {
	for addr, left := range s.servers {
		if !left.IsZero() && now.Sub(left) >= s.cfg.Linger {
			delete(s.servers, addr)
			s.told = false
		}
	}
	if s.told {
		return
	}
	servers := make([]upstream.ServerConfig, 0, len(s.servers))
	for _, addr := range slices.Sorted(maps.Keys(s.servers)) {
		servers = append(servers, upstream.ServerConfig{Name: addr, URL: "https://" + addr})
	}
	if err := s.pool.SetServers(servers); err != nil {
		s.cfg.Log.Error("cannot use the kube-apiservers of the EndpointSlices, those that are known stay", "error", err)
	}
	s.told = true
}

// expire ends the time of those that linger.
func (s *Source) expire(ctx context.Context) {
	ticker := time.NewTicker(min(lingerTick, max(s.cfg.Linger/4, time.Millisecond)))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			s.tell(time.Now())
			s.mu.Unlock()
		}
	}
}

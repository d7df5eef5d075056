package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// informed are the kinds that informers follow, each by two of them.
var informed = []struct {
	kind schema.GroupVersionResource
	typ  runtime.Object // nil for a custom resource
}{
	{corev1.SchemeGroupVersion.WithResource("pods"), &corev1.Pod{}},
	{corev1.SchemeGroupVersion.WithResource("configmaps"), &corev1.ConfigMap{}},
	{corev1.SchemeGroupVersion.WithResource("secrets"), &corev1.Secret{}},
	{corev1.SchemeGroupVersion.WithResource("services"), &corev1.Service{}},
	{corev1.SchemeGroupVersion.WithResource("events"), &corev1.Event{}},
	{appsv1.SchemeGroupVersion.WithResource("deployments"), &appsv1.Deployment{}},
	{batchv1.SchemeGroupVersion.WithResource("jobs"), &batchv1.Job{}},
	{batchv1.SchemeGroupVersion.WithResource("cronjobs"), &batchv1.CronJob{}},
	{coordinationv1.SchemeGroupVersion.WithResource("leases"), &coordinationv1.Lease{}},
	{schema.GroupVersionResource{Group: "myapps.example.com", Version: "v1beta1", Resource: "customresources"}, nil},
}

// followed is an informer in the traffic.
type followed struct {
	*traffic
	client   string
	kind     schema.GroupVersionResource
	informer cache.SharedIndexInformer
	begun    atomic.Int64 // lists, and watches that begin with one
	watches  atomic.Int64 // that follow
}

// inform starts the informers: for each kind one in protobuf that lists and
// watches, and one in JSON that has its list streamed. Those of a custom resource
// are both in JSON. They must never list again.
func (l *traffic) inform() []*followed {
	l.t.Helper()
	var all []*followed
	for _, k := range informed {
		for _, streams := range []bool{false, true} {
			all = append(all, l.follow(k.kind, k.typ, streams))
		}
	}
	return all
}

func (l *traffic) follow(kind schema.GroupVersionResource, typ runtime.Object, streams bool) *followed {
	l.t.Helper()
	f := &followed{traffic: l, kind: kind, client: "informer-" + kind.Resource + "-list"}
	if streams {
		f.client = "informer-" + kind.Resource + "-stream"
	}
	lw := f.listWatch(typ, !streams)
	if typ == nil {
		typ = &unstructured.Unstructured{}
	}
	var source cache.ListerWatcher = lw
	if !streams {
		source = lists{lw}
	}
	f.informer = cache.NewSharedIndexInformer(source, typ, 0, nil)
	l.must(f.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		l.fail(f.client, "the informer says: %v", err)
	}))
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: f.updated})
	l.must(err)
	go f.informer.RunWithContext(l.ctx)
	if !cache.WaitForCacheSync(l.ctx.Done(), f.informer.HasSynced) {
		l.t.Fatalf("%s does not get its list", f.client)
	}
	l.check(f.compare)
	return f
}

// lists is a source for an informer that must not have its list streamed.
type lists struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks.
func (lists) IsWatchListSemanticsUnSupported() bool { return true }

// listWatch is the source of a kind: typed, or dynamic where there is no type.
func (f *followed) listWatch(typ runtime.Object, protobuf bool) *cache.ListWatch {
	config, h := f.config(f.t, f.client, protobuf && typ != nil)
	h.Transport = &beginnings{f, h.Transport}
	if typ == nil {
		client, err := dynamic.NewForConfigAndClient(config, h)
		f.must(err)
		resource := client.Resource(f.kind).Namespace(f.namespace())
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return resource.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return resource.Watch(ctx, o)
			},
		}
	}
	set, err := kubernetes.NewForConfigAndClient(config, h)
	f.must(err)
	clients := map[schema.GroupVersion]cache.Getter{
		corev1.SchemeGroupVersion:         set.CoreV1().RESTClient(),
		appsv1.SchemeGroupVersion:         set.AppsV1().RESTClient(),
		batchv1.SchemeGroupVersion:        set.BatchV1().RESTClient(),
		coordinationv1.SchemeGroupVersion: set.CoordinationV1().RESTClient(),
	}
	return cache.NewListWatchFromClient(clients[f.kind.GroupVersion()], f.kind.Resource, f.namespace(), fields.Everything())
}

// beginnings counts the requests of an informer that begin a new list.
type beginnings struct {
	f    *followed
	next http.RoundTripper
}

func (b *beginnings) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
		if n := b.f.begun.Add(1); n > 1 {
			b.f.fail(b.f.client, "it lists again: %s", req.URL.RequestURI())
		}
	} else {
		b.f.watches.Add(1)
	}
	return b.next.RoundTrip(req)
}

// updated sees each change of an object, in order. A counter counts by one.
func (f *followed) updated(before, after any) {
	a, b := before.(metav1.Object), after.(metav1.Object)
	if number(b.GetResourceVersion()) < number(a.GetResourceVersion()) {
		f.fail(f.client, "%s went back from resourceVersion %s to %s", b.GetName(), a.GetResourceVersion(), b.GetResourceVersion())
	}
	if !strings.HasPrefix(b.GetName(), counterPrefix) {
		return
	}
	from, to := number(a.GetAnnotations()[counterKey]), number(b.GetAnnotations()[counterKey])
	if to != from && to != from+1 {
		f.fail(f.client, "%s went from %d to %d: changes are missing or doubled", b.GetName(), from, to)
	}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // what is no number is 0, which is out of order
	return n
}

// compare compares what the informer holds with a list from a server.
func (f *followed) compare() {
	config, err := clientcmd.BuildConfigFromFlags("", f.lab.KubeconfigPath(controlplane.Admin, "a"))
	f.must(err)
	client, err := dynamic.NewForConfig(config)
	f.must(err)
	var difference string
	if _, ok := polled(patience, 100*time.Millisecond, func() bool {
		list, err := client.Resource(f.kind).Namespace(f.namespace()).List(f.t.Context(), metav1.ListOptions{})
		f.must(err)
		want := map[string]string{}
		for i := range list.Items {
			want[list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
		difference = differ(f.held(), want)
		return difference == ""
	}); !ok {
		f.fail(f.client, "it does not hold what the server has: %s", difference)
	}
}

// held are the resourceVersions of the objects in the informer, by name.
func (f *followed) held() map[string]string {
	held := map[string]string{}
	for _, o := range f.informer.GetStore().List() {
		object := o.(metav1.Object)
		held[object.GetName()] = object.GetResourceVersion()
	}
	return held
}

// differ says how what is held differs from what there is, or nothing.
func differ(held, want map[string]string) string {
	if maps.Equal(held, want) {
		return ""
	}
	var all []string
	for name, version := range want {
		if held[name] != version {
			all = append(all, fmt.Sprintf("%s is at %s, held at %q", name, version, held[name]))
		}
	}
	for name, version := range held {
		if want[name] == "" {
			all = append(all, fmt.Sprintf("%s is gone, held at %s", name, version))
		}
	}
	return strings.Join(all, "; ")
}

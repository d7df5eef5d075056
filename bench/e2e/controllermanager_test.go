package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

const (
	// goers are namespaces that are created and deleted, stayers those that are not.
	goers, stayers = 50, 3

	// goersAtOnce is how many are made and filled at the same time.
	goersAtOnce = 2

	// collected bounds the time until controllers have done something, on a busy
	// machine.
	collected = 4 * time.Minute
)

// TestControllerManager runs kube-controller-manager through MVP while three servers
// are upgraded. It must make and remove what it does in a cluster, and nothing else.
func TestControllerManager(t *testing.T) {
	l := startLabWith(t, controlplane.Config{Versions: []string{oldVersion, oldVersion, oldVersion}})
	files := l.Files()
	m := l.serveWith(t, nil, "--library", "all", "--client-ca-file", files.ClientCA,
		"--proxy-client-cert-file", files.FrontProxyCert, "--proxy-client-key-file", files.FrontProxyKey)
	l.checkSamples(t, "a")
	began, err := l.StartControllerManager(t.Context(), m.url)
	if err != nil {
		t.Fatal(err)
	}
	e := l.endpoint(t, "mvp", m.url)
	e.tally.enter(phase{name: "all " + oldVersion})
	r := &managed{t: t, lab: l, client: e.dynamic(t, "samples"), direct: l.endpoint(t, "direct", l.URL("a")).dynamic(t, "direct")}
	defer func() { // also of a test that gave up
		e.tally.report(t)
		m.noneFailed(t, e.tally)
		if t.Failed() {
			m.explain(t)
			r.explainManager(began.Log)
		}
	}()

	stay := r.stay()
	for i, s := range upgradeSteps {
		e.tally.enter(phase{stepName(s.server, s.version, s.kill), s.kill})
		share := r.start(goers*i/len(upgradeSteps), goers*(i+1)/len(upgradeSteps))
		replace(t, l, s.server, s.version, s.kill)
		m.ready()
		pause(t, settle)
		share.Wait()
	}
	e.tally.enter(phase{name: "end"})
	r.gone()
	r.same(stay)
	r.leader(began)
}

// start has the namespaces of that range come and go.
func (r *managed) start(from, to int) *sync.WaitGroup {
	next := make(chan int, to-from)
	for i := from; i < to; i++ {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for range goersAtOnce {
		all.Go(func() {
			for i := range next {
				r.comeAndGo(fmt.Sprintf("goer-%d", i))
			}
		})
	}
	return &all
}

// managed is a cluster with a kube-controller-manager.
type managed struct {
	t              *testing.T
	lab            *lab
	client, direct dynamic.Interface // through MVP, and from a server
}

var (
	namespaceKind = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	accountKind   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	configMapKind = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	cronJobKind   = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	podKind       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	leaseKind     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// until waits for what a controller does.
func (r *managed) until(what string, done func(ctx context.Context) (bool, error)) {
	ctx, cancel := context.WithTimeout(r.t.Context(), collected)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		ok, err := done(ctx)
		if ok {
			return
		}
		last = err
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	r.t.Errorf("not within %v: %s (%v)", collected, what, last)
}

// fill creates a namespace with an object of every kind, and dependents.
func (r *managed) fill(ctx context.Context, name string) error {
	if err := create(ctx, r.client.Resource(namespaceKind), object("v1", "Namespace", name, nil)); err != nil {
		return err
	}
	r.until("namespace "+name+" has a service account", func(ctx context.Context) (bool, error) {
		_, err := r.client.Resource(accountKind).Namespace(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	if err := createSamples(ctx, r.t, r.client, name); err != nil {
		return err
	}
	return r.depend(ctx, name)
}

// depend creates objects that depend on a cron job, one by a version of it that no
// server has any more.
func (r *managed) depend(ctx context.Context, namespace string) error {
	owner, err := r.client.Resource(cronJobKind).Namespace(namespace).Get(ctx, sampleName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for name, version := range dependents {
		o := object("v1", "ConfigMap", name, nil)
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: version, Kind: "CronJob", Name: sampleName, UID: owner.GetUID()}})
		if err := create(ctx, r.client.Resource(configMapKind).Namespace(namespace), o); err != nil {
			return err
		}
	}
	return nil
}

// dependents are configmaps, by the version of their owner that they name.
var dependents = map[string]string{"dependent": "batch/v1", "dependent-of-old": "batch/v1beta1"}

// comeAndGo makes a namespace, has an owner in it go before its dependents, and
// deletes the namespace.
func (r *managed) comeAndGo(name string) {
	ctx := r.t.Context()
	if err := r.fill(ctx, name); err != nil {
		r.t.Error(err)
		return
	}
	r.until("deployment, job and set in "+name+" have pods", func(ctx context.Context) (bool, error) {
		return r.havePods(ctx, name, "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
	})
	if err := remove(ctx, r.client.Resource(cronJobKind).Namespace(name), sampleName); err != nil {
		r.t.Error(err)
	}
	for dependent := range dependents {
		r.until(dependent+" in "+name+" is collected", func(ctx context.Context) (bool, error) {
			_, err := r.client.Resource(configMapKind).Namespace(name).Get(ctx, dependent, metav1.GetOptions{})
			return apierrors.IsNotFound(err), err
		})
	}
	if err := remove(ctx, r.client.Resource(namespaceKind), name); err != nil {
		r.t.Error(err)
	}
}

// create creates an object, by another try if a server was killed with the first.
func create(ctx context.Context, resource dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	_, err := resource.Create(ctx, o, metav1.CreateOptions{})
	if err == nil || !mayHaveBeenExecuted(err.Error()) {
		return err
	}
	if _, err = resource.Create(ctx, o, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// remove deletes an object, and what depends on it afterwards, in the same way.
func remove(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	err := resource.Delete(ctx, name, options)
	if err == nil || !mayHaveBeenExecuted(err.Error()) {
		return err
	}
	if err = resource.Delete(ctx, name, options); apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or going
		return nil
	}
	return err
}

// havePods reports whether an object of each kind owns a pod.
func (r *managed) havePods(ctx context.Context, namespace string, kinds ...string) (bool, error) {
	list, err := r.client.Resource(podKind).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	owners := map[string]bool{}
	for i := range list.Items {
		for _, ref := range list.Items[i].GetOwnerReferences() {
			owners[ref.Kind] = true
		}
	}
	for _, kind := range kinds {
		if !owners[kind] {
			return false, fmt.Errorf("no pod of a %s, only of %v", kind, slices.Sorted(maps.Keys(owners)))
		}
	}
	return true, nil
}

// stay fills the namespaces that stay, and returns the uids of all that is in them
// once controllers have added what they add.
func (r *managed) stay() map[types.UID]string {
	for i := range stayers {
		name := fmt.Sprintf("stayer-%d", i)
		if err := r.fill(r.t.Context(), name); err != nil {
			r.t.Fatal(err)
		}
		r.until("all in "+name+" have pods", func(ctx context.Context) (bool, error) {
			return r.havePods(ctx, name, "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
		})
	}
	return r.uids()
}

// uids are those of all objects in the namespaces that stay, with what they are.
func (r *managed) uids() map[types.UID]string {
	all := map[types.UID]string{}
	for i := range stayers {
		name := fmt.Sprintf("stayer-%d", i)
		for _, s := range samples {
			list, err := r.direct.Resource(s.gvr(r.t)).Namespace(name).List(r.t.Context(), metav1.ListOptions{})
			if err != nil {
				r.t.Fatal(err)
			}
			for i := range list.Items {
				all[list.Items[i].GetUID()] = name + " " + s.resource + " " + list.Items[i].GetName()
			}
		}
	}
	return all
}

// same sees to it that nothing of before is missing.
func (r *managed) same(before map[types.UID]string) {
	after := r.uids()
	for uid, what := range before {
		if after[uid] == "" {
			r.t.Errorf("%s was deleted", what)
		}
	}
	r.t.Logf("%d objects stayed", len(before))
}

// gone waits until the namespaces that go are gone, and sees to it that etcd has
// nothing of them.
func (r *managed) gone() {
	r.until("the namespaces are gone", func(ctx context.Context) (bool, error) {
		list, err := r.direct.Resource(namespaceKind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		var left []error
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].GetName(), "goer-") {
				left = append(left, errors.New(conditions(&list.Items[i])))
			}
		}
		return len(left) == 0, errors.Join(left...)
	})
	keys, err := r.lab.Keys(r.t.Context(), "/registry/")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, key := range keys {
		if strings.Contains(key, "/goer-") {
			r.t.Errorf("etcd still has %s", key)
		}
	}
	r.t.Logf("etcd has %d keys, none of the namespaces that went", len(keys))
}

// conditions say what keeps a namespace.
func conditions(o *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // absent at first
	return fmt.Sprint(o.GetName(), " ", list)
}

// leader sees to it that the kube-controller-manager has led from beginning to end.
func (r *managed) leader(began controlplane.Server) {
	now, err := r.lab.ControllerManager()
	if err != nil {
		r.t.Fatal(err)
	}
	if now.PID != began.PID {
		r.t.Errorf("kube-controller-manager was process %d and is %d", began.PID, now.PID)
	}
	lease, err := r.direct.Resource(leaseKind).Namespace("kube-system").Get(r.t.Context(), "kube-controller-manager", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseTransitions"); n != 0 {
		r.t.Errorf("its lease has seen %d transitions", n)
	}
}

// explainManager prints the end of its log.
func (r *managed) explainManager(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		r.t.Error(err)
		return
	}
	r.t.Logf("the log of kube-controller-manager ends:\n%s", tail(string(text), 8<<10))
}

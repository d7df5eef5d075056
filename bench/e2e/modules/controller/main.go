// Command controller is a small operator, built with controller-runtime's
// manager, cache and client, that the end-to-end tests run through MVP and
// direct. It drives itself: it makes objects, reconciles them, and prints what
// came of it. It is no example of how to write an operator.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace = "default"

	// count is how many objects of each kind are made.
	count = 10

	// timeout bounds the whole run.
	timeout = 2 * time.Minute
)

func main() {
	version := flag.String("version", "v1beta1", "of the custom resources")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := run(ctx, *version); err != nil {
		fmt.Fprintf(os.Stderr, "controller: %v\n", err)
		os.Exit(1)
	}
}

// run connects to where the flag --kubeconfig says, which controller-runtime
// defines.
func run(ctx context.Context, version string) error {
	log.SetLogger(logr.Discard())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection:          true,
		LeaderElectionID:        "e2e-controller",
		LeaderElectionNamespace: namespace,
		// The next run need not wait for the lease to end.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	o := &operator{Client: mgr.GetClient(), version: version}
	if err := o.setUp(mgr); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	err = o.scenario(ctx, mgr.GetAPIReader())
	stop()
	return errors.Join(err, <-ended)
}

// An operator makes of each ConfigMap "source-N" one "copy-N", which it owns, and
// labels each CustomResource with what it says.
type operator struct {
	client.Client // reads from the cache
	version       string
}

func (o *operator) custom(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("myapps.example.com/" + o.version)
	u.SetKind("CustomResource")
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// timeoutField is where a CustomResource of the version says its timeout.
func (o *operator) timeoutField() []string {
	if o.version == "v1alpha1" {
		return []string{"spec", "config", "legacyTimeout"}
	}
	return []string{"spec", "config", "requestTimeoutSeconds"}
}

func (o *operator) setUp(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.ConfigMap{}).Named("copier").
		Complete(reconcileFunc(o.copySource))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(o.custom("")).Named("labeller").Complete(reconcileFunc(o.label))
}

type reconcileFunc func(context.Context, client.ObjectKey) error

func (f reconcileFunc) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, client.IgnoreNotFound(f(ctx, req.NamespacedName))
}

func (o *operator) copySource(ctx context.Context, key client.ObjectKey) error {
	number, ok := strings.CutPrefix(key.Name, "source-")
	if !ok {
		return nil
	}
	source := &corev1.ConfigMap{}
	if err := o.Get(ctx, key, source); err != nil {
		return err
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "copy-" + number}}
	_, err := controllerutil.CreateOrUpdate(ctx, o.Client, child, func() error {
		child.Data = source.Data
		return controllerutil.SetControllerReference(source, child, o.Scheme())
	})
	return err
}

func (o *operator) label(ctx context.Context, key client.ObjectKey) error {
	object := o.custom("")
	if err := o.Get(ctx, key, object); err != nil {
		return err
	}
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, o.timeoutField()...)
	if err != nil || object.GetLabels()["timeout"] == fmt.Sprint(value) {
		return err
	}
	changed := object.DeepCopy()
	changed.SetLabels(map[string]string{"timeout": fmt.Sprint(value)})
	return o.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
}

// scenario makes and changes objects, waits for what the operator makes of them,
// and prints it as the server has it.
func (o *operator) scenario(ctx context.Context, live client.Reader) error {
	for i := range count {
		source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("source-", i)}, Data: map[string]string{"n": fmt.Sprint(i)}}
		object := o.custom(fmt.Sprint("custom-", i))
		if err := unstructured.SetNestedField(object.Object, o.timeoutValue(i), o.timeoutField()...); err != nil {
			return err
		}
		if err := errors.Join(o.Create(ctx, source), o.Create(ctx, object)); err != nil {
			return err
		}
	}
	if err := o.settle(ctx, live, "created", func(i int) int { return i }); err != nil {
		return err
	}
	for i := range count {
		source := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprint("source-", i)}
		if err := live.Get(ctx, key, source); err != nil {
			return err
		}
		source.Data["n"] = fmt.Sprint(100 + i)
		object := o.custom(fmt.Sprint("custom-", i))
		if err := unstructured.SetNestedField(object.Object, o.timeoutValue(100+i), o.timeoutField()...); err != nil {
			return err
		}
		err := errors.Join(o.Update(ctx, source), o.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("e2e"), client.ForceOwnership))
		if err != nil {
			return err
		}
	}
	if err := o.settle(ctx, live, "changed", func(i int) int { return 100 + i }); err != nil {
		return err
	}
	for _, object := range []client.Object{&corev1.ConfigMap{}, o.custom("")} {
		if err := o.DeleteAllOf(ctx, object, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	return nil
}

func (o *operator) timeoutValue(n int) any {
	if o.version == "v1alpha1" {
		return fmt.Sprint(n)
	}
	return int64(n)
}

// settle waits until all copies and labels say what value gives, in the cache and
// on the server, and prints them.
func (o *operator) settle(ctx context.Context, live client.Reader, what string, value func(i int) int) error {
	var want []string
	for i := range count {
		want = append(want, fmt.Sprintf("copy-%d of source-%d says %d", i, i, value(i)), fmt.Sprintf("custom-%d says %d", i, value(i)))
	}
	slices.Sort(want)
	var got []string
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, reader := range []client.Reader{o.Client, live} {
			var err error
			if got, err = o.state(ctx, reader); err != nil || !slices.Equal(got, want) {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w; it is\n%s", what, err, strings.Join(got, "\n"))
	}
	fmt.Printf("%s\n%s\n", what, strings.Join(got, "\n"))
	return nil
}

func (o *operator) state(ctx context.Context, reader client.Reader) ([]string, error) {
	copies, customs := &corev1.ConfigMapList{}, &unstructured.UnstructuredList{}
	customs.SetAPIVersion("myapps.example.com/" + o.version)
	customs.SetKind("CustomResourceList")
	if err := errors.Join(reader.List(ctx, copies, client.InNamespace(namespace)), reader.List(ctx, customs, client.InNamespace(namespace))); err != nil {
		return nil, err
	}
	var state []string
	for _, c := range copies.Items {
		if owner := metav1.GetControllerOf(&c); owner != nil {
			state = append(state, fmt.Sprintf("%s of %s says %s", c.Name, owner.Name, c.Data["n"]))
		}
	}
	for _, c := range customs.Items {
		state = append(state, fmt.Sprintf("%s says %s", c.GetName(), c.GetLabels()["timeout"]))
	}
	slices.Sort(state)
	return state, nil
}

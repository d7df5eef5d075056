// Command widgets is a small operator with typed structs of a version of a custom
// resource that no server has any more, built with controller-runtime's manager, cache
// and client. The end-to-end tests run it through MVP, which converts. It prints what it
// has done, a line for each, answers the lines of its standard input, and ends with it.
// It is no example of how to write an operator.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	namespace := flag.String("namespace", "default", "to work in")
	patch := flag.Bool("patch", false, "write patches, not whole objects")
	flag.Parse()
	if err := run(context.Background(), *namespace, *patch); err != nil {
		fmt.Fprintf(os.Stderr, "widgets: %v\n", err)
		os.Exit(1)
	}
}

// run connects to where the flag --kubeconfig says, which controller-runtime
// defines.
func run(ctx context.Context, namespace string, patch bool) error {
	log.SetLogger(logr.Discard())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	o := &operator{Client: mgr.GetClient(), namespace: namespace, patch: patch, told: map[string]string{}}
	if err := o.setUp(ctx, mgr); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	err = o.answer(ctx, os.Stdin)
	stop()
	return errors.Join(err, <-ended)
}

// tierField is the name of the cache's index of widgets by tier.
const tierField = "spec.tier"

func (o *operator) setUp(ctx context.Context, mgr ctrl.Manager) error {
	tierOf := func(object client.Object) []string { return []string{object.(*Widget).Spec.Tier} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &Widget{}, tierField, tierOf); err != nil {
		return err
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &Widget{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: o.deleted}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).Named("widgets").Complete(o)
}

// deleted tells of a widget that is gone from the cache, and whether that was found out
// by a list.
func (o *operator) deleted(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		o.say("missed the end of %s", unknown.Obj.(*Widget).Name)
		return
	}
	o.say("saw the end of %s", object.(*Widget).Name)
}

// answer tells for each line, a tier, the names of the widgets of the tier in the cache.
func (o *operator) answer(ctx context.Context, input io.Reader) error {
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		var list WidgetList
		if err := o.List(ctx, &list, client.InNamespace(o.namespace), client.MatchingFields{tierField: lines.Text()}); err != nil {
			return err
		}
		var names []string
		for _, w := range list.Items {
			names = append(names, w.Name)
		}
		slices.Sort(names)
		o.say("%s are: %s", lines.Text(), strings.Join(names, " "))
	}
	return lines.Err()
}

// say prints a line. Lines come from several goroutines.
func (o *operator) say(format string, args ...any) {
	o.printing.Lock()
	defer o.printing.Unlock()
	fmt.Printf(format+"\n", args...)
}

// operator makes a ConfigMap of each widget, which the widget owns, and writes to the
// widget in all the ways that operators have.
type operator struct {
	client.Client // reads from the cache
	namespace     string
	patch         bool // writes patches

	printing sync.Mutex
	told     map[string]string // by the name of a widget: what was last said of it
}

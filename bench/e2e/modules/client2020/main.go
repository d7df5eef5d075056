// Command client2020 is a controller of the year 2020: typed clients and informers of
// client-go 0.20 on versions that Kubernetes has removed since. The end-to-end tests run
// it through MVP. It drives itself: it makes objects, reconciles them, takes them away,
// and prints what came of it. It is no example of how to write a controller.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// count is how many objects of each kind are made.
	count = 10

	// timeout bounds the whole run.
	timeout = 90 * time.Second
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the server")
	namespace := flag.String("namespace", "default", "of the objects")
	form := flag.String("form", "application/json", "media type of what is sent and asked for")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := run(ctx, *kubeconfig, *namespace, *form); err != nil {
		fmt.Fprintf(os.Stderr, "client2020: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace, form string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst, config.WarningHandler = 1000, 1000, rest.NoWarnings{}
	config.ContentType, config.AcceptContentTypes = form, form
	requests := &requests{lists: map[string]int{}, forms: map[string]bool{}}
	config.Wrap(requests.count)
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithNamespace(namespace))
	if err := served(set); err != nil {
		return err
	}
	var controllers []*controller
	for _, k := range kinds(set, factory, namespace) {
		controllers = append(controllers, newController(k))
	}
	factory.Start(ctx.Done())
	for _, c := range controllers {
		if !cache.WaitForCacheSync(ctx.Done(), c.kind.informer.HasSynced) {
			return fmt.Errorf("the informer of %s has not synced: %w", c.kind.resource, ctx.Err())
		}
		go c.work(ctx)
	}
	for _, c := range controllers {
		if err := c.scenario(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.kind.resource, err)
		}
		fmt.Printf("%s: %s, %d list\n", c.kind.resource, c.report(), requests.of(c.kind.resource))
	}
	fmt.Printf("answers came as %s\n", requests.answers())
	return nil
}

// served finds out whether the server has the versions at all.
func served(set kubernetes.Interface) error {
	for _, version := range []string{"policy/v1beta1", "batch/v1beta1", "autoscaling/v2beta2"} {
		if _, err := set.Discovery().ServerResourcesForGroupVersion(version); err != nil {
			return fmt.Errorf("%s: %w", version, err)
		}
	}
	return nil
}

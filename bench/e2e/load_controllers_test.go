package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// elect runs two candidates for one lease, with Kubernetes' usual times. The one that
// leads must lead to the end.
func (l *traffic) elect() {
	const candidates = 2
	ctx, cancel := context.WithCancel(l.ctx)
	led := make(chan struct{}, candidates)
	var set *kubernetes.Clientset
	for i := range candidates {
		client := fmt.Sprint("candidate-", i)
		config, h := l.config(l.t, client, true)
		var err error
		set, err = kubernetes.NewForConfigAndClient(config, h)
		l.must(err)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: l.namespace(), Name: "leader"},
				Client:     set.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: client},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led <- struct{}{} },
				OnStoppedLeading: func() {
					if !l.stopped() {
						l.fail(client, "it leads no more")
					}
				},
			},
		})
		l.must(err)
		l.done.Go(func() { elector.Run(ctx) })
	}
	<-led
	l.done.Go(func() {
		defer cancel()
		select {
		case <-l.stopping:
		case <-ctx.Done():
		}
	})
	l.check(func() {
		lease, err := set.CoordinationV1().Leases(l.namespace()).Get(l.ctx, "leader", metav1.GetOptions{})
		l.must(err)
		if n := lease.Spec.LeaseTransitions; n == nil || *n != 0 || len(led) > 0 {
			l.fail("candidates", "the lease has seen %v transitions and %d more leaders", n, len(led))
		}
	})
}

const (
	paged    = 50 // objects
	pageSize = 5

	pagesPause = time.Second
	// pagePause is between two pages, so that a list is under way whenever a server ends.
	pagePause = 50 * time.Millisecond
)

// page lists objects page by page; each list must have all of them.
func (l *traffic) page() {
	const client = "pages"
	resource := l.dynamic(l.t, client).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(l.namespace())
	for i := range paged {
		o := object("v1", "ConfigMap", fmt.Sprint("page-", i), nil)
		o.SetLabels(map[string]string{"paged": "yes"})
		_, err := resource.Create(l.ctx, o, metav1.CreateOptions{})
		l.must(err)
	}
	l.every(pagesPause, func(int) {
		seen := map[string]bool{}
		options := metav1.ListOptions{Limit: pageSize, LabelSelector: "paged=yes"}
		for {
			list, err := resource.List(l.ctx, options)
			if err != nil {
				if !failedOnTheWay(err) {
					l.fail(client, "a page after %d objects: %v", len(seen), err)
				}
				return
			}
			for i := range list.Items {
				seen[list.Items[i].GetName()] = true
			}
			if options.Continue = list.GetContinue(); options.Continue == "" {
				break
			}
			time.Sleep(pagePause) // the pace of the load, nothing waits for it
		}
		if len(seen) != paged {
			l.fail(client, "a list had %d objects of %d", len(seen), paged)
		}
	})
}

const flowPause = time.Second

// flow runs a client of flowcontrol v1beta3, which 1.31 serves and 1.32 does not.
func (l *traffic) flow() {
	const client = "flowcontrol v1beta3"
	kind := schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas"}
	resource := l.dynamic(l.t, client).Resource(kind)
	name := "load-" + l.name
	_, err := resource.Create(l.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": "FlowSchema",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"priorityLevelConfiguration": map[string]any{"name": "global-default"}, "matchingPrecedence": int64(9000)},
	}}, metav1.CreateOptions{})
	l.must(err)
	said := func(what string, err error) bool {
		if err != nil && !failedOnTheWay(err) {
			l.fail(client, "%s: %v", what, err)
		}
		return err == nil
	}
	l.every(flowPause, func(n int) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"turn":"%d"}}}`, n)
		o, err := resource.Patch(l.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if said("patch", err) && o.GetAPIVersion() != kind.GroupVersion().String() {
			l.fail(client, "a patch was answered with an object of %s", o.GetAPIVersion())
		}
		o, err = resource.Get(l.ctx, name, metav1.GetOptions{})
		if said("get", err) && o.GetAPIVersion() != kind.GroupVersion().String() {
			l.fail(client, "a get was answered with an object of %s", o.GetAPIVersion())
		}
		list, err := resource.List(l.ctx, metav1.ListOptions{})
		if said("list", err) && (len(list.Items) == 0 || !strings.HasSuffix(list.GetAPIVersion(), kind.Version)) {
			l.fail(client, "a list was answered with %d objects of %s", len(list.Items), list.GetAPIVersion())
		}
	})
}

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	counterPrefix = "counter-"
	counterKey    = "example.com/count"

	// counters are how many objects the counting controller has.
	counters = 5

	countPause = 200 * time.Millisecond
	churnPause = time.Second
)

// object makes an object of a kind with a body of its own.
func object(apiVersion, kind, name string, body map[string]any) *unstructured.Unstructured {
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range body {
		o[key] = value
	}
	return &unstructured.Unstructured{Object: o}
}

// count runs a controller that is the only one to write some objects: it reads one,
// counts it up and writes it under the resourceVersion that it read. So a conflict, or
// a number that it did not write, says that a write of it was executed twice or lost.
func (l *traffic) count() {
	const client = "counting controller"
	resource := l.dynamic(l.t, client).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(l.namespace())
	for i := range counters {
		c := &counted{traffic: l, client: client, resource: resource, name: fmt.Sprint(counterPrefix, i)}
		o := object("v1", "ConfigMap", c.name, nil)
		o.SetAnnotations(map[string]string{counterKey: "0"})
		_, err := resource.Create(l.ctx, o, metav1.CreateOptions{})
		l.must(err)
		l.every(countPause, c.up)
		l.check(c.compare)
	}
}

type counted struct {
	*traffic
	client, name string
	resource     dynamic.ResourceInterface
	believed     int64
	unsure       bool // the last write may or may not have been executed
}

func (c *counted) up(int) {
	o, err := c.resource.Get(c.ctx, c.name, metav1.GetOptions{})
	if err != nil {
		c.refused("read", err)
		return
	}
	c.believe(number(o.GetAnnotations()[counterKey]))
	o.SetAnnotations(map[string]string{counterKey: fmt.Sprint(c.believed + 1)})
	_, err = c.resource.Update(c.ctx, o, metav1.UpdateOptions{})
	switch {
	case err == nil:
		c.believed++
	case failedOnTheWay(err):
		c.unsure = true
	default:
		c.fail(c.client, "%s cannot be counted from %d, though nobody else writes it: %v", c.name, c.believed, err)
	}
}

// believe compares the number with what the controller has written.
func (c *counted) believe(n int64) {
	if c.unsure && n == c.believed+1 {
		c.believed = n
	}
	c.unsure = false
	if n != c.believed {
		c.fail(c.client, "%s is at %d, the controller has counted to %d", c.name, n, c.believed)
		c.believed = n
	}
}

// refused notes an answer that the transport has not counted as a failure.
func (c *counted) refused(what string, err error) {
	if !failedOnTheWay(err) {
		c.fail(c.client, "%s cannot be %s: %v", c.name, what, err)
	}
}

func (c *counted) compare() {
	o, err := c.resource.Get(c.ctx, c.name, metav1.GetOptions{})
	if err != nil {
		c.refused("read", err)
		return
	}
	c.believe(number(o.GetAnnotations()[counterKey]))
	c.t.Logf("%s: %s was counted to %d", c.endpoint.name, c.name, c.believed)
}

// failedOnTheWay is of an error that the counter of requests has noted already: no
// answer, or one of a server in trouble.
func failedOnTheWay(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}

// churned are bodies of the kinds that come, change and go.
var churned = []struct {
	resource, apiVersion, kind string
	body                       map[string]any
}{
	{"pods", "v1", "Pod", map[string]any{"spec": podSpec}},
	{"configmaps", "v1", "ConfigMap", nil},
	{"secrets", "v1", "Secret", nil},
	{"services", "v1", "Service", map[string]any{"spec": map[string]any{"clusterIP": "None", "ports": []any{map[string]any{"port": int64(80)}}}}},
	{"events", "v1", "Event", map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "x", "namespace": "INVOLVED"}, "reason": "Tested"}},
	{"deployments", "apps/v1", "Deployment", map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": shopSelector, "template": podTemplate}}},
	{"jobs", "batch/v1", "Job", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": podSpec}}}},
	{"cronjobs", "batch/v1", "CronJob", map[string]any{"spec": map[string]any{"schedule": "0 3 * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": podSpec}}}}}},
	{"leases", "coordination.k8s.io/v1", "Lease", map[string]any{"spec": map[string]any{"holderIdentity": "x"}}},
	{"customresources", "myapps.example.com/v1beta1", "CustomResource", map[string]any{"spec": map[string]any{"stateManagement": "stateless"}}},
}

var (
	shopSelector = map[string]any{"matchLabels": map[string]any{"app": "shop"}}
	podSpec      = map[string]any{
		"restartPolicy": "Never", "automountServiceAccountToken": false,
		"containers": []any{map[string]any{"name": "main", "image": "busybox"}},
	}
	podTemplate = map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "shop"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "busybox"}}},
	}
)

// churn creates, changes and deletes objects of all the kinds.
func (l *traffic) churn() {
	client := l.dynamic(l.t, "churn")
	for _, k := range churned {
		gv, err := schema.ParseGroupVersion(k.apiVersion)
		l.must(err)
		c := &churn{
			traffic:  l,
			resource: client.Resource(gv.WithResource(k.resource)).Namespace(l.namespace()),
			make: func(name string) *unstructured.Unstructured {
				o := object(k.apiVersion, k.kind, name, k.body).DeepCopy()
				if k.kind == "Event" {
					_ = unstructured.SetNestedField(o.Object, l.namespace(), "involvedObject", "namespace")
				}
				return o
			},
			what: k.resource,
		}
		l.every(churnPause, c.step)
	}
}

type churn struct {
	*traffic
	what     string
	resource dynamic.ResourceInterface
	make     func(name string) *unstructured.Unstructured
}

// step does one write: each object is created, changed and deleted, in three turns.
func (c *churn) step(n int) {
	name := fmt.Sprint("churn-", n/3)
	var err error
	switch n % 3 {
	case 0:
		_, err = c.resource.Create(c.ctx, c.make(name), metav1.CreateOptions{})
	case 1:
		_, err = c.resource.Patch(c.ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"turn":"1"}}}`), metav1.PatchOptions{})
	default:
		err = c.resource.Delete(c.ctx, name, metav1.DeleteOptions{})
	}
	if err == nil {
		return
	}
	if !failedOnTheWay(err) {
		c.fail("churn", "%s %s, turn %d: %v", c.what, name, n%3, err)
		return
	}
	c.again(n, name)
}

// again makes sure that the turn is done, whether the failed write was executed or
// not, so that the next turn finds what it expects.
func (c *churn) again(n int, name string) {
	for !c.stopped() {
		_, err := c.resource.Get(c.ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && n%3 == 2:
			err = c.resource.Delete(c.ctx, name, metav1.DeleteOptions{})
		case apierrors.IsNotFound(err) && n%3 == 0:
			_, err = c.resource.Create(c.ctx, c.make(name), metav1.CreateOptions{})
		case apierrors.IsNotFound(err) && n%3 == 2:
			err = nil
		}
		if err == nil {
			return
		}
		c.sleep(churnPause)
	}
}

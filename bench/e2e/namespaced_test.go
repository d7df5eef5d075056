package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// A sample is an object of a kind that can be created as it is in any namespace in
// which the samples before it are.
type sample struct {
	resource, apiVersion, kind string
	body                       map[string]any
}

const sampleName = "sample"

// quiet is a schedule on which next to nothing is run.
const quiet = "0 0 29 2 *"

// samples have every kind that lives in a namespace and can be listed. The quota and
// the limits come last, so that they are in nothing's way.
var samples = []sample{
	{"configmaps", "v1", "ConfigMap", map[string]any{"data": map[string]any{"x": "y"}}},
	{"secrets", "v1", "Secret", nil},
	{"serviceaccounts", "v1", "ServiceAccount", nil},
	{"services", "v1", "Service", map[string]any{"spec": map[string]any{"clusterIP": "None", "ports": []any{map[string]any{"port": int64(80)}}}}},
	{"endpoints", "v1", "Endpoints", nil}, // of the service
	{"events", "v1", "Event", map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "x"}, "reason": "Tested"}},
	{"persistentvolumeclaims", "v1", "PersistentVolumeClaim", map[string]any{"spec": map[string]any{
		"storageClassName": "", "accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}}},
	{"pods", "v1", "Pod", map[string]any{"spec": podSpec}},
	{"podtemplates", "v1", "PodTemplate", map[string]any{"template": podTemplate}},
	{"replicationcontrollers", "v1", "ReplicationController", map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"app": "shop"}, "template": podTemplate}}},
	{"controllerrevisions", "apps/v1", "ControllerRevision", map[string]any{"revision": int64(1), "data": map[string]any{}}},
	{"daemonsets", "apps/v1", "DaemonSet", map[string]any{"spec": map[string]any{"selector": shopSelector, "template": podTemplate}}},
	{"deployments", "apps/v1", "Deployment", map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": shopSelector, "template": podTemplate}}},
	{"replicasets", "apps/v1", "ReplicaSet", map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": shopSelector, "template": podTemplate}}},
	{"statefulsets", "apps/v1", "StatefulSet", map[string]any{"spec": map[string]any{"serviceName": sampleName, "replicas": int64(1), "selector": shopSelector, "template": podTemplate}}},
	{"horizontalpodautoscalers", "autoscaling/v2", "HorizontalPodAutoscaler", map[string]any{"spec": map[string]any{
		"maxReplicas": int64(2), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
	}}},
	{"cronjobs", "batch/v1", "CronJob", map[string]any{"spec": map[string]any{"schedule": quiet, "jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": podSpec}}}}}},
	{"jobs", "batch/v1", "Job", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": podSpec}}}},
	{"leases", "coordination.k8s.io/v1", "Lease", map[string]any{"spec": map[string]any{"holderIdentity": "x"}}},
	{"endpointslices", "discovery.k8s.io/v1", "EndpointSlice", map[string]any{"addressType": "IPv4", "endpoints": []any{}}},
	{"ingresses", "networking.k8s.io/v1", "Ingress", map[string]any{"spec": map[string]any{"defaultBackend": map[string]any{"service": map[string]any{"name": sampleName, "port": map[string]any{"number": int64(80)}}}}}},
	{"networkpolicies", "networking.k8s.io/v1", "NetworkPolicy", map[string]any{"spec": map[string]any{"podSelector": map[string]any{}}}},
	{"poddisruptionbudgets", "policy/v1", "PodDisruptionBudget", map[string]any{"spec": map[string]any{"minAvailable": int64(1), "selector": shopSelector}}},
	{"roles", "rbac.authorization.k8s.io/v1", "Role", map[string]any{"rules": []any{}}},
	{"rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding", map[string]any{"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": sampleName}}},
	{"csistoragecapacities", "storage.k8s.io/v1", "CSIStorageCapacity", map[string]any{"storageClassName": "none"}},
	{"customresources", "myapps.example.com/v1beta1", "CustomResource", map[string]any{"spec": map[string]any{"stateManagement": "stateless"}}},
	{"resourcequotas", "v1", "ResourceQuota", map[string]any{"spec": map[string]any{"hard": map[string]any{"count/widgets.example.com": "1"}}}},
	{"limitranges", "v1", "LimitRange", map[string]any{"spec": map[string]any{"limits": []any{map[string]any{"type": "PersistentVolumeClaim", "max": map[string]any{"storage": "1Ti"}}}}}},
}

// sameAs are resources that are another one in the same place of etcd.
var sameAs = map[string]string{"events.events.k8s.io": "events"}

func (s sample) gvr(t *testing.T) schema.GroupVersionResource {
	t.Helper()
	gv, err := schema.ParseGroupVersion(s.apiVersion)
	if err != nil {
		t.Fatal(err)
	}
	return gv.WithResource(s.resource)
}

// in makes the object for a namespace.
func (s sample) in(namespace string) *unstructured.Unstructured {
	o := object(s.apiVersion, s.kind, sampleName, s.body).DeepCopy()
	if s.kind == "Event" {
		_ = unstructured.SetNestedField(o.Object, namespace, "involvedObject", "namespace") // it is an object
	}
	return o
}

// createSamples creates an object of every kind.
func createSamples(ctx context.Context, t *testing.T, client dynamic.Interface, namespace string) error {
	for _, s := range samples {
		if err := create(ctx, client.Resource(s.gvr(t)).Namespace(namespace), s.in(namespace)); err != nil {
			return fmt.Errorf("cannot create %s in %s: %w", s.resource, namespace, err)
		}
	}
	return nil
}

// checkSamples sees to it that the samples have every kind that a server has.
func (l *lab) checkSamples(t *testing.T, server string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.KubeconfigPath(controlplane.Admin, server))
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := client.ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			name := gv.WithResource(r.Name).GroupResource().String()
			if !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") || sameAs[name] != "" {
				continue
			}
			if !slices.ContainsFunc(samples, func(s sample) bool { return s.gvr(t).GroupResource().String() == name }) {
				t.Errorf("there is no sample of %s", name)
			}
		}
	}
}

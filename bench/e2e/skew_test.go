package e2e

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// skewWrites is how many writes the field must survive.
const skewWrites = 1000

// newerField is one that 1.32 knows and 1.31 drops: the resources of a pod as a whole.
// All fields that are new in 1.32 are alpha, so its feature gate must be on.
var (
	newerField = []string{"spec", "template", "spec", "resources", "requests", "cpu"}
	newerGate  = map[string][]string{newVersion: {"--feature-gates=PodLevelResources=true"}}
)

const newerValue = "100m"

// TestSkew writes an object with a field that only one of two servers knows, by every
// verb there is. Through MVP it keeps the field; how soon it is lost over a plain load
// balancer is measured beside it.
func TestSkew(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{VersionArgs: newerGate})
	m := l.serve(t, nil)
	through := newSkewed(t, l.endpoint(t, "mvp", m.url))
	for n := range skewWrites {
		if err := through.write(n); err != nil {
			t.Fatalf("write %d through mvp: %v", n, err)
		}
		if got := through.stored(); got != newerValue {
			t.Fatalf("write %d through mvp, %s, left %q of a field with %q", n, through.verb(n), got, newerValue)
		}
	}
	through.counts(t)

	balanced := l.endpoint(t, "balancer", l.balance(t).url)
	balanced.reconnects = true // or all would go to one server
	beside, lost := newSkewed(t, balanced), false
	for n := 0; n < skewWrites && !lost; n++ {
		if err := beside.write(n); err != nil {
			t.Fatalf("write %d over the load balancer: %v", n, err)
		}
		if lost = beside.stored() != newerValue; lost {
			t.Logf("over a load balancer the field was lost by write %d, %s", n, beside.verb(n))
		}
	}
	if !lost {
		t.Errorf("over a load balancer the field has survived %d writes, so that it survives through mvp shows nothing", skewWrites)
	}
}

// skewed is a deployment that is written by every verb in turn.
type skewed struct {
	t               *testing.T
	name            string
	through, direct dynamic.ResourceInterface
	writes          map[string]int
}

func newSkewed(t *testing.T, e *endpoint) *skewed {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	newest := e.lab.endpoint(t, "newest-"+e.name, e.lab.URL("b"))
	return &skewed{
		t:       t,
		name:    "skewed-" + e.name,
		through: e.dynamic(t, "skew").Resource(deployments).Namespace("default"),
		direct:  newest.dynamic(t, "skew").Resource(deployments).Namespace("default"),
		writes:  map[string]int{},
	}
}

// skewVerbs are the writes, in turn; the last is followed by the first.
var skewVerbs = []string{
	"create", "update", "merge patch", "update status", "strategic merge patch", "update scale",
	"json patch", "patch status", "apply", "patch scale", "apply status", "update", "delete and create",
}

// verb is the write of turn n. An object is created once, then deleted and created anew.
func (s *skewed) verb(n int) string {
	if n == 0 {
		return skewVerbs[0]
	}
	return skewVerbs[1+(n-1)%(len(skewVerbs)-1)]
}

func (s *skewed) write(n int) error {
	verb := s.verb(n)
	s.writes[verb]++
	ctx, turn := s.t.Context(), fmt.Sprint(n)
	patch := func(kind types.PatchType, text string, subresources ...string) error {
		_, err := s.through.Patch(ctx, s.name, kind, []byte(text), metav1.PatchOptions{}, subresources...)
		return err
	}
	switch verb {
	case "create":
		return s.create()
	case "delete and create":
		if err := s.through.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return s.create()
	case "update":
		return s.update(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"turn": turn}) })
	case "update status":
		return s.update(func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(n), "status", "observedGeneration") // status is an object
		}, "status")
	case "update scale":
		return s.scale(n)
	case "merge patch":
		return patch(types.MergePatchType, `{"metadata":{"annotations":{"turn":"`+turn+`"}}}`)
	case "strategic merge patch":
		return patch(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"busybox:`+turn+`"}]}}}}`)
	case "json patch":
		return patch(types.JSONPatchType, `[{"op":"add","path":"/spec/template/metadata/annotations","value":{"turn":"`+turn+`"}}]`)
	case "patch status":
		return patch(types.MergePatchType, `{"status":{"observedGeneration":`+turn+`}}`, "status")
	case "patch scale":
		return patch(types.MergePatchType, `{"spec":{"replicas":`+fmt.Sprint(n%3)+`}}`, "scale")
	case "apply":
		return s.apply(map[string]any{"metadata": map[string]any{"name": s.name, "labels": map[string]any{"turn": turn}}})
	case "apply status":
		return s.apply(map[string]any{"metadata": map[string]any{"name": s.name}, "status": map[string]any{"observedGeneration": int64(n)}}, "status")
	}
	return fmt.Errorf("no verb %q", verb)
}

func (s *skewed) create() error {
	o := object("apps/v1", "Deployment", s.name, map[string]any{
		"spec": map[string]any{"replicas": int64(1), "selector": shopSelector, "template": podTemplate},
	}).DeepCopy()
	if err := unstructured.SetNestedField(o.Object, newerValue, newerField...); err != nil {
		return err
	}
	_, err := s.through.Create(s.t.Context(), o, metav1.CreateOptions{})
	return err
}

// update reads the object, changes it and writes it back, as a controller does.
func (s *skewed) update(change func(*unstructured.Unstructured), subresources ...string) error {
	o, err := s.through.Get(s.t.Context(), s.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(o)
	_, err = s.through.Update(s.t.Context(), o, metav1.UpdateOptions{}, subresources...)
	return err
}

func (s *skewed) scale(n int) error {
	o, err := s.through.Get(s.t.Context(), s.name, metav1.GetOptions{}, "scale")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(o.Object, int64(n%3), "spec", "replicas"); err != nil {
		return err
	}
	_, err = s.through.Update(s.t.Context(), o, metav1.UpdateOptions{}, "scale")
	return err
}

func (s *skewed) apply(body map[string]any, subresources ...string) error {
	o := &unstructured.Unstructured{Object: body}
	o.SetAPIVersion("apps/v1")
	o.SetKind("Deployment")
	_, err := s.through.Apply(s.t.Context(), s.name, o, metav1.ApplyOptions{FieldManager: "skew-applier", Force: true}, subresources...)
	return err
}

// stored is the field as the newer server has it.
func (s *skewed) stored() string {
	s.t.Helper()
	o, err := s.direct.Get(s.t.Context(), s.name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	value, _, _ := unstructured.NestedString(o.Object, newerField...) // what is no string is not kept
	return value
}

// counts tells how often each verb was used, and that each was.
func (s *skewed) counts(t *testing.T) {
	t.Helper()
	for _, verb := range slices.Compact(slices.Sorted(slices.Values(skewVerbs))) {
		t.Logf("%s: %d times", verb, s.writes[verb])
		if s.writes[verb] == 0 {
			t.Errorf("%s was never done", verb)
		}
	}
}

package demo

import (
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// settleUpdate makes of obj, as a create, update or patch wants it, the object to
// store in place of old (nil: none). obj is the call's own and is changed.
func (c *call) settleUpdate(old, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := c.live(old)
	c.keepOther(live, obj)
	keepSystemFields(live, obj)
	c.setDefaults(obj)
	manager, err := c.kind.fieldManager(c.subresource)
	if err != nil {
		return nil, err
	}
	managed, err := manager.Update(live, obj, managerOf(c.request))
	if err != nil {
		return nil, err
	}
	return c.settle(old, managed)
}

// settle is the last part of every write: obj is complete with its managedFields.
// It returns old itself if obj says nothing new, and nil if the last finalizer of
// an object that is being deleted is gone.
func (c *call) settle(old *unstructured.Unstructured, managed runtime.Object) (*unstructured.Unstructured, error) {
	obj, ok := managed.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(errNotUnstructured)
	}
	if errs := c.kind.validate(obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.kind.GroupKind(), obj.GetName(), errs)
	}
	live := c.live(old)
	if c.kind == crdKind {
		establish(obj, old)
	}
	c.countGeneration(live, obj)
	if c.kind.Kind == "Deployment" && c.subresource != "status" {
		rollOut(obj)
	}
	if c.kind.custom != nil {
		pruneObject(c.kind.custom.storage, obj.Object)
	}
	switch {
	case old == nil:
		return obj, nil
	case sameButTimes(live, obj):
		return old, nil
	case obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0:
		return nil, nil
	}
	return obj, nil
}

// rollOut writes the status of a Deployment whose Pods all run, so that `kubectl
// rollout status` ends; no Pod is there.
func rollOut(obj *unstructured.Unstructured) {
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	status, _ := obj.Object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = obj.GetGeneration()
	for _, key := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		status[key] = replicas
	}
	obj.Object["status"] = status
}

// live is old in the call's version, an empty object if there is none.
func (c *call) live(old *unstructured.Unstructured) *unstructured.Unstructured {
	if old != nil {
		return c.kind.in(old)
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(c.kind.GroupVersionKind)
	return empty
}

// keepOther keeps the half of the object that the request may not write: the
// status, or, through the status subresource, all but the status.
func (c *call) keepOther(live, obj *unstructured.Unstructured) {
	if !c.kind.status {
		return
	}
	if c.subresource == "status" {
		status, present := obj.Object["status"]
		obj.Object = live.DeepCopy().Object
		setOrDelete(obj.Object, "status", status, present)
		return
	}
	status, present := live.Object["status"]
	setOrDelete(obj.Object, "status", runtime.DeepCopyJSONValue(status), present)
}

func setOrDelete(obj map[string]any, key string, value any, present bool) {
	if present {
		obj[key] = value
	} else {
		delete(obj, key)
	}
}

// keepSystemFields sets the metadata that only the server writes.
func keepSystemFields(live, obj *unstructured.Unstructured) {
	if live.GetUID() == "" {
		obj.SetUID(uuid.NewUUID())
		obj.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
		obj.SetDeletionTimestamp(nil)
		obj.SetDeletionGracePeriodSeconds(nil)
		return
	}
	obj.SetUID(live.GetUID())
	obj.SetCreationTimestamp(live.GetCreationTimestamp())
	obj.SetDeletionTimestamp(live.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	obj.SetResourceVersion(live.GetResourceVersion())
	obj.SetGeneration(live.GetGeneration())
}

func (c *call) setDefaults(obj *unstructured.Unstructured) {
	mergeDefaults(obj.Object, c.kind.defaults)
	if c.kind.custom != nil {
		applyDefaults(c.kind.custom.schema, obj.Object)
	}
}

func mergeDefaults(obj, defaults map[string]any) {
	for key, value := range defaults {
		have, present := obj[key]
		inner, isMap := value.(map[string]any)
		haveMap, haveIsMap := have.(map[string]any)
		switch {
		case !present:
			obj[key] = runtime.DeepCopyJSONValue(value)
		case isMap && haveIsMap:
			mergeDefaults(haveMap, inner)
		}
	}
}

func (c *call) countGeneration(live, obj *unstructured.Unstructured) {
	switch {
	case !c.kind.generation:
		return
	case live.GetUID() == "":
		obj.SetGeneration(1)
	case !reflect.DeepEqual(desired(live), desired(obj)):
		obj.SetGeneration(live.GetGeneration() + 1)
	default:
		obj.SetGeneration(live.GetGeneration())
	}
}

// desired is the part of an object that generation counts.
func desired(obj *unstructured.Unstructured) map[string]any {
	m := maps.Clone(obj.Object)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(m, key)
	}
	return m
}

// sameButTimes says whether a and b differ at most in when their fields were
// written: such an update is none, or every apply of the same file would be one.
func sameButTimes(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	entries := out.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	out.SetManagedFields(entries)
	return out.Object
}

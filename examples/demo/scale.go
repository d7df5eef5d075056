package demo

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// serveScale answers for the scale subresource: an autoscaling/v1 Scale, whatever
// version the object is asked for in.
func (c *call) serveScale(w http.ResponseWriter) error {
	obj, _ := c.server.plane.store.get(c.groupResource(), c.namespace, c.name)
	if obj == nil {
		return apierrors.NewNotFound(c.groupResource(), c.name)
	}
	if c.request.Method == http.MethodGet {
		return writeJSON(w, http.StatusOK, c.scaleOf(obj))
	}
	if c.request.Method != http.MethodPut && c.request.Method != http.MethodPatch {
		return apierrors.NewMethodNotSupported(c.groupResource(), c.request.Method)
	}
	body, mediaType, err := readBody(c.request)
	if err != nil {
		return err
	}
	stored, err := c.change(c.name, func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(c.groupResource(), c.name)
		}
		return c.scaled(old, body, mediaType)
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, c.scaleOf(stored))
}

// scaled returns old with the number of replicas that a Scale or a merge patch of
// one asks for.
func (c *call) scaled(old *unstructured.Unstructured, body []byte, mediaType string) (*unstructured.Unstructured, error) {
	if c.request.Method == http.MethodPatch {
		live, err := json.Marshal(c.scaleOf(old))
		if err != nil {
			return nil, fmt.Errorf("cannot encode the Scale: %w", err)
		}
		switch types.PatchType(mediaType) {
		case types.MergePatchType, types.StrategicMergePatchType: // the same for a Scale: it has no lists
			body, err = jsonpatch.MergePatch(live, body)
		case types.JSONPatchType:
			body, err = applyJSONPatch(live, body)
		default:
			return nil, unsupportedMediaType(mediaType, string(types.JSONPatchType), string(types.MergePatchType))
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot apply the patch: %v", err))
		}
	}
	var scale autoscalingv1.Scale
	if err := json.Unmarshal(body, &scale); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot read the Scale: %v", err))
	}
	if rv := scale.ResourceVersion; rv != "" && rv != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.groupResource(), c.name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	obj := c.kind.in(old)
	if err := unstructured.SetNestedField(obj.Object, int64(scale.Spec.Replicas), c.kind.scale.spec...); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot scale: %v", err))
	}
	return c.settleUpdate(old, obj)
}

func (c *call) scaleOf(obj *unstructured.Unstructured) *autoscalingv1.Scale {
	paths := c.kind.scale
	replicas, _, _ := unstructured.NestedInt64(obj.Object, paths.spec...)
	current, _, _ := unstructured.NestedInt64(obj.Object, paths.status...)
	scale := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              obj.GetName(),
			Namespace:         obj.GetNamespace(),
			UID:               obj.GetUID(),
			ResourceVersion:   obj.GetResourceVersion(),
			CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(current), Selector: selectorText(obj, paths.selector)},
	}
	return scale
}

// selectorText is a selector as a string: a custom resource holds it as one,
// built-in kinds as a LabelSelector.
func selectorText(obj *unstructured.Unstructured, path []string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	switch value := value.(type) {
	case string:
		return value
	case map[string]any:
		var selector metav1.LabelSelector
		if err := fromMap(value, &selector); err == nil {
			return metav1.FormatLabelSelector(&selector)
		}
	}
	return ""
}

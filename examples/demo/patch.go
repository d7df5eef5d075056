package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxPatchOperations is kube-apiserver's limit of one JSON patch.
const maxPatchOperations = 10_000

func (c *call) patch(w http.ResponseWriter) error {
	body, mediaType, err := readBody(c.request)
	if err != nil {
		return err
	}
	patchType := types.PatchType(mediaType)
	if patchType == types.ApplyYAMLPatchType || mediaType == "application/apply-patch+json" {
		return c.apply(w, body)
	}
	var warnings []string
	stored, err := c.change(c.name, func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(c.groupResource(), c.name)
		}
		patched, err := c.kind.patched(old, patchType, body)
		if err != nil {
			return nil, err
		}
		obj, unknown, err := c.take(patched)
		if err != nil {
			return nil, err
		}
		warnings = unknown
		if err := c.checkUpdate(old, obj); err != nil {
			return nil, err
		}
		return c.settleUpdate(old, obj)
	})
	if err != nil {
		return err
	}
	addWarnings(w, warnings)
	return c.writeObject(w, http.StatusOK, stored)
}

// patched returns old, in k's version, with the patch in it.
func (k *kind) patched(old *unstructured.Unstructured, patchType types.PatchType, body []byte) (map[string]any, error) {
	live, err := json.Marshal(k.in(old).Object)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the object to patch: %w", err)
	}
	var out []byte
	switch {
	case patchType == types.JSONPatchType:
		out, err = applyJSONPatch(live, body)
	case patchType == types.MergePatchType, patchType == types.StrategicMergePatchType && k == crdKind:
		// The definition's Go type is not in client-go's scheme; its lists have no
		// merge keys that kubectl would use.
		out, err = jsonpatch.MergePatch(live, body)
	case patchType == types.StrategicMergePatchType && k.custom == nil:
		out, err = k.strategicMerge(live, body)
	default:
		return nil, unsupportedMediaType(string(patchType), k.patchTypes()...)
	}
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return nil, err
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot apply the patch: %v", err))
	}
	return decodeMap(out, jsonType)
}

// patchTypes are the media types that k can be patched with.
func (k *kind) patchTypes() []string {
	list := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if k.custom == nil {
		list = append(list, string(types.StrategicMergePatchType))
	}
	return append(list, string(types.ApplyYAMLPatchType))
}

func (k *kind) strategicMerge(live, patch []byte) ([]byte, error) {
	typed, err := scheme.Scheme.New(k.GroupVersionKind)
	if err != nil {
		return nil, fmt.Errorf("cannot find the merge keys of %s: %w", k.Kind, err)
	}
	return strategicpatch.StrategicMergePatch(live, patch, typed)
}

func applyJSONPatch(live, body []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	out, err := patch.Apply(live)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return out, nil
}

// apply is server-side apply: it creates the object if there is none.
func (c *call) apply(w http.ResponseWriter, body []byte) error {
	query := c.request.URL.Query()
	if query.Get("fieldManager") == "" {
		missing := field.Required(field.NewPath("fieldManager"), "is required for apply patch")
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", field.ErrorList{missing})
	}
	applied, err := c.applied(body)
	if err != nil {
		return err
	}
	if err := c.checkNamespace(); err != nil {
		return err
	}
	force, _ := strconv.ParseBool(query.Get("force"))
	code := http.StatusOK
	stored, err := c.change(c.name, func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if old == nil {
			if c.subresource != "" {
				return nil, apierrors.NewNotFound(c.groupResource(), c.name)
			}
			code = http.StatusCreated
		}
		return c.settleApply(old, applied, force)
	})
	if err != nil {
		return err
	}
	return c.writeObject(w, code, stored)
}

// applied reads an applied configuration. Its unknown fields are always an error:
// they could not be owned.
func (c *call) applied(body []byte) (*unstructured.Unstructured, error) {
	m, err := decodeMap(body, string(types.ApplyYAMLPatchType))
	if err != nil {
		return nil, err
	}
	obj, err := c.kind.accept(m)
	if err != nil {
		return nil, err
	}
	if err := c.addressed(obj); err != nil {
		return nil, err
	}
	// A check, not a pruning: what it writes back has fields that were not applied.
	check := obj.DeepCopy()
	if _, err := c.kind.checkFields(check, c.request.URL.Query().Get("fieldValidation")); err != nil {
		return nil, err
	}
	if unknown, err := c.kind.pruneUnknown(obj.DeepCopy()); err != nil {
		return nil, err
	} else if len(unknown) > 0 {
		return nil, unknownFieldError(obj, unknown[0])
	}
	switch {
	case c.subresource == "status":
		obj.Object = map[string]any{
			"apiVersion": obj.Object["apiVersion"],
			"kind":       obj.Object["kind"],
			"metadata":   obj.Object["metadata"],
			"status":     obj.Object["status"],
		}
	case c.kind.status:
		delete(obj.Object, "status")
	}
	return obj, nil
}

func (c *call) settleApply(old, applied *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	live := c.live(old)
	if old != nil {
		if rv := applied.GetResourceVersion(); rv != "" && rv != old.GetResourceVersion() {
			return nil, c.checkUpdate(old, applied)
		}
	}
	manager, err := c.kind.fieldManager(c.subresource)
	if err != nil {
		return nil, err
	}
	merged, err := manager.Apply(live, applied.DeepCopy(), c.request.URL.Query().Get("fieldManager"), force)
	if err != nil {
		return nil, err
	}
	if err := c.complete(live, merged); err != nil {
		return nil, err
	}
	return c.settle(old, merged)
}

// complete gives a merged object what a create or update gets as well.
func (c *call) complete(live *unstructured.Unstructured, merged runtime.Object) error {
	obj, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return apierrors.NewInternalError(errNotUnstructured)
	}
	keepSystemFields(live, obj)
	c.setDefaults(obj)
	return nil
}

package webhook

import (
	"fmt"
	"strconv"
	"strings"
)

// The versions of a Gadget. Clients that have not moved yet speak Old, objects are
// stored in New.
const (
	Old = "v1alpha1"
	New = "v1beta1"
)

// convert makes a Gadget, as sigs.k8s.io/json decodes it, one of the desired version.
// What it does not know of stays as it is.
func convert(gadget map[string]any, desired string) error {
	have, _ := gadget["apiVersion"].(string)
	group, from, _ := strings.Cut(have, "/")
	switch {
	case have == desired:
		return nil
	case from == Old && desired == group+"/"+New:
		if err := toNew(gadget); err != nil {
			return err
		}
	case from == New && desired == group+"/"+Old:
		if err := toOld(gadget); err != nil {
			return err
		}
	default:
		return fmt.Errorf("cannot convert %q to %q", have, desired)
	}
	gadget["apiVersion"] = desired
	return nil
}

func toNew(gadget map[string]any) error {
	replace(child(child(gadget, "metadata"), "labels"), "stage", "prod", "production")
	rename(child(gadget, "status"), "state", "phase")
	spec := child(gadget, "spec")
	if spec == nil {
		return nil
	}
	if v, ok := spec["timeout"]; ok {
		text, _ := v.(string)
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("spec.timeout: %w", err)
		}
		delete(spec, "timeout")
		spec["requestTimeoutSeconds"] = seconds
	}
	replace(spec, "mode", "ephemeral", "stateless")
	nest(spec, "owner", "contact", "owner")
	nest(spec, "replicas", "scaling", "replicas")
	renameInItems(spec, "endpoints", "number", "port")
	return nil
}

func toOld(gadget map[string]any) error {
	replace(child(child(gadget, "metadata"), "labels"), "stage", "production", "prod")
	rename(child(gadget, "status"), "phase", "state")
	spec := child(gadget, "spec")
	if spec == nil {
		return nil
	}
	if v, ok := spec["requestTimeoutSeconds"]; ok {
		seconds, ok := v.(int64)
		if !ok {
			return fmt.Errorf("spec.requestTimeoutSeconds: want an integer, have %T", v)
		}
		delete(spec, "requestTimeoutSeconds")
		spec["timeout"] = strconv.FormatInt(seconds, 10)
	}
	replace(spec, "mode", "stateless", "ephemeral")
	unnest(spec, "contact", "owner", "owner")
	unnest(spec, "scaling", "replicas", "replicas")
	renameInItems(spec, "endpoints", "port", "number")
	return nil
}

// child is the object under a key; nil when there is none.
func child(object map[string]any, key string) map[string]any {
	c, _ := object[key].(map[string]any)
	return c
}

func replace(object map[string]any, key, from, to string) {
	if object[key] == from {
		object[key] = to
	}
}

func rename(object map[string]any, from, to string) {
	if v, ok := object[from]; ok {
		delete(object, from)
		object[to] = v
	}
}

func renameInItems(object map[string]any, list, from, to string) {
	items, _ := object[list].([]any)
	for _, item := range items {
		if item, ok := item.(map[string]any); ok {
			rename(item, from, to)
		}
	}
}

// nest moves a value into an object beside it.
func nest(object map[string]any, key, parent, to string) {
	v, ok := object[key]
	if !ok {
		return
	}
	delete(object, key)
	if c := child(object, parent); c != nil {
		c[to] = v
		return
	}
	object[parent] = map[string]any{to: v}
}

// unnest is the way back. An object that has nothing else goes.
func unnest(object map[string]any, parent, key, to string) {
	c := child(object, parent)
	v, ok := c[key]
	if !ok {
		return
	}
	if delete(c, key); len(c) == 0 {
		delete(object, parent)
	}
	object[to] = v
}

package demo

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// builtinTypes knows which lists of built-in kinds merge by key. Reading its
// schema takes a moment, so only the first write pays for it.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// fieldManager returns what keeps metadata.managedFields of k and merges applied
// configurations into it: the code that kube-apiserver uses. Of custom resources
// and of CustomResourceDefinitions it deduces the types from the values, so that
// every list is atomic whatever x-kubernetes-list-type says.
func (k *kind) fieldManager(subresource string) (*managedfields.FieldManager, error) {
	build, types := managedfields.NewDefaultCRDFieldManager, managedfields.NewDeducedTypeConverter()
	if k.typed() {
		build, types = managedfields.NewDefaultFieldManager, builtinTypes()
	}
	manager, err := build(types, asVersion{}, asVersion{}, asVersion{}, k.GroupVersionKind, k.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot manage the fields of %s: %w", k.Kind, err)
	}
	return manager, nil
}

// typed says whether there is a Go type for k.
func (k *kind) typed() bool { return scheme.Scheme.Recognizes(k.GroupVersionKind) }

// asVersion converts between the versions of a kind as the whole package does, by
// apiVersion alone. It has no defaults of its own to set.
type asVersion struct{}

func (asVersion) Convert(in, _, _ any) error {
	return fmt.Errorf("cannot convert %T into another object", in)
}

func (asVersion) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	obj, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("cannot convert a %T", in)
	}
	to, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{obj.GroupVersionKind()})
	if version, isVersion := gv.(schema.GroupVersion); isVersion {
		to, ok = version.WithKind(obj.GetKind()), true
	}
	if !ok {
		return nil, fmt.Errorf("cannot convert %s to %v", obj.GroupVersionKind(), gv)
	}
	obj = obj.DeepCopy()
	obj.SetGroupVersionKind(to)
	return obj, nil
}

func (asVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asVersion) Default(runtime.Object) {}

func (asVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}

// managerOf is who a write is by: the fieldManager parameter, or the program's
// name from the User-Agent.
func managerOf(r *http.Request) string {
	if name := r.URL.Query().Get("fieldManager"); name != "" {
		return name
	}
	if name, _, _ := strings.Cut(r.UserAgent(), "/"); name != "" {
		return name
	}
	return "unknown"
}

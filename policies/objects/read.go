package objects

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mixed-version-proxy/mvp/policies"
)

// What is followed.
var (
	rulesResource     = schema.GroupVersionResource{Group: "mvp.k8s.io", Version: "v1", Resource: "transformationrules"}
	configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	crdResource       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// rules follows the TransformationRules.
func (w *Watcher) rules(client dynamic.Interface) *follower {
	return &follower{
		what: "TransformationRules", resource: rulesResource, client: client.Resource(rulesResource),
		problems: w.problems, changed: w.changed, look: make(chan struct{}, 1),
		read:    readRules,
		version: func(o *unstructured.Unstructured) string { return strconv.FormatInt(o.GetGeneration(), 10) },
		missing: func(ctx context.Context) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			_, err := client.Resource(crdResource).Get(ctx, rulesResource.Resource+"."+rulesResource.Group, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		},
	}
}

// readRules makes a document of an object: what its author wrote, which does not change
// with its status.
func readRules(it *item) policies.Object {
	document := map[string]any{
		"apiVersion": it.object.GetAPIVersion(),
		"kind":       it.object.GetKind(),
		"metadata":   map[string]any{"name": it.object.GetName()},
	}
	if spec, ok := it.object.Object["spec"]; ok {
		document["spec"] = spec
	}
	data, err := json.Marshal(document)
	if err != nil {
		panic(err) // of what was read from JSON
	}
	return policies.Object{Name: it.name, Document: data}
}

// configMaps follows some ConfigMaps.
func (w *Watcher) configMaps(client dynamic.Interface, c ConfigMaps) *follower {
	return &follower{
		what:     "ConfigMaps of " + c.Namespace + " with " + c.Selector,
		resource: configMapResource, client: client.Resource(configMapResource).Namespace(c.Namespace), selector: c.Selector,
		problems: w.problems, changed: w.changed, look: make(chan struct{}, 1),
		read:    readConfigMap,
		version: func(o *unstructured.Unstructured) string { return o.GetResourceVersion() },
	}
}

// readConfigMap makes a policy file of each key, as a volume of the ConfigMap has it.
func readConfigMap(it *item) policies.Object {
	object := policies.Object{Name: it.name}
	data, _, _ := unstructured.NestedStringMap(it.object.Object, "data")
	binary, _, _ := unstructured.NestedStringMap(it.object.Object, "binaryData")
	for _, key := range slices.Sorted(maps.Keys(data)) {
		object.Files = append(object.Files, policies.File{Name: it.name + "/" + key, Data: []byte(data[key])})
	}
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		// Base64 of what is no text: MVP says so of it, as of a file.
		object.Files = append(object.Files, policies.File{Name: it.name + "/" + key, Data: decode(binary[key])})
	}
	return object
}

// decode returns what base64 stands for: the text itself where it is none, which no
// kube-apiserver keeps.
func decode(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return []byte(text)
	}
	return data
}

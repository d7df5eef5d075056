package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxDocuments bounds one call of Apply: far more than any demo or test writes.
const maxDocuments = 10_000

// seedObjects are what every cluster has from its start.
const seedObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-system}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: exempt}
spec: {type: Exempt}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: catch-all}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: exempt}
spec:
  matchingPrecedence: 1
  priorityLevelConfiguration: {name: exempt}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: catch-all}
spec:
  matchingPrecedence: 10000
  priorityLevelConfiguration: {name: catch-all}
`

// Apply creates each object of a YAML stream, or replaces the one that is there,
// with its status, as if a controller of the cluster wrote it. An object may be in
// any version in the table of kinds, whether a server here serves it or not, or that a
// CustomResourceDefinition serves; a namespaced one without a namespace goes
// to "default". The first object that cannot be stored ends it.
func (c *ControlPlane) Apply(manifests []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for n := 1; n <= maxDocuments; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read document %d: %w", n, err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if err := c.applyDocument(document); err != nil {
			return fmt.Errorf("cannot apply document %d: %w", n, err)
		}
	}
	return fmt.Errorf("cannot apply more than %d documents", maxDocuments)
}

func (c *ControlPlane) applyDocument(document []byte) error {
	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return fmt.Errorf("not YAML: %w", err)
	}
	body, err := decodeMap(data, jsonType)
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: body}
	k := c.kindOf(obj)
	if k == nil {
		return fmt.Errorf("there is no kind %s", obj.GroupVersionKind())
	}
	if obj, err = k.accept(body); err != nil {
		return err
	}
	if _, err := k.checkFields(obj, "Strict"); err != nil {
		return err
	}
	if k.namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace("default")
	}
	request, err := http.NewRequest(http.MethodPut, "/?fieldManager=control-plane", http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	writer := &call{kind: k.whole(), namespace: obj.GetNamespace(), name: obj.GetName(), request: request}
	_, err = c.store.write(k.groupResource(), obj.GetNamespace(), obj.GetName(), func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return writer.settleUpdate(old, obj)
	})
	return err
}

// kindOf finds obj's kind among all that any release has.
func (c *ControlPlane) kindOf(obj *unstructured.Unstructured) *kind {
	for _, k := range append(builtin[:len(builtin):len(builtin)], c.customKinds()...) {
		if k.GroupVersionKind == obj.GroupVersionKind() {
			return k
		}
	}
	return nil
}

// whole is k for a writer that writes the status with the rest.
func (k *kind) whole() *kind {
	if k == crdKind {
		return k // its status is derived, and settle knows it by its address
	}
	whole := *k
	whole.status = false
	return &whole
}

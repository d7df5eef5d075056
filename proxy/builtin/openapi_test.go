package builtin

import (
	"encoding/json"
	"strings"
	"testing"
)

// property returns the schema of a field of a kind, as text.
func property(t *testing.T, s *Schema, path string) string {
	t.Helper()
	var at map[string]any
	if err := json.Unmarshal(s.OpenAPI(), &at); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Split(path, ".") {
		next, ok := at["properties"].(map[string]any)[key].(map[string]any)
		if items, isList := next["items"].(map[string]any); isList && path[len(path)-1] != key[len(key)-1] {
			next = items
		}
		if !ok {
			t.Fatalf("no field %s of %s", key, path)
		}
		at = next
	}
	delete(at, "description")
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOpenAPI(t *testing.T) {
	f := func(group, version, kind, path, want string) {
		t.Helper()
		s, ok := Find(group, version, kind)
		if !ok {
			t.Fatalf("no %s %s", version, kind)
		}
		if got := property(t, s, path); got != want {
			t.Errorf("%s %s %s\n got %s\nwant %s", version, kind, path, got, want)
		}
	}
	f("networking.k8s.io", "v1beta1", "Ingress", "spec.backend.serviceName", `{"type":"string"}`)
	f("networking.k8s.io", "v1beta1", "Ingress", "spec.backend.servicePort", `{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}`)
	f("networking.k8s.io", "v1beta1", "Ingress", "metadata", `{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}`)
	f("certificates.k8s.io", "v1beta1", "CertificateSigningRequest", "spec.request", `{"format":"byte","type":"string"}`)
	f("authorization.k8s.io", "v1beta1", "SubjectAccessReview", "spec.extra", `{"additionalProperties":{"items":{"type":"string"},"type":"array"},"type":"object"}`)
	f("apps", "v1beta1", "Deployment", "spec.replicas", `{"format":"int32","type":"integer"}`)
	f("apps", "v1beta1", "Deployment", "spec.template", `{"$ref":"#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}`)

	s, _ := Find("admissionregistration.k8s.io", "v1beta1", "MutatingWebhookConfiguration")
	text := string(s.OpenAPI())
	for _, want := range []string{
		`"x-kubernetes-patch-merge-key":"name"`, `"x-kubernetes-patch-strategy":"merge"`,
		`"description":"MutatingWebhookConfiguration describes the configuration of`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the schema of a webhook configuration has no %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, `"apiVersion":`) {
		t.Errorf("the schema states more than the kind's own fields:\n%s", text)
	}
}

func TestSameFields(t *testing.T) {
	f := func(group, old, current, kind string, want bool) {
		t.Helper()
		a, known := Find(group, old, kind)
		b, ok := Find(group, current, kind)
		if !known || !ok {
			t.Fatalf("no %s in %s or %s", kind, old, current)
		}
		if got := a.SameFields(b); got != want {
			t.Errorf("%s %s and %s have the same fields: %t, want %t", kind, old, current, got, want)
		}
	}
	f("rbac.authorization.k8s.io", "v1beta1", "v1", "ClusterRole", true)
	f("batch", "v1beta1", "v1", "CronJob", true)
	f("networking.k8s.io", "v1beta1", "v1", "Ingress", false)
	f("policy", "v1beta1", "v1", "PodDisruptionBudget", false) // in v1 a patch replaces the selector
	f("apps", "v1beta2", "v1", "StatefulSet", true)
	f("apps", "v1beta1", "v1", "Deployment", false) // rollbackTo
	f("flowcontrol.apiserver.k8s.io", "v1beta3", "v1", "PriorityLevelConfiguration", true)
	f("admissionregistration.k8s.io", "v1beta1", "v1", "ValidatingWebhookConfiguration", false) // v1 wants sideEffects
}

package builtin

import (
	"strings"
	"testing"
)

func TestTypeAt(t *testing.T) {
	f := func(group, version, kind, path, want string) {
		t.Helper()
		s, ok := Find(group, version, kind)
		if !ok {
			t.Errorf("Find(%q, %q, %q) found nothing", group, version, kind)
			return
		}
		if got := s.TypeAt(strings.Split(path, ".")); got != want {
			t.Errorf("%s/%s %s %s is %q, want %q", group, version, kind, path, got, want)
		}
	}

	// Versions that no server has any more.
	f("policy", "v1beta1", "PodDisruptionBudget", "spec.minAvailable", "int-or-string")
	f("batch", "v1beta1", "CronJob", "spec.schedule", "string")
	f("batch", "v1beta1", "CronJob", "spec.jobTemplate.spec.template.spec.containers.*.ports.*.containerPort", "integer")
	f("flowcontrol.apiserver.k8s.io", "v1beta3", "PriorityLevelConfiguration", "spec.limited.nominalConcurrencyShares", "integer")

	f("policy", "v1", "PodDisruptionBudget", "metadata.name", "string")
	f("policy", "v1", "PodDisruptionBudget", "metadata.labels.app", "string")
	f("policy", "v1", "PodDisruptionBudget", "metadata.creationTimestamp", "string")
	f("policy", "v1", "PodDisruptionBudget", "kind", "string")
	f("", "v1", "Secret", "data.key", "string")
	f("", "v1", "Secret", "immutable", "boolean")
	f("", "v1", "Pod", "spec.containers", "array")
	f("", "v1", "Pod", "spec.containers.*.resources.limits", "object")
	f("", "v1", "Pod", "spec.containers.*.resources.limits.cpu", "") // a string or a number

	// No such field.
	f("", "v1", "Pod", "spec.contaners", "")
	f("", "v1", "Pod", "spec.containers.name", "")
	f("", "v1", "Pod", "spec.nodeName.x", "")
}

func TestFindNothing(t *testing.T) {
	if _, ok := Find("myapps.example.com", "v1", "CustomResource"); ok {
		t.Error("found a kind that is not Kubernetes' own")
	}
}

func TestFindResource(t *testing.T) {
	s, ok := FindResource("policy", "v1beta1", "poddisruptionbudgets")
	if !ok || s.TypeAt([]string{"spec", "maxUnavailable"}) != "int-or-string" {
		t.Errorf("FindResource found %v, %t", s, ok)
	}
	if _, ok := FindResource("policy", "v1beta1", "budgets"); ok {
		t.Error("found a resource that Kubernetes does not have")
	}
}

func TestUnknown(t *testing.T) {
	f := func(group, version, kind, object, want string) {
		t.Helper()
		s, ok := Find(group, version, kind)
		if !ok {
			t.Fatalf("Find(%q, %q, %q) found nothing", group, version, kind)
		}
		if got := strings.Join(s.Unknown([]byte(object)), " "); got != want {
			t.Errorf("of %s unknown are %q, want %q", object, got, want)
		}
	}

	f("policy", "v1beta1", "PodDisruptionBudget", `{"apiVersion":"policy/v1beta1","kind":"X","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"minAvailable":1}}`, "")
	f("policy", "v1beta1", "PodDisruptionBudget", `{"spec":{"minAvailable":"50%","min":1},"x":{"y":1},"metadata":{"nam":1}}`, "spec.min x metadata.nam")
	f("", "v1", "Pod", `{"spec":{"containers":[{"name":"a"},{"imag":"b"}]}}`, "spec.containers[1].imag")
	f("", "v1", "Pod", `{"spec":{"containers":"no list"},"x":1}`, "") // the server says what is wrong with it
	f("", "v1", "Pod", `{"spec":`, "")
}

package builtin

import (
	"strings"
	"testing"
)

func TestFieldsAt(t *testing.T) {
	f := func(group, version, kind, path, want string) {
		t.Helper()
		s, found := Find(group, version, kind)
		if !found {
			t.Fatalf("no %s %s %s", group, version, kind)
		}
		names, ok := s.FieldsAt(strings.Fields(path))
		got := strings.Join(names, " ")
		if !ok {
			got = "any"
		}
		if got != want {
			t.Errorf("%s at %q has %q, want %q", kind, path, got, want)
		}
	}

	f("policy", "v1beta1", "PodDisruptionBudget", "", "apiVersion kind metadata spec status")
	f("policy", "v1beta1", "PodDisruptionBudget", "spec", "maxUnavailable minAvailable selector unhealthyPodEvictionPolicy")
	f("", "v1", "Pod", "spec containers * env *", "name value valueFrom")
	f("", "v1", "Pod", "spec volumes * emptyDir", "medium mode sizeLimit") // inlined, and behind pointers
	for _, path := range []string{
		"spec containers",                        // a list
		"spec nodeSelector",                      // a map
		"spec containers * resources limits cpu", // a quantity
		"metadata creationTimestamp",
		"spec none deeper", "spec containers name", "spec nodeName",
	} {
		f("", "v1", "Pod", path, "any")
	}
}

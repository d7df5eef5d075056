package policies

import (
	"strings"
	"testing"
)

// Ingresses of both groups say the same with the same fields, so the two policies differ in
// nothing but the group.
func TestIngressesOfBothGroupsAreAlike(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := library.ReadFile("kubernetes/1.22/" + name + "/ingresses.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	got := strings.NewReplacer(
		"# Ingresses of extensions/v1beta1,", "# Ingresses of networking.k8s.io/v1beta1,",
		"apiGroup: extensions", "apiGroup: networking.k8s.io",
		"      toGroup: networking.k8s.io\n", "",
	).Replace(read("extensions-v1beta1"))
	if want := read("networking-v1beta1"); got != want {
		t.Errorf("the policy of extensions/v1beta1 is, but for the group,\n%s\nthat of networking.k8s.io/v1beta1\n%s", got, want)
	}
}

package kubelet

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestObjects(t *testing.T) {
	objects, err := Objects(20100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		path := o.Path
		if o.Status {
			path += " and status"
		}
		got = append(got, path)
		for _, placeholder := range []string{"NODE_IP", "POD_IP", "10250"} {
			if strings.Contains(string(o.JSON), placeholder) {
				t.Errorf("%s has %s left in it: %s", o.Path, placeholder, o.JSON)
			}
		}
	}
	want := `/api/v1/nodes/lab and status
/api/v1/namespaces/default/serviceaccounts/default
/api/v1/namespaces/default/pods/tools and status
/api/v1/namespaces/default/services/tools
/api/v1/namespaces/default/endpoints/tools`
	if got := strings.Join(got, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if want := `"kubeletEndpoint":{"Port":20100}`; !strings.Contains(string(objects[0].JSON), want) {
		t.Errorf("the node lacks %s: %s", want, objects[0].JSON)
	}
}

// TestNames holds the names of this package to those of the manifest.
func TestNames(t *testing.T) {
	data, err := Pods()
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []struct {
			Metadata struct{ Name, Namespace string }
			Spec     struct {
				NodeName   string
				Containers []struct {
					Name    string
					Command []string
					TTY     bool
				}
			}
			Status struct{ PodIP string }
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "PodList" || len(list.Items) != 1 {
		t.Fatalf("got a %s of %d pods, want a PodList of one", list.Kind, len(list.Items))
	}
	pod := list.Items[0]
	if got, want := pod.Metadata.Namespace+"/"+pod.Metadata.Name+" on "+pod.Spec.NodeName+" at "+pod.Status.PodIP,
		Namespace+"/"+Pod+" on "+Node+" at "+PodIP; got != want {
		t.Errorf("the pod is %s, want %s", got, want)
	}
	var containers []string
	for _, c := range pod.Spec.Containers {
		if len(c.Command) == 0 {
			t.Errorf("container %s has no command", c.Name)
		}
		if c.TTY != (c.Name == Terminal) {
			t.Errorf("container %s: tty is %v", c.Name, c.TTY)
		}
		containers = append(containers, c.Name)
	}
	if got, want := strings.Join(containers, " "), Main+" "+Terminal+" "+Ticker; got != want {
		t.Errorf("containers are %s, want %s", got, want)
	}
}

func TestObjectFails(t *testing.T) {
	f := func(doc, want string) {
		t.Helper()
		if _, err := object(doc); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("object(%q): %v, want %q", doc, err, want)
		}
	}

	f("kind: Lease", `cannot place an object of kind "Lease"`)
	f("kind: [", "cannot read the node's objects: ")
	f("kind: [Pod]", "cannot read the node's objects: ")
}

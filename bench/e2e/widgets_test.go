package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// widget is the kind of testdata/widgets in the version that only MVP has.
const widget = "widgets.v1alpha1.shop.example.com"

// widgetKind is the kind in the version that servers have.
var widgetKind = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "widgets"}

// startWidgets starts one kube-apiserver of the newer version with the CRD of widgets.
func startWidgets(t *testing.T) *lab {
	t.Helper()
	l := startLabWith(t, controlplane.Config{Versions: []string{newVersion}})
	direct := l.direct(t, "a")
	direct.ok("apply", "-f", "testdata/widgets/crd.yaml")
	direct.ok("wait", "--for=condition=Established", "crd/widgets.shop.example.com", "--timeout=60s")
	return l
}

// widgetRules are the rules that convert widgets.
func widgetRules(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{"widgets.yaml": read(t, os.DirFS("testdata/widgets/rules"), "widgets.yaml")}
}

// adminConfig is how client-go connects as the administrator.
func adminConfig(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return config
}

// user is a kubectl through MVP that works in a namespace of its own, and the same
// namespace as the server has it.
type user struct {
	kubectl
	namespace string
	server    dynamic.Interface

	// byRules is whether MVP converts by rules. Of a program it does not know which
	// field becomes which: field selectors and what the server says of fields, such as
	// that they are in conflict, are then in the server's names.
	byRules bool
}

// user makes the namespace, and a kubectl of the version that is at home there.
func (m *mvp) user(t *testing.T, version, namespace string) user {
	t.Helper()
	direct := m.lab.direct(t, "a")
	direct.ok("create", "namespace", namespace)
	server, err := dynamic.NewForConfig(adminConfig(t, direct.kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := m.lab.Kubeconfig(controlplane.Admin, controlplane.Endpoint{Name: namespace, URL: m.url})
	if err != nil {
		t.Fatal(err)
	}
	own := *m.lab
	own.home = t.TempDir()
	u := user{kubectl: kubectl{t, &own, version, kubeconfig}, namespace: namespace, server: server}
	u.ok("config", "set-context", "--current", "--namespace", namespace)
	return u
}

func (u user) in(t *testing.T) user { u.t = t; return u }

// knows reports whether this kubectl is of that version or a later one.
func (u user) knows(version string) bool { return u.version >= version } // all are 1.NN

func (u user) of(kind schema.GroupVersionResource) dynamic.ResourceInterface {
	return u.server.Resource(kind).Namespace(u.namespace)
}

// stored is an object as the server has it.
func (u user) stored(kind schema.GroupVersionResource, name string) *unstructured.Unstructured {
	u.t.Helper()
	object, err := u.of(kind).Get(u.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	return object
}

// called is what a field that the rules rename is called where only they are understood.
func (u user) called(old, new string) string {
	if u.byRules {
		return old
	}
	return new
}

// changes patches an object directly, a subresource of it if one is named.
func (u user) changes(kind schema.GroupVersionResource, name, patch string, subresources ...string) {
	u.t.Helper()
	if _, err := u.of(kind).Patch(u.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		u.t.Fatal(err)
	}
}

// specOf wants the spec that the server has of an object to be that JSON.
func (u user) specOf(kind schema.GroupVersionResource, name, want string) {
	u.t.Helper()
	u.sameJSON(name+" has the spec", u.stored(kind, name).Object["spec"], want)
}

func (u user) sameJSON(what string, value any, want string) {
	u.t.Helper()
	got, err := json.Marshal(value)
	if err != nil {
		u.t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		u.t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		u.t.Errorf("with kubectl %s %s\n%s, want\n%s", u.version, what, got, want)
	}
}

// metadata wants a label or annotation, by the name of their field, to be that; empty for
// none.
func (u user) metadata(kind schema.GroupVersionResource, name, field, key, want string) {
	u.t.Helper()
	got, _, err := unstructured.NestedString(u.stored(kind, name).Object, "metadata", field, key)
	if err != nil || got != want {
		u.t.Errorf("with kubectl %s the server has %s %s=%q of %s (%v), want %q", u.version, field, key, got, name, err, want)
	}
}

// gone wants the server not to have the object.
func (u user) gone(kind schema.GroupVersionResource, name string) {
	u.t.Helper()
	if _, err := u.of(kind).Get(u.t.Context(), name, metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "not found") {
		u.t.Errorf("with kubectl %s the server has %s (%v), want none", u.version, name, err)
	}
}

// exits runs kubectl, which must end with that code, and returns what it printed.
func (u user) exits(code int, args ...string) string {
	u.t.Helper()
	out, err := u.run(args...)
	got := 0
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		u.t.Fatal(err)
	}
	if got != code {
		u.t.Errorf("kubectl %s %s ended with %d, want %d, and printed\n%s", u.version, strings.Join(args, " "), got, code, out)
	}
	return out
}

// edits runs kubectl edit with a sed program for an editor.
func (u user) edits(want, program string, args ...string) {
	u.t.Helper()
	cmd := u.command(u.t.Context(), append([]string{"edit"}, args...)...)
	cmd.Env = append(cmd.Env, "KUBE_EDITOR=sed -i "+program)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		u.t.Errorf("kubectl %s edit %s: %v\n%s\nwant %q in it", u.version, strings.Join(args, " "), err, out, want)
	}
}

// watches starts a kubectl that watches, and returns when its watch has begun.
func (u user) watches(args ...string) *running {
	u.t.Helper()
	r := startCommand(u.t, func(ctx context.Context) *exec.Cmd { return u.command(ctx, append(args, "-v=6")...) })
	r.sees(u.t, "watch=true")
	return r
}

// v1alpha1 writes a manifest of a widget as old clients do.
func (u user) v1alpha1(name, spec string) string {
	u.t.Helper()
	const object = "apiVersion: shop.example.com/v1alpha1\nkind: Widget\nmetadata: {name: %s, labels: {app: %[1]s}}\nspec: %s\n"
	return write(u.t, name+".yaml", fmt.Sprintf(object, name, spec))
}

// oldSpec is what clients see of newSpec, the spec of widgets that new makes.
const (
	oldSpec = `{legacyTimeout: "30", count: 2, tier: ephemeral, note: plain, parts: [{id: a, weight: "7"}]}`
	newSpec = `{"timeoutSeconds":30,"replicas":2,"tier":"stateless","note":"plain","parts":[{"id":"a","grams":7}],"color":"red","limits":{"cpu":"1"}}`
)

// new makes a widget directly, as clients of v1 do.
func (u user) new(name string) {
	u.t.Helper()
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"shop.example.com/v1","kind":"Widget","metadata":{"name":%q,"labels":{"app":%[1]q}},"spec":%s}`, name, newSpec)
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		u.t.Fatal(err)
	}
	if _, err := u.of(widgetKind).Create(u.t.Context(), object, metav1.CreateOptions{}); err != nil {
		u.t.Fatal(err)
	}
}

// holds wants the server to have a widget with newSpec and these changes to it: a merge
// patch.
func (u user) holds(name, changes string) {
	u.t.Helper()
	var spec, patch map[string]any
	if err := errors.Join(json.Unmarshal([]byte(newSpec), &spec), json.Unmarshal([]byte(changes), &patch)); err != nil {
		u.t.Fatal(err)
	}
	for key, value := range patch {
		if spec[key] = value; value == nil {
			delete(spec, key)
		}
	}
	want, err := json.Marshal(spec)
	if err != nil {
		u.t.Fatal(err)
	}
	u.specOf(widgetKind, name, string(want))
}

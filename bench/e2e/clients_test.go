package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// objects is how many objects an informer sees come, change and go.
const objects = 20

// TestClients runs the libraries that controllers are made of through MVP and
// direct, and wants the same of both.
func TestClients(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{APIServerArgs: []string{"--feature-gates=WatchList=true"}}) // 1.31 has it off
	m := l.serve(t, map[string]string{"mvp-rules.yaml": read(t, demo.Manifests, "mvp-rules.yaml")}, "all")
	// Informers of client-go, with watch-list streaming: on a kind that passes as it
	// is (typed, protobuf) and on one that is converted (dynamic).
	t.Run("informer", func(t *testing.T) { testInformer(t, m, configMaps(t, m)) })
	t.Run("informer of a converted kind", func(t *testing.T) { testInformer(t, m, customResources(t, m)) })
	t.Run("controller-runtime", func(t *testing.T) { testControllerRuntime(t, m) })
}

// testControllerRuntime runs an operator that was built with controller-runtime,
// on both versions of the custom resource.
func testControllerRuntime(t *testing.T, m *mvp) {
	bin := filepath.Join(t.TempDir(), "controller")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
	build.Dir = filepath.Join("modules", "controller")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the controller: %v\n%s", err, out)
	}
	run := func(kubeconfig, version string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, "--kubeconfig", kubeconfig, "--version", version)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("the controller on %s: %v\n%s", version, err, out)
		}
		t.Logf("the controller on %s took %v", version, time.Since(began).Round(time.Millisecond))
		return string(out)
	}
	want := run(m.lab.KubeconfigPath(controlplane.Admin, "b"), "v1beta1")
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		if got := run(m.kubectl(newKubectl).kubeconfig, version); got != want {
			t.Errorf("on %s through mvp:\n%s\ndirect:\n%s", version, got, want)
		}
	}
}

// A subject is a kind under test, with an informer through MVP and one direct.
type subject struct {
	path            string // of the list through MVP
	through, direct cache.SharedIndexInformer
	create          func(ctx context.Context, name string) error
	update          func(ctx context.Context, name string, n int) error
	delete          func(ctx context.Context, name string) error

	// comparable is what an object of either informer must have in common.
	comparable func(any) any
}

const (
	informerAgent = "mvp-e2e-informer"
	writerAgent   = "mvp-e2e-writer"
)

func (m *mvp) config(t *testing.T, agent string) (through, direct *rest.Config) {
	t.Helper()
	var configs []*rest.Config
	for _, path := range []string{m.kubectl(newKubectl).kubeconfig, m.lab.KubeconfigPath(controlplane.Admin, "b")} {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		config.UserAgent, config.QPS, config.WarningHandler = agent, -1, rest.NoWarnings{}
		configs = append(configs, config)
	}
	return configs[0], configs[1]
}

func configMaps(t *testing.T, m *mvp) subject {
	t.Helper()
	typed := func(config *rest.Config) *kubernetes.Clientset {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	informer := func(config *rest.Config) cache.SharedIndexInformer {
		factory := informers.NewSharedInformerFactoryWithOptions(typed(config), 0, informers.WithNamespace("default"))
		return factory.Core().V1().ConfigMaps().Informer()
	}
	through, direct := m.config(t, informerAgent)
	writer, _ := m.config(t, writerAgent)
	maps := typed(writer).CoreV1().ConfigMaps("default")
	return subject{
		path:    "/api/v1/namespaces/default/configmaps",
		through: informer(through),
		direct:  informer(direct),
		create: func(ctx context.Context, name string) error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "0"}}
			_, err := maps.Create(ctx, object, metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name string, n int) error {
			object, err := maps.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			object.Data["n"] = fmt.Sprint(n)
			_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
			return err
		},
		delete: func(ctx context.Context, name string) error {
			return maps.Delete(ctx, name, metav1.DeleteOptions{})
		},
		comparable: func(object any) any { return object },
	}
}

// customResources are seen as v1alpha1 through MVP, which no server serves, and
// as v1beta1 direct.
func customResources(t *testing.T, m *mvp) subject {
	t.Helper()
	kind := schema.GroupVersionResource{Group: "myapps.example.com", Version: "v1alpha1", Resource: "customresources"}
	client := func(config *rest.Config) dynamic.Interface {
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	informer := func(config *rest.Config, version string) cache.SharedIndexInformer {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client(config), 0, "default", nil)
		return factory.ForResource(kind.GroupResource().WithVersion(version)).Informer()
	}
	through, direct := m.config(t, informerAgent)
	writer, _ := m.config(t, writerAgent)
	resources := client(writer).Resource(kind).Namespace("default")
	return subject{
		path:    "/apis/myapps.example.com/v1alpha1/namespaces/default/customresources",
		through: informer(through, "v1alpha1"),
		direct:  informer(direct, "v1beta1"),
		create: func(ctx context.Context, name string) error {
			_, err := resources.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "myapps.example.com/v1alpha1", "kind": "CustomResource",
				"metadata": map[string]any{"name": name},
				"spec":     map[string]any{"config": map[string]any{"legacyTimeout": "30"}, "stateManagement": "ephemeral"},
			}}, metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name string, n int) error {
			patch := fmt.Sprintf(`{"spec":{"config":{"legacyTimeout":"%d"}}}`, 100+n)
			_, err := resources.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		},
		delete: func(ctx context.Context, name string) error {
			return resources.Delete(ctx, name, metav1.DeleteOptions{})
		},
		comparable: func(object any) any { return sameInBothVersions(object.(*unstructured.Unstructured)) },
	}
}

// sameInBothVersions puts what a CustomResource says into words that do not
// depend on its version.
func sameInBothVersions(object *unstructured.Unstructured) any {
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	config, _ := spec["config"].(map[string]any)
	metadata := object.DeepCopy().Object["metadata"]
	if object.GetAPIVersion() == "myapps.example.com/v1alpha1" {
		if spec["stateManagement"] == "ephemeral" {
			spec["stateManagement"] = "stateless"
		}
		return fmt.Sprint(metadata, spec["stateManagement"], config["legacyTimeout"])
	}
	return fmt.Sprint(metadata, spec["stateManagement"], config["requestTimeoutSeconds"])
}

// testInformer has both informers see objects there before them, objects that
// come, change and go, and a restart of every server.
func testInformer(t *testing.T, m *mvp, s subject) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name := func(i int) string { return fmt.Sprintf("informed-%d", i) }
	for i := range objects / 2 {
		must(s.create(ctx, name(i)))
	}

	through, direct := record(t, ctx, s.through), record(t, ctx, s.direct)
	for i := objects / 2; i < objects; i++ {
		must(s.create(ctx, name(i)))
	}
	for n := range 3 {
		for i := range objects {
			must(s.update(ctx, name(i), n))
		}
	}
	for i := range objects / 4 {
		must(s.delete(ctx, name(i)))
	}
	m.eventually("both informers have seen all events", func() bool {
		return through.count() >= direct.count() && direct.deleted() == objects/4 && through.deleted() == objects/4
	})
	compareEvents(t, through, direct)
	compareStores(t, s)

	before := through.count()
	for _, server := range m.lab.Names() {
		must(m.lab.Restart(ctx, server))
		m.ready()
	}
	for i := objects / 4; i < objects; i++ {
		must(s.update(ctx, name(i), 99))
	}
	must(s.create(ctx, "after-restart"))
	must(s.delete(ctx, name(objects-1)))
	m.eventually("both informers have caught up after the restarts", func() bool {
		const deleted = objects/4 + 1 // the last change
		return through.deleted() == deleted && direct.deleted() == deleted
	})
	compareStores(t, s)
	if got, want := through.count()-before, objects-objects/4+2; got != want {
		t.Errorf("after the restarts the informer through mvp saw %d changes, want %d: no more and no fewer", got, want)
	}
	through.stop()
	m.checkWatchList(t, s.path)
	for _, name := range s.through.GetStore().ListKeys() {
		if _, name, _ := strings.Cut(name, "/"); strings.HasPrefix(name, "informed-") || name == "after-restart" {
			must(s.delete(ctx, name))
		}
	}
}

// checkWatchList sees to it that the informer through MVP, which has stopped, had its
// list streamed: it watched and sent no request for a list. A watch is logged when it
// ends, which a restart of a server need not make it do.
func (m *mvp) checkWatchList(t *testing.T, path string) {
	t.Helper()
	verbs := map[any]int{}
	m.eventually("a watch of the informer is logged", func() bool {
		clear(verbs)
		for _, record := range m.log.records("request") {
			if record["path"] == path && record["userAgent"] == informerAgent {
				verbs[record["verb"]]++
			}
		}
		return verbs["watch"] > 0
	})
	t.Logf("requests of the informer: %v", verbs)
	if verbs["list"] != 0 {
		t.Errorf("the informer sent these requests: %v, want no list", verbs)
	}
}

func compareEvents(t *testing.T, through, direct *recorded) {
	t.Helper()
	through.mu.Lock()
	defer through.mu.Unlock()
	direct.mu.Lock()
	defer direct.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(direct.events)) {
		if !slices.Equal(through.events[name], direct.events[name]) {
			t.Errorf("events of %s\nthrough mvp: %v\ndirect: %v", name, through.events[name], direct.events[name])
		}
	}
	if len(through.events) != len(direct.events) {
		t.Errorf("events of %d objects through mvp, of %d direct", len(through.events), len(direct.events))
	}
}

// contents are the objects that an informer holds.
func contents(informer cache.SharedIndexInformer, comparable func(any) any) map[string]string {
	all := map[string]string{}
	for _, object := range informer.GetStore().List() {
		text, _ := json.Marshal(comparable(object)) // of what was JSON or protobuf before
		all[object.(metav1.Object).GetName()] = string(text)
	}
	return all
}

func compareStores(t *testing.T, s subject) {
	t.Helper()
	through, direct := contents(s.through, s.comparable), contents(s.direct, s.comparable)
	for name, want := range direct {
		if through[name] != want {
			t.Errorf("%s\nthrough mvp: %s\ndirect: %s", name, through[name], want)
		}
	}
	if len(through) != len(direct) {
		t.Errorf("%d objects through mvp, %d direct", len(through), len(direct))
	}
}

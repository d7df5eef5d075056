package e2e

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// TestCBOR has client-go's dynamic client speak CBOR, and nothing else, to a server that
// does: what it sees through MVP, of the server's version and of one that is converted,
// is held to what it sees of the server itself.
func TestCBOR(t *testing.T) {
	t.Parallel()
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsAllowCBOR, true)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsPreferCBOR, true)
	l := startLabWith(t, controlplane.Config{
		Versions:    []string{newVersion},
		VersionArgs: map[string][]string{newVersion: {"--feature-gates=CBORServingAndStorage=true"}},
	})
	m := l.serve(t, map[string]string{"mvp-rules.yaml": read(t, demo.Manifests, "mvp-rules.yaml")})
	direct := newCBORClient(t, l.KubeconfigPath(controlplane.Admin, "a"), "v1beta1")
	passed := newCBORClient(t, m.kubectl(newKubectl).kubeconfig, "v1beta1")
	converted := newCBORClient(t, m.kubectl(newKubectl).kubeconfig, "v1alpha1")
	for _, through := range []*cborClient{passed, converted} {
		t.Run(through.version, func(t *testing.T) { testCBOR(t, direct, through) })
	}
}

func testCBOR(t *testing.T, direct, through *cborClient) {
	ctx := t.Context()
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s gave\n%v\nof the server it is\n%v", what, got, want)
		}
	}
	stored := func(name string) any {
		t.Helper()
		object, err := direct.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return through.seen(t, object)
	}

	made, err := through.Create(ctx, through.object(t, "made"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same("create", made.Object, stored("made"))
	same("what was created", spec(made), spec(through.object(t, "made")))
	applied, err := through.Apply(ctx, "applied", through.object(t, "applied"), metav1.ApplyOptions{FieldManager: "m"})
	if err != nil {
		t.Fatal(err)
	}
	same("apply", applied.Object, stored("applied"))
	same("what was applied", spec(applied), spec(through.object(t, "applied")))
	made.SetLabels(map[string]string{"updated": "yes"})
	updated, err := through.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same("update", updated.Object, stored("made"))
	got, err := through.Get(ctx, "made", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same("get", got.Object, updated.Object)

	list, err := through.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := direct.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list.GetResourceVersion() != want.GetResourceVersion() || list.GetKind() != want.GetKind() || len(list.Items) != 2 || len(want.Items) != 2 {
		t.Fatalf("list gave %v, of the server it is %v", list, want)
	}
	for i := range list.Items {
		same("list", list.Items[i].Object, through.seen(t, &want.Items[i]))
	}
	gotType, event := through.watched(t, applied.GetResourceVersion())
	wantType, wantEvent := direct.watched(t, applied.GetResourceVersion())
	same("watch", gotType, wantType)
	same("watch", event.Object, through.seen(t, wantEvent))

	through.fails(t, direct, "a get of none", func(c *cborClient) error {
		_, err := c.Get(ctx, "none", metav1.GetOptions{})
		return err
	})
	through.fails(t, direct, "a second create", func(c *cborClient) error {
		_, err := c.Create(ctx, c.object(t, "made"), metav1.CreateOptions{})
		return err
	})
	through.fails(t, direct, "a create of a wrong type", func(c *cborClient) error {
		object := c.object(t, "wrong")
		object.Object["spec"] = "text"
		_, err := c.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	for _, name := range []string{"made", "applied"} {
		if err := through.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	through.onlyCBOR(t)
}

// cborClient is a client of one version of the custom resource. It notes in which forms
// its bodies go and come.
type cborClient struct {
	dynamic.ResourceInterface
	version string

	mu    sync.Mutex
	forms []string
}

func newCBORClient(t *testing.T, kubeconfig, version string) *cborClient {
	t.Helper()
	c := &cborClient{version: version}
	config := adminConfig(t, kubeconfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cborRecorder{c, next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "myapps.example.com", Version: version, Resource: "customresources"}
	c.ResourceInterface = client.Resource(resource).Namespace("default")
	return c
}

type cborRecorder struct {
	client *cborClient
	next   http.RoundTripper
}

func (r cborRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		r.client.mu.Lock()
		defer r.client.mu.Unlock()
		r.client.forms = append(r.client.forms, req.Method+" "+req.Header.Get("Content-Type")+" "+resp.Header.Get("Content-Type"))
	}
	return resp, err
}

// onlyCBOR checks that the client has seen each form of CBOR and no other.
func (c *cborClient) onlyCBOR(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.forms)
	want := []string{
		"DELETE application/cbor application/cbor", "GET  application/cbor", "GET  application/cbor-seq",
		"PATCH application/apply-patch+cbor application/cbor", "POST application/cbor application/cbor", "PUT application/cbor application/cbor",
	}
	if got := slices.Compact(slices.Clone(c.forms)); !slices.Equal(got, want) {
		t.Errorf("the forms of requests and answers were\n%q\nwant\n%q", got, want)
	}
}

// inOldVersion writes a custom resource of the new version in the old one.
var inOldVersion = strings.NewReplacer(`"myapps.example.com/v1beta1"`, `"myapps.example.com/v1alpha1"`,
	`"requestTimeoutSeconds":30`, `"legacyTimeout":"30"`, `"stateless"`, `"ephemeral"`)

// object is a custom resource in the client's version.
func (c *cborClient) object(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return decodedObject(t, c.words(`{"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource","metadata":{"name":"`+name+
		`","annotations":{"a":"é\n<\u0085\u007f"}},"spec":{"config":{"requestTimeoutSeconds":30},"stateManagement":"stateless"}}`))
}

func (c *cborClient) words(text string) string {
	if c.version == "v1alpha1" {
		return inOldVersion.Replace(text)
	}
	return text
}

func decodedObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func spec(object *unstructured.Unstructured) any { return object.Object["spec"] }

// seen is an object of the server's version as the client has to see it. What managers
// are noted with stays in the server's.
func (c *cborClient) seen(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	managers := object.GetManagedFields()
	rest := object.DeepCopy()
	rest.SetManagedFields(nil)
	text, err := rest.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	converted := decodedObject(t, c.words(string(text)))
	converted.SetManagedFields(managers)
	return converted.Object
}

// watched is the first event behind a resourceVersion.
func (c *cborClient) watched(t *testing.T, version string) (watch.EventType, *unstructured.Unstructured) {
	t.Helper()
	events, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	event := <-events.ResultChan()
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		t.Fatalf("a watch gave %v", event)
	}
	return event.Type, object
}

// fails checks that both clients are refused with the same Status.
func (c *cborClient) fails(t *testing.T, direct *cborClient, what string, try func(*cborClient) error) {
	t.Helper()
	var got, want *apierrors.StatusError
	if err := try(direct); !errors.As(err, &want) {
		t.Fatalf("%s was answered by the server with %v", what, err)
	}
	if err := try(c); !errors.As(err, &got) || c.words(want.Error()) != got.Error() || !reflect.DeepEqual(got.ErrStatus.Details, want.ErrStatus.Details) ||
		got.ErrStatus.Code != want.ErrStatus.Code || got.ErrStatus.Reason != want.ErrStatus.Reason {
		t.Errorf("%s gave %v, of the server it is %v", what, err, want)
	}
}

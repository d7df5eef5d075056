package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	policyac "k8s.io/client-go/applyconfigurations/policy/v1beta1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// budgetServer keeps one disruption budget of policy/v1, in JSON, and decodes what it
// gets strictly.
type budgetServer struct {
	t *testing.T

	mu     sync.Mutex
	stored []byte
	events []string
}

// answer does what the request says.
func (s *budgetServer) answer(q request) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := url.Parse(q.target)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	switch {
	case q.method == "POST" || q.method == "PUT":
		s.store("ADDED", []byte(q.body))
	case q.method == "PATCH":
		patched, err := jsonpatch.MergePatch(s.stored, []byte(q.body))
		if err != nil {
			s.t.Errorf("patch %s: %v", q.body, err)
		}
		s.store("MODIFIED", patched)
	case q.method == "DELETE":
		var options metav1.DeleteOptions
		_, gvk, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(q.body), nil, &options)
		if err != nil || gvk.Version == "v1beta1" {
			s.t.Errorf("delete with %q: %v, %v", q.body, gvk, err)
		}
		return ok(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)
	case at.Query().Get("watch") != "":
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(strings.Join(s.events, ""))
	case strings.Contains(q.raw, "as=PartialObjectMetadata"):
		return ok(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","namespace":"d"}}`)
	case strings.HasSuffix(at.Path, "poddisruptionbudgets"):
		return ok(fmt.Sprintf(`{"kind":"PodDisruptionBudgetList","apiVersion":"policy/v1","metadata":{"resourceVersion":"9"},"items":[%s]}`, s.stored))
	}
	return ok(string(s.stored))
}

func (s *budgetServer) store(event string, doc []byte) {
	var typed policyv1.PodDisruptionBudget
	if _, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, &typed); err != nil || gvk.Version != "v1" {
		s.t.Errorf("the server got %s: %v, %v", doc, gvk, err)
	}
	s.stored = doc
	s.events = append(s.events, fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", event, doc))
}

// A typed client of policy/v1beta1 that speaks protobuf or CBOR works before a server
// that only has policy/v1.
func TestTypedClient(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) { checkTypedClient(t, protobufType) })
	t.Run("CBOR", func(t *testing.T) {
		allowCBOR(t)
		checkTypedClient(t, "application/cbor")
	})
}

func checkTypedClient(t *testing.T, mediaType string) {
	t.Helper()
	server := &budgetServer{t: t}
	u := record(t, "a", "1.32.13", budgetsV1, server.answer)
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	config := &rest.Config{
		Host: "http://" + r.addr, Timeout: 20 * time.Second,
		ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}, // and nothing else
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, client1 := context.Background(), client.PolicyV1beta1().PodDisruptionBudgets("d")
	one := intstr.FromInt32(1)
	want := &policyv1beta1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "d", Labels: map[string]string{"a": "b"}},
		Spec:       policyv1beta1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{}}, // selects none
	}
	check := func(what string, got *policyv1beta1.PodDisruptionBudget, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got = got.DeepCopy()
		got.TypeMeta = metav1.TypeMeta{}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s gave\n%+v\nwant\n%+v", what, got, want)
		}
	}

	got, err := client1.Create(ctx, want, metav1.CreateOptions{})
	check("create", got, err)
	got, err = client1.Get(ctx, "b", metav1.GetOptions{})
	check("get", got, err)
	want.Labels["a"] = "c"
	got, err = client1.Update(ctx, want, metav1.UpdateOptions{})
	check("update", got, err)
	want.Labels["a"] = "d"
	got, err = client1.Patch(ctx, "b", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"d"}}}`), metav1.PatchOptions{})
	check("patch", got, err)
	want.Labels["e"] = "f"
	applied := policyac.PodDisruptionBudget("b", "d").WithLabels(map[string]string{"e": "f"})
	got, err = client1.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "m"})
	check("apply", got, err)
	list, err := client1.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.ResourceVersion != "9" {
		t.Fatalf("list gave %+v, %v", list, err)
	}
	check("list", &list.Items[0], nil)
	checkWatched(t, client1.Watch, check)
	if err := client1.Delete(ctx, "b", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if !strings.Contains(string(server.stored), `"operator":"Exists"`) {
		t.Errorf("the server has %s, whose selector was not converted", server.stored)
	}
	checkMetadata(t, config)
	for _, q := range u.got() {
		if !strings.Contains(q.raw, "\r\nAccept: application/json") || !json.Valid([]byte(q.body)) && q.method != "GET" && q.method != "DELETE" {
			t.Errorf("the server was asked %q", q.raw)
		}
	}
}

// checkWatched compares the last event with what is wanted.
func checkWatched(t *testing.T, start func(context.Context, metav1.ListOptions) (watch.Interface, error), check func(string, *policyv1beta1.PodDisruptionBudget, error)) {
	t.Helper()
	events, err := start(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var last runtime.Object
	for range 4 {
		event, ok := <-events.ResultChan()
		if !ok || event.Type == watch.Error {
			t.Fatalf("the watch gave %+v", event)
		}
		last = event.Object
	}
	budget, ok := last.(*policyv1beta1.PodDisruptionBudget)
	if !ok {
		t.Fatalf("the watch gave a %T", last)
	}
	check("watch", budget, nil)
}

// checkMetadata asks for metadata only, as garbage collectors do.
func checkMetadata(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Resource(policyv1beta1.SchemeGroupVersion.WithResource("poddisruptionbudgets")).Namespace("d").Get(context.Background(), "b", metav1.GetOptions{})
	if err != nil || got.Name != "b" {
		t.Errorf("metadata: %+v, %v", got, err)
	}
}

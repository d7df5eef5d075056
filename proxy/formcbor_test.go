package proxy_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// inCBOR is a document in JSON or YAML as kube-apiserver writes it in CBOR.
func inCBOR(t *testing.T, doc string) string {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(doc, `{"`) { // JSON, whose numbers YAML would change
		text = []byte(doc)
	}
	encoded, err := cbor.Marshal(decoded(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return "\xd9\xd9\xf7" + string(encoded)
}

// decoded is a document in JSON as clients without Go types see it.
func decoded(t *testing.T, doc string) (v map[string]any) {
	t.Helper()
	if err := utiljson.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	return v
}

// allowCBOR makes the clients of client-go speak CBOR.
func allowCBOR(t *testing.T) {
	t.Helper()
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsAllowCBOR, true)
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.ClientsPreferCBOR, true)
}

// A dynamic client that speaks CBOR works on custom resources that are converted, also
// with a list that is written as it streams.
func TestDynamicClientInCBOR(t *testing.T) {
	allowCBOR(t)
	const n = 3000
	thing := func(template string, i int) string {
		return strings.Replace(template, `"name":"t"`, fmt.Sprintf(`"name":"t%d"`, i), 1)
	}
	items := make([]string, n)
	for i := range items {
		items[i] = thing(newThing, i)
	}
	u := record(t, "a", "1.32.13", things, func(q request) string {
		switch {
		case strings.Contains(q.target, "watch="):
			return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
				chunked(`{"type":"ADDED","object":`+newThing+"}\n"+`{"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"acme.io/v1","metadata":{"resourceVersion":"9"}}}`+"\n")
		case q.method == "GET" && !strings.Contains(q.target, "/things/"):
			return ok(`{"apiVersion":"acme.io/v1","kind":"ThingList","metadata":{"resourceVersion":"9","continue":"c"},"items":[` + strings.Join(items, ",") + "]}")
		case strings.Contains(q.target, "/none"):
			return respond(404, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no such thing","reason":"NotFound","code":404}`)
		}
		return ok(newThing)
	})
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://" + r.addr, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, resource := context.Background(), client.Resource(schema.GroupVersionResource{Group: "acme.io", Version: "v1beta1", Resource: "things"}).Namespace("d")
	check := func(what string, got *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got.Object, decoded(t, oldThing)) {
			t.Errorf("%s gave %v, %v", what, got, err)
		}
	}

	got, err := resource.Get(ctx, "t", metav1.GetOptions{})
	check("get", got, err)
	u.forget()
	const sent = `{"apiVersion":"acme.io/%s","kind":"Thing","metadata":{"name":"t","resourceVersion":"7"},` +
		`"spec":{"big":9223372036854775807,"float":1.0,"list":[[],{},null,true,"é\n\"<"],"%s":-1.5}}`
	object := &unstructured.Unstructured{Object: decoded(t, fmt.Sprintf(sent, "v1beta1", "old"))}
	got, err = resource.Update(ctx, object, metav1.UpdateOptions{})
	check("update", got, err)
	if q := u.only(); !reflect.DeepEqual(decoded(t, q.body), decoded(t, fmt.Sprintf(sent, "v1", "new"))) || !strings.Contains(q.body, `"float":1.0`) {
		t.Errorf("the server got %s", q.body)
	}
	got, err = resource.Apply(ctx, "t", &unstructured.Unstructured{Object: decoded(t, fmt.Sprintf(sent, "v1beta1", "old"))}, metav1.ApplyOptions{FieldManager: "m"})
	check("apply", got, err)

	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != n || list.GetContinue() != "c" {
		t.Fatalf("list gave %d items, %.300v, %v", len(list.Items), list.Object, err)
	}
	for i := range list.Items {
		if want := decoded(t, thing(oldThing, i)); !reflect.DeepEqual(list.Items[i].Object, want) {
			t.Fatalf("item %d is %v, want %v", i, list.Items[i].Object, want)
		}
	}
	events, err := resource.Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true, ResourceVersion: "3"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	event := <-events.ResultChan()
	added, _ := event.Object.(*unstructured.Unstructured)
	check("watch", added, nil)
	event = <-events.ResultChan()
	if marked, ok := event.Object.(*unstructured.Unstructured); !ok || marked.GetAPIVersion() != "acme.io/v1beta1" || marked.GetResourceVersion() != "9" {
		t.Errorf("watch gave %v", event)
	}
	if _, err := resource.Get(ctx, "none", metav1.GetOptions{}); err == nil || err.Error() != "no such thing" {
		t.Errorf("get of none gave %v", err)
	}
}

// A list is written in CBOR item by item, whatever else is in it; a table by its rows.
func TestStreamedCBOR(t *testing.T) {
	answered := ""
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(answered) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	f := func(doc string) {
		t.Helper()
		answered = doc
		got := r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things", "", "", "Accept", "application/cbor;as=Table;v=v1;g=meta.k8s.io,application/cbor")
		var v map[string]any
		if err := cbor.Unmarshal([]byte(got.body), &v); err != nil || !strings.HasPrefix(got.body, "\xd9\xd9\xf7\xbf") {
			t.Fatalf("answered %d %.100x: %v", got.code, got.body, err)
		}
		if want := decoded(t, strings.ReplaceAll(strings.ReplaceAll(doc, "acme.io/v1", "acme.io/v1beta1"), `"new"`, `"old"`)); !reflect.DeepEqual(v, want) {
			t.Errorf("answered %.300v, want %.300v", v, want)
		}
	}
	long := `"` + strings.Repeat("x", 300<<10) + `"`
	f(`{"kind":"ThingList","apiVersion":"acme.io/v1","metadata":{"resourceVersion":"9"},"items":[{"kind":"Thing","apiVersion":"acme.io/v1","spec":{"new":` + long + `}}],"more":[1,{"a":[]}],"none":null}`)
	f(`{"kind":"ThingList","apiVersion":"acme.io/v1","metadata":{"continue":` + long + `},"items":[]}`)
	f(`{"kind":"ThingList","apiVersion":"acme.io/v1","metadata":{"continue":` + long + `},"items":null}`)
	f(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"}],"rows":[{"cells":["t",1,1.5,null,` + long + `]}]}`)
}

// Fields that the client's version does not have are found in CBOR as in JSON.
func TestValidationInCBOR(t *testing.T) {
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string { return ok(budget("v1", "b")) })
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	doc := strings.Replace(budget("v1beta1", "b"), `"spec":{`, `"spec":{"bad":1,`, 1)
	want := r.do("POST", budgetsPath+"?fieldValidation=Strict", "application/json", doc)
	got := r.do("POST", budgetsPath+"?fieldValidation=Strict", "application/cbor", inCBOR(t, doc))
	if got.code != 400 || got.body != want.body || !strings.Contains(got.body, `unknown field \"spec.bad\"`) {
		t.Errorf("answered %d %s, want %d %s", got.code, got.body, want.code, want.body)
	}
}

// An expression sees a body in CBOR, which passes byte for byte.
func TestPolicyOnCBOR(t *testing.T) {
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(newThing) })
	r := start(t, map[string]string{"no.deny.cel": `request.verb == 'create' && object.spec.mode == 'b' ? 'mode ' + object.spec.mode : ''`}, nil, u)
	const path = "/apis/acme.io/v1/namespaces/d/things"
	if got := r.do("POST", path, "application/cbor", inCBOR(t, newThing)); got.code != 403 || !strings.Contains(got.body, "mode b") {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	if got := r.do("POST", path, "application/cbor", "\xa0\xa0"); got.code != 400 || !strings.Contains(got.body, "cannot read the body as application/cbor") {
		t.Errorf("answered %d %s", got.code, got.body)
	}
	if sent := u.got(); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
	body := "\xbf\x64spec\xa1\x64mode\x61a\xff" // not as kube-apiserver would write it
	r.do("POST", path, "application/cbor", body)
	if q := u.only(); q.body != body || !strings.Contains(q.raw, "\r\nContent-Type: application/cbor\r\n") {
		t.Errorf("sent %q", q.raw)
	}
}

package proxy_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// budgetsV1 is a server that has disruption budgetsV1 in policy/v1 only.
var budgetsV1 = []served{{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"}}

const budgetsPath = "/apis/policy/v1beta1/namespaces/d/poddisruptionbudgets"

// budget is a disruption budget in JSON in a version of its group.
func budget(version, name string) string {
	return fmt.Sprintf(`{"kind":"PodDisruptionBudget","apiVersion":"policy/%s","metadata":{"name":%q,"namespace":"d","resourceVersion":"7",`+
		`"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"}},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}},`+
		`"status":{"disruptionsAllowed":2,"currentHealthy":3,"desiredHealthy":1,"expectedPods":3}}`, version, name)
}

// budgetList is a list of n disruption budgets.
func budgetList(version string, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = budget(version, fmt.Sprintf("b%d", i))
	}
	return fmt.Sprintf(`{"kind":"PodDisruptionBudgetList","apiVersion":"policy/%s","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":5},"items":[%s]}`,
		version, strings.Join(items, ","))
}

// inProtobuf is an object as kube-apiserver writes it in protobuf.
func inProtobuf(t *testing.T, object runtime.Object, doc string) string {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), object); err != nil {
		t.Fatal(err)
	}
	return encodeProtobuf(t, object)
}

// Answers in each form that the client may ask for: the server is asked for JSON with
// the client's parameters, and the client gets what kube-apiserver would choose.
func TestAnswerForms(t *testing.T) {
	const metadataOnly = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","resourceVersion":"7"}}`
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"gone","reason":"NotFound","details":{"name":"b"},"code":404}`
	const table = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[{"cells":["b"],"object":` +
		`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b"}}}]}`
	oldBudget := inProtobuf(t, &policyv1beta1.PodDisruptionBudget{}, budget("v1beta1", "b"))
	reply := ""
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string {
		if strings.Contains(reply, `"Failure"`) {
			return respond(404, "application/json", reply)
		}
		return ok(reply)
	})
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	f := func(accept, answer, wantAccept, wantType, want string) {
		t.Helper()
		u.forget()
		reply = answer
		target := budgetsPath + "/b"
		if strings.Contains(answer, "List") {
			target = budgetsPath
		}
		got := r.do("GET", target, "", "", "Accept", accept)
		if sent := u.only().raw; !strings.Contains(sent, "\r\nAccept: "+wantAccept+"\r\n") {
			t.Errorf("Accept: %s was sent as %q, want %s", accept, sent, wantAccept)
		}
		if got.header.Get("Content-Type") != wantType || got.body != want && !sameJSON(got.body, want) {
			t.Errorf("Accept: %s was answered in %s with\n%q\nwant %s\n%q", accept, got.header.Get("Content-Type"), got.body, wantType, want)
		}
		if got.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
			t.Errorf("Accept: %s was answered with %d bytes and the length %q", accept, len(got.body), got.header.Get("Content-Length"))
		}
	}

	single := budget("v1", "b")
	f(protobufType+",application/json", single, "application/json", protobufType, oldBudget)
	f(protobufType, single, "application/json", protobufType, oldBudget)
	f("application/json,"+protobufType, single, "application/json", "application/json", budget("v1beta1", "b"))
	f(protobufType+";q=0.5,application/json", single, "application/json", "application/json", budget("v1beta1", "b"))
	f("application/json;q=0.5,"+protobufType, single, "application/json", protobufType, oldBudget)
	f("*/*", single, "application/json", "application/json", budget("v1beta1", "b"))
	f("text/html, application/*;q=0.8", single, "application/json;q=0.8", "application/json", budget("v1beta1", "b"))
	f("application/cbor,"+protobufType, single, "application/json", "application/cbor", inCBOR(t, budget("v1beta1", "b")))
	f("application/cbor;q=0.5,"+protobufType, single, "application/json", protobufType, oldBudget)
	f("application/cbor", status, "application/json", "application/cbor", inCBOR(t, status))
	f("application/cbor;as=Table;v=v1;g=meta.k8s.io", table, "application/json;as=Table;v=v1;g=meta.k8s.io", "application/cbor", inCBOR(t, table))
	f("application/cbor;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", metadataOnly, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"application/cbor", inCBOR(t, metadataOnly))
	f(protobufType+",application/json", budgetList("v1", 3), "application/json", protobufType,
		inProtobuf(t, &policyv1beta1.PodDisruptionBudgetList{}, budgetList("v1beta1", 3)))
	f(protobufType+",application/json", status, "application/json", protobufType, inProtobuf(t, &metav1.Status{}, status))

	// Metadata is in protobuf, tables never are.
	const partial = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	f(protobufType+partial+",application/json"+partial, metadataOnly, "application/json"+partial, protobufType,
		encodeProtobuf(t, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: "7"},
		}))
	const asTable = ";as=Table;g=meta.k8s.io;v=v1"
	f(protobufType+asTable+",application/json"+asTable, table, "application/json"+asTable, "application/json", table)
	f(protobufType+";as=Budget;g=acme.io;v=v1,application/json", single, "application/json", "application/json", budget("v1beta1", "b"))

	// A kind that has no protobuf is answered in JSON, and so is a Status that is odd.
	const odd = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":"many"}`
	f(protobufType, odd, "application/json", "application/json", odd)
	const other = `{"kind":"Other","apiVersion":"acme.io/v1"}`
	f(protobufType+",application/json", other, "application/json", "application/json", other)
}

// A custom resource has no protobuf, but its metadata has.
func TestAnswerFormsOfCustomResources(t *testing.T) {
	const metadataOnly = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"t"}}`
	reply := newThing
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(reply) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	const path = "/apis/acme.io/v1beta1/namespaces/d/things/t"
	const partial = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

	if got := r.do("GET", path, "", "", "Accept", protobufType+",application/json"); got.header.Get("Content-Type") != "application/json" || !sameJSON(got.body, oldThing) {
		t.Errorf("answered in %s: %q", got.header.Get("Content-Type"), got.body)
	}
	got := r.do("GET", path, "", "", "Accept", protobufType)
	if got.code != 406 || !strings.Contains(got.body, "only the following media types are accepted: application/json, application/yaml, application/cbor (") {
		t.Errorf("protobuf of a custom resource was answered %d %s", got.code, got.body)
	}
	reply = metadataOnly
	want := encodeProtobuf(t, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "t"},
	})
	if got := r.do("GET", path, "", "", "Accept", protobufType+partial); got.body != want {
		t.Errorf("metadata was answered %d %q, want %q", got.code, got.body, want)
	}
}

// A list that is not held in JSON is the same in protobuf, and in YAML.
func TestLargeListForms(t *testing.T) {
	const n = 3000
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string { return ok(budgetList("v1", n)) })
	r := start(t, nil, []string{"policy-v1beta1"}, u)

	got := r.do("GET", budgetsPath, "", "", "Accept", protobufType+",application/json")
	if want := inProtobuf(t, &policyv1beta1.PodDisruptionBudgetList{}, budgetList("v1beta1", n)); got.body != want {
		t.Errorf("answered %d with %d bytes, want %d", got.code, len(got.body), len(want))
	}
	got = r.do("GET", budgetsPath, "", "", "Accept", "application/yaml")
	inJSON, err := yaml.YAMLToJSON([]byte(got.body))
	if err != nil || !sameJSON(string(inJSON), budgetList("v1beta1", n)) || !strings.HasPrefix(got.body, "kind: PodDisruptionBudgetList\n") {
		t.Errorf("answered %d with %.300s, %v", got.code, got.body, err)
	}
}

// Nothing of a list in protobuf is sent before all of it is there: what fails in the
// middle is a Status, and what breaks off is read from another server.
func TestLargeProtobufListThatFails(t *testing.T) {
	whole := budgetList("v1", 3000)
	reply := strings.TrimSuffix(whole, "]}") + `,{"metadata":7}]}`
	var broken atomic.Bool
	broken.Store(true)
	answer := func(q request) string {
		if broken.Load() {
			return ok(reply)
		}
		broken.Store(true)
		fmt.Fprintf(q.conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(whole), whole[:len(whole)-1000])
		q.conn.Close()
		return ""
	}
	r := start(t, nil, []string{"policy-v1beta1"}, record(t, "a", "1.32.13", budgetsV1, answer), record(t, "b", "1.32.13", budgetsV1, answer))

	got := r.do("GET", budgetsPath, "", "", "Accept", protobufType)
	if got.code != 500 || !strings.Contains(got.body, "cannot write the answer as "+protobufType) {
		t.Errorf("answered %d %.300q", got.code, got.body)
	}
	reply = whole
	broken.Store(false)
	got = r.do("GET", budgetsPath, "", "", "Accept", protobufType)
	if want := inProtobuf(t, &policyv1beta1.PodDisruptionBudgetList{}, budgetList("v1beta1", 3000)); got.code != 200 || got.body != want {
		t.Errorf("answered %d %.300q", got.code, got.body)
	}
}

// Events of a watch in protobuf, each as soon as the server has sent it.
func TestWatchInProtobuf(t *testing.T) {
	const bookmark = `{"kind":"PodDisruptionBudget","apiVersion":"policy/%s","metadata":{"resourceVersion":"8","creationTimestamp":null},"spec":{},"status":{}}`
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string {
		var body string
		for _, event := range []string{
			`{"type":"ADDED","object":` + budget("v1", "b") + "}\n",
			`{"type":"BOOKMARK","object":` + fmt.Sprintf(bookmark, "v1") + "}\n",
			`{"type":"ERROR","object":` + status + "}\n",
		} {
			body += chunked(event[:10]) + chunked(event[10:])
		}
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "0\r\n\r\n"
	})
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	got := r.do("GET", budgetsPath+"?watch=1&allowWatchBookmarks=true&resourceVersion=3", "", "", "Accept", protobufType+";stream=watch,application/json")
	if kind := got.header.Get("Content-Type"); kind != protobufType+";stream=watch" {
		t.Errorf("the watch is in %s", kind)
	}
	if sent := u.only().raw; !strings.Contains(sent, "\r\nAccept: application/json;stream=watch\r\n") {
		t.Errorf("sent %q", sent)
	}
	want := frameOf(t, "ADDED", inProtobuf(t, &policyv1beta1.PodDisruptionBudget{}, budget("v1beta1", "b"))) +
		frameOf(t, "BOOKMARK", inProtobuf(t, &policyv1beta1.PodDisruptionBudget{}, fmt.Sprintf(bookmark, "v1beta1"))) +
		frameOf(t, "ERROR", inProtobuf(t, &metav1.Status{}, status))
	if got.body != want {
		t.Errorf("the client got\n%q\nwant\n%q", got.body, want)
	}
}

// frameOf is an event of a watch in protobuf.
func frameOf(t *testing.T, kind, object string) string {
	t.Helper()
	event, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: []byte(object)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(event)))) + string(event)
}

// An event that the Go type cannot hold ends the watch, and the client learns why.
func TestProtobufWatchThatFails(t *testing.T) {
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string {
		event := `{"type":"ADDED","object":` + strings.Replace(budget("v1", "b"), `"expectedPods":3`, `"expectedPods":"many"`, 1) + "}\n"
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(event)
	})
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	_, in := r.raw("GET " + budgetsPath + "?watch=1 HTTP/1.1\r\nHost: mvp\r\nAccept: " + protobufType + "\r\n\r\n")
	var got bytes.Buffer
	if _, err := got.ReadFrom(in); err != nil {
		t.Fatal(err)
	}
	if text := got.String(); !strings.Contains(text, "\x05ERROR") || !strings.Contains(text, "cannot write the answer as "+protobufType) {
		t.Errorf("the client got %q", text)
	}
}

// YAML answers keep the digits of numbers, and every string reads as a string.
func TestAnswersInYAML(t *testing.T) {
	odd := []string{
		"", "yes", "No", "y", "null", "~", "1", "1e3", "0x1f", "1:20", "2026-01-02", "- a", "a: b", "a #b", " a", "a ", "#", "a\nb\n", "\t", `"`, `\`,
		"é", "😀", "\u0085", "\u2028", "\ufeff", "\x00", "\x1b", "&a", "*a", "!a", "%a", "@a", "`a", "{}", "[", "|", ">", "?", "=", "<<", ".inf", ".NaN", "-", "a/b-c.d", "true",
	}
	strs, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(newThing, `"new":`, `"odd":`+string(strs)+`,"list":[[1,[]],{"a":{},"b":[{"c":null}]},[[true]]],"y":"n","new":`, 1)
	want := strings.Replace(oldThing, `"old":`, `"odd":`+string(strs)+`,"list":[[1,[]],{"a":{},"b":[{"c":null}]},[[true]]],"y":"n","old":`, 1)
	u := record(t, "a", "1.32.13", things, func(request) string { return ok(body) })
	r := start(t, map[string]string{"things.yaml": rules}, nil, u)
	got := r.do("GET", "/apis/acme.io/v1beta1/namespaces/d/things/t", "", "", "Accept", "application/yaml,application/json;q=0.1")
	if kind := got.header.Get("Content-Type"); kind != "application/yaml" {
		t.Fatalf("answered in %s: %s", kind, got.body)
	}
	if !strings.Contains(got.body, "\n  \"n\": 12345678901234567890\n") || !strings.Contains(got.body, "\n  old: 1.50\n") {
		t.Errorf("numbers were changed: %s", got.body)
	}
	var object, wanted any
	if err := yaml.Unmarshal([]byte(got.body), &object); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(object, wanted) {
		t.Errorf("answered %s\nwhich is %v\nwant %v", got.body, object, wanted)
	}
	if got := r.do("GET", "/apis/acme.io/v1beta1/things?watch=1", "", "", "Accept", "application/yaml"); got.code != 406 ||
		!strings.Contains(got.body, "accepted: application/json;stream=watch, application/cbor-seq (") {
		t.Errorf("a watch in YAML was answered %d %s", got.code, got.body)
	}
}

// Typed clients label what they send in protobuf with their version.
func TestDeleteOptionsInProtobuf(t *testing.T) {
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string { return ok(`{"kind":"Status","apiVersion":"v1","status":"Success"}`) })
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	options := func(apiVersion string) string {
		return encodeProtobuf(t, &metav1.DeleteOptions{
			TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: apiVersion}, GracePeriodSeconds: new(int64),
		})
	}
	for sent, want := range map[string]string{
		options("policy/v1beta1"): options("policy/v1"),
		options("v1"):             options("v1"),
		"no protobuf":             "no protobuf",
	} {
		u.forget()
		r.do("DELETE", budgetsPath+"/b", protobufType, sent)
		if got := u.only().body; got != want {
			t.Errorf("sent %q for %q, want %q", got, sent, want)
		}
	}
}

// What is the same in every version passes in the form that the client asked for.
func TestSubresourceForms(t *testing.T) {
	u := record(t, "a", "1.32.13", budgetsV1, func(request) string { return respond(200, protobufType, "k8s\x00anything") })
	u.subresources = map[string][]string{"poddisruptionbudgets": {"scale"}}
	r := start(t, nil, []string{"policy-v1beta1"}, u)
	got := r.do("GET", budgetsPath+"/b/scale", "", "", "Accept", protobufType+",application/json")
	if got.body != "k8s\x00anything" || !strings.Contains(u.only().raw, "Accept: "+protobufType+",application/json\r\n") {
		t.Errorf("sent %q and answered %d %q", u.only().raw, got.code, got.body)
	}
}

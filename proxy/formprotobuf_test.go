package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// listKinds calls f with each kind of Kubernetes that has lists.
func listKinds(f func(gvk schema.GroupVersionKind)) {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		apiVersion := gvk.GroupVersion().String()
		_, list := newMessage(apiVersion, gvk.Kind+"List").(metav1.ListMetaAccessor)
		if list && newMessage(apiVersion, gvk.Kind) != nil {
			f(gvk)
		}
	}
}

// A list of every kind is, item by item, what kube-apiserver's serializer makes of it.
func TestProtobufListOfEveryKind(t *testing.T) {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	seen := 0
	listKinds(func(gvk schema.GroupVersionKind) {
		seen++
		apiVersion := gvk.GroupVersion().String()
		doc := fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"9","continue":"c"},`+
			`"items":[{"metadata":{"name":"a","creationTimestamp":null}},{"kind":%q,"metadata":{"name":"b","labels":{"c":"d"}}}]}`, gvk.Kind, apiVersion, gvk.Kind)
		whole := newMessage(apiVersion, gvk.Kind+"List")
		if err := json.Unmarshal([]byte(doc), whole); err != nil {
			t.Fatalf("%v: %v", gvk, err)
		}
		var want, got bytes.Buffer
		if err := serializer.Encode(whole, &want); err != nil {
			t.Fatalf("%v: %v", gvk, err)
		}
		list := protobufList{reserve: func(int64) error { return nil }}
		if err := list.read(strings.NewReader(doc)); err != nil {
			t.Fatalf("%v: %v", gvk, err)
		}
		if err := list.writeTo(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%v: item by item %q, %v, want %q", gvk, got.Bytes(), err, want.Bytes())
		}
		if atOnce, err := protobufOf([]byte(doc)); err != nil || !bytes.Equal(atOnce, want.Bytes()) {
			t.Errorf("%v: at once %q, %v, want %q", gvk, atOnce, err, want.Bytes())
		}
	})
	if seen < 50 {
		t.Errorf("only %d kinds", seen)
	}
}

func TestProtobufListErrors(t *testing.T) {
	none := errors.New("no memory")
	f := func(doc, want string) {
		t.Helper()
		list := protobufList{reserve: func(n int64) error {
			if n > 1000 {
				return none
			}
			return nil
		}}
		if err := list.read(strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s gave %v, want %s", doc, err, want)
		}
	}

	const head = `{"kind":"PodList","apiVersion":"v1",`
	f(`{"items":[{}],"kind":"PodList","apiVersion":"v1"}`, "items before it says of which kind")
	f(`{"kind":"Pods","apiVersion":"v1","items":[{}]}`, "items before it says of which kind")
	f(`{"kind":"ThingList","apiVersion":"acme.io/v1","items":null}`, "acme.io/v1 ThingList has no such form")
	f(head+`"items":[{"metadata":[]}]}`, "cannot write the answer as application/vnd.kubernetes.protobuf: ")
	f(head+`"items":[{}`, "unexpected EOF")
	f(head+`"items":[{"metadata":{"name":"`+strings.Repeat("x", 2000)+`"}}]}`, "no memory")
	f(head+`"metadata":[]}`, "cannot unmarshal array")
	f(head+`"items":{}}`, "its items are no array")
	f(head+`"items":[]`, "unexpected EOF")
	f(head, "unexpected EOF")
}

// A list larger than what is held is refused with what to do.
func TestProtobufListTooLarge(t *testing.T) {
	item := `{"metadata":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`
	list := protobufList{reserve: func(int64) error { return nil }}
	r, stop := pulled(func(w io.Writer) error {
		_, err := io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[`+item)
		for err == nil {
			_, err = io.WriteString(w, ","+item)
		}
		return err
	})
	defer stop()
	if err := list.read(r); err == nil || !strings.Contains(err.Error(), "67108864 bytes") || toStatus(err).code != 413 {
		t.Errorf("an endless list gave %v", err)
	}
}

// The error of what writes comes behind its last byte, and it ends when nobody reads
// on.
func TestPulled(t *testing.T) {
	broken := errors.New("broken")
	r, stop := pulled(func(w io.Writer) error {
		for _, s := range []string{"a", "", "bc"} {
			if _, err := io.WriteString(w, s); err != nil {
				return err
			}
		}
		return broken
	})
	got, err := io.ReadAll(r)
	if string(got) != "abc" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v", got, err)
	}
	stop()

	var ended error
	r, stop = pulled(func(w io.Writer) error {
		for ended == nil {
			_, ended = io.WriteString(w, "x")
		}
		return ended
	})
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop()
	if !errors.Is(ended, errNotPulled) {
		t.Errorf("the writer ended with %v", ended)
	}
}

// Events are written when they are whole, however they arrive, and only those.
func TestEventsInPieces(t *testing.T) {
	for _, form := range []form{formProtobuf, formCBOR} {
		t.Run(string(form), func(t *testing.T) { checkPieces(t, form) })
	}
}

func checkPieces(t *testing.T, form form) {
	t.Helper()
	const event = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}}` + "\n"
	var got bytes.Buffer
	events := &formEvents{x: &exchange{}, w: &got, form: form}
	want, err := events.appendFrame(nil, []byte(event))
	if err != nil {
		t.Fatal(err)
	}
	for i := range event {
		if got.Len() > 0 && event[i] != '\n' {
			t.Fatalf("something was written after %q", event[:i])
		}
		if _, err := events.Write([]byte(event[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := events.Write([]byte(event + "\r\n" + event)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), bytes.Repeat(want, 3)) {
		t.Errorf("wrote %q, want %q three times", got.Bytes(), want)
	}

	f := func(text, want string) {
		t.Helper()
		got.Reset()
		events := &formEvents{x: &exchange{}, w: &got, form: form}
		if _, err := events.Write([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(got.String(), want) {
			t.Errorf("%q gave %v and %q, want %s", text, err, got.Bytes(), want)
		}
	}
	f("x", "something that is no event")
	f(`{"type":"ADDED","object":{"kind":"Thing"}`+"\n]", "something that is no event")
	if form != formProtobuf {
		return
	}
	f(`{"type":"ADDED","object":{"kind":"Thing","apiVersion":"acme.io/v1"}}`+"\n", "a kind that has no such form")
	f(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":1}}`+"\n", "cannot write the answer as")
}

// Whatever a server sends, protobuf comes out that can be read again, or an error.
func FuzzProtobufOf(f *testing.F) {
	f.Add([]byte(`{"kind":"PodDisruptionBudget","apiVersion":"policy/v1beta1","metadata":{"name":"a"},"spec":{"minAvailable":"10%"}}`))
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":[{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e3"}}}]}},null]}`))
	f.Add([]byte(`{"kind":"Status","apiVersion":"v1","details":{"causes":[{}]}}`))
	f.Add([]byte(`{"kind":"Status"}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		encoded, err := protobufOf(doc)
		if err != nil || encoded == nil {
			return
		}
		if _, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(encoded, nil, nil); err != nil && !runtime.IsNotRegisteredError(err) {
			t.Errorf("%q became %q, which is %v", doc, encoded, err)
		}
	})
}

package proxy_test

import (
	"bytes"
	"strings"
	"testing"

	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// encodeProtobuf writes object as clients do.
func encodeProtobuf(t *testing.T, object runtime.Object) string {
	t.Helper()
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// customProtobuf says in protobuf that it is a custom resource.
func customProtobuf(t *testing.T) string {
	t.Helper()
	return encodeProtobuf(t, &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "acme.io/v1beta1", Kind: "Thing"}, Raw: []byte{}})
}

// A body in protobuf is converted as one in JSON, and policies look into it.
func TestProtobufBodies(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"batch", "v1", "cronjobs", "CronJob"}, {"", "v1", "configmaps", "ConfigMap"}}, nil)
	r := start(t, map[string]string{
		"10-freeze.match.cel": `request.resource == 'configmaps' && object.data.x == 'y'`,
		"10-freeze.deny.cel":  `'no y'`,
	}, []string{"batch-v1beta1"}, u)

	job := &batchv1beta1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1beta1", Kind: "CronJob"},
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: batchv1beta1.CronJobSpec{Schedule: "0 3 * * *"},
	}
	got := r.do("POST", "/apis/batch/v1beta1/namespaces/d/cronjobs", "application/vnd.kubernetes.protobuf", encodeProtobuf(t, job),
		"Accept", "application/vnd.kubernetes.protobuf,application/json")
	sent := u.only()
	if got.code != 200 || !strings.Contains(sent.body, `"apiVersion":"batch/v1"`) || !strings.Contains(sent.body, `"schedule":"0 3 * * *"`) ||
		!strings.Contains(sent.raw, "Content-Type: application/json\r\n") {
		t.Errorf("answered %d, sent %q", got.code, sent.raw)
	}

	configMap := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Data: map[string]string{"x": "y"},
	}
	got = r.do("POST", "/api/v1/namespaces/d/configmaps", "application/vnd.kubernetes.protobuf", encodeProtobuf(t, configMap))
	if got.code != 403 || !strings.Contains(got.body, "no y") {
		t.Errorf("a body that is denied in JSON was answered %d %s in protobuf", got.code, got.body)
	}
	u.forget()
	configMap.Data["x"] = "z"
	body := encodeProtobuf(t, configMap)
	r.do("POST", "/api/v1/namespaces/d/configmaps", "application/vnd.kubernetes.protobuf", body)
	if sent := u.only(); sent.body != body {
		t.Errorf("a body that was looked into arrived as %q, want %q", sent.body, body)
	}
}

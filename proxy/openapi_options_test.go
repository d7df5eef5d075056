package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// documentOf is an OpenAPI v3 document of one kind, which has a spec with one field.
func documentOf(groupVersion, plural, kind, field string) string {
	group, version, _ := strings.Cut(groupVersion, "/")
	is := `"x-kubernetes-group-version-kind":{"group":"` + group + `","version":"` + version + `","kind":"` + kind + `"}`
	return `{"openapi":"3.0.0","paths":{"/apis/` + groupVersion + `/` + plural + `":{"post":{` + is + `}}},"components":{"schemas":{
"io.k8s.` + kind + `":{"type":"object","properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"spec":{"type":"object","required":["` +
		field + `"],"properties":{"` + field + `":{"type":"string"}}}},"x-kubernetes-group-version-kind":[{"group":"` + group + `","kind":"` + kind + `","version":"` + version + `"}]}}}}`
}

// What a client may send of one of Kubernetes' own kinds in a version that is gone is what
// that version had, or anything where that is not known: a client that checks by the
// servers' version would refuse it.
func TestOpenAPIOfGoneKinds(t *testing.T) {
	f := func(library, groupVersion, target, plural, kind, field string, has, hasNot []string) {
		t.Helper()
		group, version, _ := strings.Cut(target, "/")
		u := record(t, "a", "1.32.13", []served{{group, version, plural, kind}}, nil)
		u.openapi = func(path string) string {
			if path == "/openapi/v3" {
				return ok(`{"paths":{"apis/` + target + `":{"serverRelativeURL":"/openapi/v3/apis/` + target + `?hash=1"}}}`)
			}
			return ok(documentOf(target, plural, kind, field))
		}
		r := start(t, nil, []string{library}, u)
		r.eventually("OpenAPI v3 lists "+groupVersion, func() bool {
			return strings.Contains(r.do("GET", "/openapi/v3", "", "").body, `"apis/`+groupVersion+`"`)
		})
		got := r.do("GET", "/openapi/v3/apis/"+groupVersion, "", "")
		for _, want := range has {
			if got.code != http.StatusOK || !strings.Contains(got.body, want) {
				t.Errorf("the document of %s is %d %s\nwithout %s", groupVersion, got.code, got.body, want)
			}
		}
		for _, not := range hasNot {
			if strings.Contains(got.body, not) {
				t.Errorf("the document of %s has %s:\n%s", groupVersion, not, got.body)
			}
		}
	}
	// Its Go type says what it has; what that refers to and the document has not is any.
	f("networking-v1beta1", "networking.k8s.io/v1beta1", "networking.k8s.io/v1", "ingresses", "Ingress", "defaultBackend",
		[]string{`"serviceName":{`, `"x-kubernetes-preserve-unknown-fields":true`}, []string{`"defaultBackend"`, `"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"`})
	f("apiextensions-v1beta1", "apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", "versions",
		[]string{`"validation":{`, `"JSONPath":{`}, []string{`"webhook":{`, `"required":[`})
	f("autoscaling-v2beta1", "autoscaling/v2beta1", "autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "behavior",
		[]string{`"targetAverageUtilization":{`}, []string{`"behavior"`})
	// There is no Go type.
	f("coordination-v1alpha1", "coordination.k8s.io/v1alpha1", "coordination.k8s.io/v1alpha2", "leasecandidates", "LeaseCandidate", "strategy",
		[]string{`"x-kubernetes-preserve-unknown-fields":true`}, []string{`"strategy"`, `"required"`})
	// Both versions are the same, so that the servers' tells more.
	f("batch-v1beta1", "batch/v1beta1", "batch/v1", "cronjobs", "CronJob", "schedule", []string{`"required":["schedule"]`}, nil)
}

// autoscaling/v2beta2 has a form in protobuf, though client-go does not have it any more.
func TestProtobufOfV2beta2(t *testing.T) {
	const stored = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"shop"},"spec":{"maxReplicas":7}}`
	u := record(t, "a", "1.32.13", []served{{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"}}, func(request) string { return ok(stored) })
	r := start(t, nil, []string{"autoscaling-v2beta2"}, u)
	sent := encodeProtobuf(t, &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 7},
	})
	// A client of that age says v2beta2 in the envelope, around the same bytes.
	var envelope runtime.Unknown
	if err := envelope.Unmarshal([]byte(sent[len("k8s\x00"):])); err != nil {
		t.Fatal(err)
	}
	envelope.APIVersion = "autoscaling/v2beta2"
	message, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const protobuf = "application/vnd.kubernetes.protobuf"
	got := r.do("POST", "/apis/autoscaling/v2beta2/namespaces/d/horizontalpodautoscalers", protobuf, "k8s\x00"+string(message), "Accept", protobuf)
	if q := u.only(); !strings.Contains(q.body, `"apiVersion":"autoscaling/v2"`) || !strings.Contains(q.body, `"maxReplicas":7`) {
		t.Errorf("sent %q", q.body)
	}
	if !strings.HasPrefix(got.body, "k8s\x00") {
		t.Fatalf("answered %d %q", got.code, got.body)
	}
	if err := envelope.Unmarshal([]byte(got.body[len("k8s\x00"):])); err != nil {
		t.Fatal(err)
	}
	var answer autoscalingv2.HorizontalPodAutoscaler
	if err := answer.Unmarshal(envelope.Raw); err != nil || envelope.APIVersion != "autoscaling/v2beta2" || answer.Spec.MaxReplicas != 7 {
		t.Errorf("answered a %s %v, %v", envelope.APIVersion, answer.Spec, err)
	}
}

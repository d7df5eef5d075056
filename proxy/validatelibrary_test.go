package proxy_test

import (
	"slices"
	"strings"
	"testing"
)

// A field that only the servers' version has is unknown in the client's. The programs of
// the library know it and would take it for their own work: it is told as unknown, and
// dropped, as by a server of the client's version.
func TestLibraryTakesNoFieldsOfTheServersVersion(t *testing.T) {
	ingress := served{"networking.k8s.io", "v1", "ingresses", "Ingress"}
	hpa := served{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"}
	slice := served{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"}
	crd := served{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"}
	const merge, patch = "application/merge-patch+json", "application/json-patch+json"
	tests := []struct {
		name, library string
		serves        served
		stored        string // the spec, or more, of what the server has
		mediaType     string // of a patch; a create if it is none
		body          string
		unknown       string
		never         string // in what the server is sent
	}{
		{"backend", "networking-v1beta1", ingress, `"spec":{}`, "", `"spec":{"backend":{"service":{"name":"n","port":{"number":1}}}}`, "spec.backend.service", `"number"`},
		{
			"backend of a rule", "networking-v1beta1", ingress, `"spec":{}`, "",
			`"spec":{"rules":[{"http":{"paths":[{"path":"/","backend":{"service":{"name":"n"}}}]}}]}`, "spec.rules[0].http.paths[0].backend.service", `"name":"n"`,
		},
		{
			"default backend", "networking-v1beta1", ingress, `"spec":{"defaultBackend":{"service":{"name":"a","port":{"number":80}}}}`, merge,
			`{"spec":{"defaultBackend":{"service":{"name":"n"}}}}`, "spec.defaultBackend", `"n"`,
		},
		{
			"default backend by JSON patch", "networking-v1beta1", ingress, `"spec":{"defaultBackend":{"service":{"name":"a","port":{"number":80}}}}`, patch,
			`[{"op":"add","path":"/spec/defaultBackend","value":{"service":{"name":"n"}}}]`, "spec.defaultBackend", `"n"`,
		},
		{
			"behavior", "autoscaling-v2beta1", hpa, `"spec":{"maxReplicas":2}`, merge,
			`{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":3}}}}`, "spec.behavior", `"behavior"`,
		},
		{
			"target", "autoscaling-v2beta1", hpa, `"spec":{"maxReplicas":2}`, "",
			`"spec":{"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":5}}}]}`,
			"spec.metrics[0].resource.target", `"averageUtilization"`,
		},
		{"zone", "discovery-v1beta1", slice, `"endpoints":[]`, "", `"endpoints":[{"addresses":["10.0.0.1"],"zone":"z"}]`, "endpoints[0].zone", `"z"`},
		{
			"jsonPath", "apiextensions-v1beta1", crd, `"spec":{}`, "",
			`"spec":{"group":"acme.io","names":{"kind":"A","plural":"as"},"version":"v1","additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":".spec.a"}]}`,
			"spec.additionalPrinterColumns[0].jsonPath", `".spec.a"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := func(version, rest string) string {
				return `{"apiVersion":"` + tt.serves.group + `/` + version + `","kind":"` + tt.serves.kind + `","metadata":{"name":"t","resourceVersion":"7"},` + rest + `}`
			}
			u := record(t, "a", "1.32.13", []served{tt.serves}, func(request) string { return ok(object(tt.serves.version, tt.stored)) })
			u.own = func(q request) (string, bool) { // also where it plays a server of definitions
				return ok(object(tt.serves.version, tt.stored)), q.method == "POST"
			}
			r := start(t, nil, []string{tt.library}, u)
			_, old, _ := strings.Cut(tt.library, "-")
			target, method, body := "/apis/"+tt.serves.group+"/"+old+"/namespaces/d/"+tt.serves.resource, "POST", object(old, tt.body)
			if tt.library == "apiextensions-v1beta1" {
				target = strings.Replace(target, "/namespaces/d", "", 1)
			}
			mediaType := "application/json"
			if tt.mediaType != "" {
				target, method, body, mediaType = target+"/t", "PATCH", tt.body, tt.mediaType
			}
			told := `unknown field "` + tt.unknown + `"`
			if got := r.do(method, target+"?fieldValidation=Strict", mediaType, body); got.code != 400 && got.code != 422 || !strings.Contains(toldStatus(t, got).Message, told) {
				t.Errorf("Strict was answered %d %s, want %s", got.code, got.body, told)
			}
			for _, query := range []string{"?fieldValidation=Warn", "?fieldValidation=Ignore"} {
				got := r.do(method, target+query, mediaType, body)
				warned := slices.Contains(got.header.Values("Warning"), `299 - "`+strings.ReplaceAll(told, `"`, `\"`)+`"`)
				if got.code != 200 || warned != strings.HasSuffix(query, "Warn") {
					t.Errorf("%s was answered %d %s with the warnings %q", query, got.code, got.body, got.header.Values("Warning"))
				}
			}
			for _, q := range u.got() {
				if q.method != "GET" && strings.Contains(q.body, tt.never) {
					t.Errorf("sent %s %s", q.method, q.body)
				}
			}
		})
	}
}

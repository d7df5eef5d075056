package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// The kinds that people lost data of when their versions changed, by policies that are
// written here: they show that the policy language can say it.

// beforeKeeper runs MVP with files before a keeper that serves one resource.
func beforeKeeper(t *testing.T, files map[string]string, serves served) (*rig, *keeper) {
	t.Helper()
	k := &keeper{lax: true}
	u := record(t, "a", "1.32.13", []served{serves}, k.answer)
	return start(t, files, nil, u), k
}

const endpointSliceRules = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: slices}
spec:
  apiMigrationRules:
    - apiGroup: discovery.k8s.io
      resource: endpointslices
      kind: EndpointSlice
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: 'endpoints[*].topology["kubernetes.io/hostname"]', action: move, targetPath: 'endpoints[*].nodeName'}
        - {path: 'endpoints[*].topology["topology.kubernetes.io/zone"]', action: move, targetPath: 'endpoints[*].zone'}
        - {path: 'endpoints[*].topology', action: rename, targetPath: 'endpoints[*].deprecatedTopology'}
`

// A write by the new version leaves every endpoint its node, in both versions.
func Test2_03_EndpointSlice(t *testing.T) {
	r, k := beforeKeeper(t, map[string]string{"slices.yaml": endpointSliceRules},
		served{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"})
	const old, young = "/apis/discovery.k8s.io/v1beta1/namespaces/d/endpointslices", "/apis/discovery.k8s.io/v1/namespaces/d/endpointslices"
	const endpoints = `[{"addresses":["10.0.0.1"],"conditions":{"ready":true},"topology":{"kubernetes.io/hostname":"n1","topology.kubernetes.io/zone":"z1"}},` +
		`{"addresses":["10.0.0.2"],"topology":{"kubernetes.io/hostname":"n2","x":"y"}},{"addresses":["10.0.0.3"]}]`
	r.do("POST", old, "application/json", `{"apiVersion":"discovery.k8s.io/v1beta1","kind":"EndpointSlice","metadata":{"name":"t"},"endpoints":`+endpoints+`}`)
	r.do("PATCH", young+"/t", "application/json-patch+json", `[{"op":"add","path":"/endpoints/0/conditions/ready","value":false}]`)

	check := func(path, want string) {
		t.Helper()
		var got struct{ Endpoints json.RawMessage }
		answer := r.do("GET", path+"/t", "", "")
		if err := json.Unmarshal([]byte(answer.body), &got); err != nil || !sameJSON(string(got.Endpoints), want) {
			t.Errorf("%s was answered %s, want the endpoints\n%s", path, answer.body, want)
		}
	}
	check(young, `[{"addresses":["10.0.0.1"],"conditions":{"ready":false},"nodeName":"n1","zone":"z1"},`+
		`{"addresses":["10.0.0.2"],"nodeName":"n2","deprecatedTopology":{"x":"y"}},{"addresses":["10.0.0.3"]}]`)
	check(old, strings.Replace(endpoints, `"ready":true`, `"ready":false`, 1))
	if k.version != 2 {
		t.Errorf("the server was written %d times", k.version)
	}
}

// autoscalers are a policy that serves autoscaling/v1 from v2: v1 has one CPU target
// for the list of metrics, and nothing for the behaviour.
var autoscalers = map[string]string{
	"hpa.convert.cel": `{'resource': 'horizontalpodautoscalers', 'kind': 'HorizontalPodAutoscaler', 'from': 'autoscaling/v1', 'to': 'autoscaling/v2',
		'preserve': ['spec.metrics', 'spec.behavior', 'status.currentMetrics', 'status.conditions']}`,
	"hpa.request.jq": `.spec.targetCPUUtilizationPercentage as $cpu
		| if $cpu != null then .spec.metrics = [{type: "Resource", resource: {name: "cpu", target: {type: "Utilization", averageUtilization: $cpu}}}] else . end
		| del(.spec.targetCPUUtilizationPercentage)`,
	"hpa.response.jq": `((.spec.metrics // []) | map(select(.type == "Resource" and .resource.name == "cpu"))) as $cpu
		| if $cpu != [] then .spec.targetCPUUtilizationPercentage = $cpu[0].resource.target.averageUtilization else . end
		| del(.spec.metrics, .spec.behavior, .status.currentMetrics, .status.conditions)`,
}

// A change by the old version, of whatever form, keeps metrics and behaviour that it
// does not have, and leaves no trace of them in annotations.
func Test2_17_HorizontalPodAutoscaler(t *testing.T) {
	const metrics = `"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}},` +
		`{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}]`
	const behavior = `"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}`
	const path = "/apis/autoscaling/v1/namespaces/d/horizontalpodautoscalers/t"
	old := func(meta, cpu string) string {
		return `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"t"` + meta + `},"spec":{"maxReplicas":3` + cpu + `}}`
	}
	memory := `"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}}]`
	changed := `"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]`
	tests := []struct{ name, has, method, mediaType, body, want string }{
		{
			"a label by merge patch", metrics + "," + behavior, "PATCH", "application/merge-patch+json",
			`{"metadata":{"labels":{"a":"b"}}}`, metrics + "," + behavior,
		},
		{
			"a label by strategic merge patch", metrics + "," + behavior, "PATCH", "application/strategic-merge-patch+json",
			`{"metadata":{"labels":{"a":"b"}}}`, metrics + "," + behavior,
		},
		{
			"a label by JSON patch", metrics + "," + behavior, "PATCH", "application/json-patch+json",
			`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, metrics + "," + behavior,
		},
		{
			"a label by update", metrics + "," + behavior, "PUT", "application/json",
			old(`,"resourceVersion":"1","labels":{"a":"b"}`, `,"targetCPUUtilizationPercentage":80`), metrics + "," + behavior,
		},
		{
			"a label by update without a condition", metrics + "," + behavior, "PUT", "application/json",
			old(`,"labels":{"a":"b"}`, `,"targetCPUUtilizationPercentage":80`), metrics + "," + behavior,
		},
		{
			"metrics of which the old version has none", memory + "," + behavior, "PUT", "application/json",
			old(`,"labels":{"a":"b"}`, ``), memory + "," + behavior,
		},
		{
			"another CPU target is the client's own", metrics + "," + behavior, "PUT", "application/json",
			old(`,"labels":{"a":"b"}`, `,"targetCPUUtilizationPercentage":50`), changed + "," + behavior,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, k := beforeKeeper(t, autoscalers, served{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"})
			k.set(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"t"},"spec":{"maxReplicas":3,` + tt.has + `}}`)
			got := r.do(tt.method, path, tt.mediaType, tt.body)
			if got.code != 200 || strings.Contains(got.body, "metrics") || strings.Contains(got.body, "behavior") {
				t.Errorf("answered %d %s", got.code, got.body)
			}
			if spec := k.spec(t); !sameJSON(spec, `{"maxReplicas":3,`+tt.want+`}`) {
				t.Errorf("stored %s", spec)
			}
			if !strings.Contains(k.object, `"labels":{"a":"b"}`) || strings.Contains(k.object, "annotations") {
				t.Errorf("stored %s", k.object)
			}
		})
	}
}

// ingresses are a policy that serves networking.k8s.io/v1beta1 from v1.
var ingresses = map[string]string{
	"ingress.convert.cel": `{'resource': 'ingresses', 'kind': 'Ingress', 'from': 'networking.k8s.io/v1beta1', 'to': 'networking.k8s.io/v1'}`,
	"ingress.request.jq": `def up: if type == "object" and has("serviceName") then
			{service: ({name: .serviceName} + (if (.servicePort | type) == "number" then {port: {number: .servicePort}}
				elif .servicePort == null then {} else {port: {name: .servicePort}} end))}
			+ del(.serviceName, .servicePort)
		else . end;
		if .spec | has("backend") then .spec.defaultBackend = (.spec.backend | up) | del(.spec.backend) else . end
		| if .spec.rules then .spec.rules |= map(if .http.paths then
			.http.paths |= map(.backend |= up | .pathType = (.pathType // "ImplementationSpecific"))
		else . end) else . end`,
	"ingress.response.jq": `def down: if type == "object" and has("service") then
			{serviceName: .service.name, servicePort: (.service.port.number // .service.port.name)} + del(.service)
		else . end;
		if .spec | has("defaultBackend") then .spec.backend = (.spec.defaultBackend | down) | del(.spec.defaultBackend) else . end
		| if .spec.rules then .spec.rules |= map(if .http.paths then .http.paths |= map(.backend |= down) else . end) else . end`,
	"ingress-shape.match.cel": `request.resource == 'ingresses' && request.version == 'v1beta1' && request.verb in ['create', 'update']`,
	"ingress-shape.deny.cel": `has(object.spec.defaultBackend) ||
		object.spec.?rules.orValue([]).exists(r, r.?http.?paths.orValue([]).exists(p, has(p.backend.service)))
		? 'the object has fields of networking.k8s.io/v1 under v1beta1' : ''`,
}

// A backend arrives as the new version has it and comes back as it was; an object of
// mixed shapes is refused, not emptied.
func Test2_19_Ingress(t *testing.T) {
	r, k := beforeKeeper(t, ingresses, served{"networking.k8s.io", "v1", "ingresses", "Ingress"})
	const path = "/apis/networking.k8s.io/v1beta1/namespaces/d/ingresses"
	object := func(spec string) string {
		return `{"apiVersion":"networking.k8s.io/v1beta1","kind":"Ingress","metadata":{"name":"t"},"spec":` + spec + `}`
	}
	const old = `{"backend":{"serviceName":"fallback","servicePort":"http"},"rules":[{"host":"h","http":{"paths":[` +
		`{"path":"/a","backend":{"serviceName":"a","servicePort":8080}},` +
		`{"path":"/b","pathType":"Exact","backend":{"resource":{"kind":"Bucket","name":"b"}}}]}},{"host":"empty"}]}`
	r.do("POST", path, "application/json", object(old))
	const young = `{"defaultBackend":{"service":{"name":"fallback","port":{"name":"http"}}},"rules":[{"host":"h","http":{"paths":[` +
		`{"path":"/a","pathType":"ImplementationSpecific","backend":{"service":{"name":"a","port":{"number":8080}}}},` +
		`{"path":"/b","pathType":"Exact","backend":{"resource":{"kind":"Bucket","name":"b"}}}]}},{"host":"empty"}]}`
	if spec := k.spec(t); !sameJSON(spec, young) {
		t.Errorf("stored %s\nwant   %s", spec, young)
	}
	// The old version has the same default, so that its server would have said it, too.
	back := strings.Replace(old, `"path":"/a",`, `"path":"/a","pathType":"ImplementationSpecific",`, 1)
	var got struct{ Spec json.RawMessage }
	answer := r.do("GET", path+"/t", "", "")
	if err := json.Unmarshal([]byte(answer.body), &got); err != nil || !sameJSON(string(got.Spec), back) {
		t.Errorf("came back as %s\nwant the spec  %s", answer.body, back)
	}
	for _, mixed := range []string{
		`{"defaultBackend":{"service":{"name":"a"}}}`,
		`{"rules":[{"http":{"paths":[{"backend":{"service":{"name":"a","port":{"number":80}}}}]}}]}`,
	} {
		if got := r.do("POST", path, "application/json", object(mixed)); got.code != 403 || !strings.Contains(got.body, "fields of networking.k8s.io/v1 under v1beta1") {
			t.Errorf("%s was answered %d %s", mixed, got.code, got.body)
		}
	}
	if k.version != 1 {
		t.Errorf("the server was written %d times", k.version)
	}
}

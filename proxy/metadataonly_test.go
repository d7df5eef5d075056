package proxy_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelPolicies rename a label and change the values of another, by rules and by programs.
var labelPolicies = map[string]map[string]string{
	"rules": {"things.yaml": `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: things}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: things
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: spec.old, action: rename, targetPath: spec.new}
        - {path: metadata.labels.tier, action: rename, targetPath: 'metadata.labels["acme.io/tier"]'}
        - {path: metadata.annotations.env, action: modify, matchValue: prod, replaceValue: production}
`},
	"programs": {
		"things.convert.cel": `{'resource': 'things', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
		"things.response.jq": `rename(.spec.new; .spec.old) | rename(.metadata.labels["acme.io/tier"]; .metadata.labels.tier) |
			mapvalue(.metadata.annotations.env; "production"; "prod")`,
	},
}

// Whoever asks for metadata alone, or for a table of it, sees the labels and annotations
// of the client's version, as in the whole object: get, list, watch, and kubectl's -L.
func TestMetadataOnlyInTheClientsNames(t *testing.T) {
	const path = "/apis/acme.io/v1beta1/namespaces/d/things"
	const of = ";g=meta.k8s.io;v=v1"
	const partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"t","uid":"u","generation":3,` +
		`"labels":{"a":"b","acme.io/tier":"gold"},"annotations":{"env":"production"}}}`
	const whole = `{"kind":"Thing","apiVersion":"acme.io/v1","metadata":{"labels":{"acme.io/tier":"gold"}},"spec":{"new":1}}`
	list := func(item string) string {
		return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","continue":"c"},"items":[` + item + `,` + item + `]}`
	}
	table := func(object string) string {
		return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[{"name":"Name"}],"rows":[{"cells":["t"],"object":` + object + `}]}`
	}
	event := func(object string) string { return `{"type":"ADDED","object":` + object + `}` + "\n" }
	tests := []struct{ name, target, accept, reply string }{
		{"an object", path + "/t", ";as=PartialObjectMetadata" + of, partial},
		{"a list", path, ";as=PartialObjectMetadataList" + of, list(partial)},
		{"a long list", path, ";as=PartialObjectMetadataList" + of, list(strings.TrimSuffix(strings.Repeat(partial+",", 5000), ","))},
		{"a table", path, ";as=Table" + of, table(partial)},
		{"a table of objects", path + "?includeObject=Object", ";as=Table" + of, table(whole)},
		{"a watch", path + "?watch=1", ";as=PartialObjectMetadata" + of, event(partial) + event(partial)},
		{"a watch of tables", path + "?watch=1", ";as=Table" + of, event(table(partial))},
	}
	inOld := strings.NewReplacer("acme.io/tier", "tier", "production", "prod", "acme.io/v1", "acme.io/v1beta1", `"new"`, `"old"`)
	for form, files := range labelPolicies {
		var reply string
		u := record(t, "a", "1.32.13", things, func(q request) string {
			if strings.Contains(q.target, "watch=1") {
				return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(reply) + "0\r\n\r\n"
			}
			return ok(reply)
		})
		r := start(t, files, nil, u)
		for _, tt := range tests {
			t.Run(form+"/"+tt.name, func(t *testing.T) {
				u.forget()
				reply = tt.reply
				query := tt.target
				if strings.Contains(query, "watch=1") {
					query += "&timeoutSeconds=1"
				}
				got := r.do("GET", query, "", "", "Accept", "application/json"+tt.accept+",application/json")
				if want := inOld.Replace(tt.reply); got.code != 200 || !strings.HasPrefix(got.body, want) {
					t.Errorf("answered %d %.2000s\nwant %.2000s", got.code, got.body, want)
				}
				if q := u.got()[0]; !strings.Contains(q.raw, tt.accept) {
					t.Errorf("the server was asked %s", q.raw)
				}
			})
		}
		t.Run(form+"/in protobuf", func(t *testing.T) {
			reply = partial
			want := encodeProtobuf(t, &metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
				ObjectMeta: metav1.ObjectMeta{
					Name: "t", UID: "u", Generation: 3, Labels: map[string]string{"a": "b", "tier": "gold"}, Annotations: map[string]string{"env": "prod"},
				},
			})
			if got := r.do("GET", path+"/t", "", "", "Accept", protobufType+";as=PartialObjectMetadata"+of); got.body != want {
				t.Errorf("answered %d %q\nwant %q", got.code, got.body, want)
			}
		})
	}
}

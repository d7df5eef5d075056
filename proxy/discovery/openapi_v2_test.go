package discovery

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func parseV2(t testing.TB, text string) *OpenAPIV2 {
	t.Helper()
	d, err := ParseOpenAPIV2([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMergeOpenAPIV2(t *testing.T) {
	older := parseV2(t, `{"swagger":"2.0","info":{"version":"1.31"},"host":"older","paths":{
		"/apis/g/v1/things":{"get":{"x":1},"patch":{"x":1},"parameters":[1]},
		"/apis/g/v1beta1/things":{"get":{}}},
		"definitions":{
			"Thing":{"properties":{"gone":{}}},
			"Old":{"type":"object"},
			"DeleteOptions":{"properties":{"a":{}},"x-kubernetes-group-version-kind":[{"group":"g","kind":"DeleteOptions","version":"v1beta1"},{"group":"","kind":"DeleteOptions","version":"v1"}]}}}`)
	newer := parseV2(t, `{"info":{"version":"1.32"},"swagger":"2.0","paths":{
		"/apis/g/v1/things":{"get":{"x":2}}},
		"definitions":{
			"Thing":{"properties":{"fresh":{}}},
			"DeleteOptions":{"properties":{"a":{},"b":{}},"x-kubernetes-group-version-kind":[{"group":"","kind":"DeleteOptions","version":"v1"}]}},
		"parameters":{"p-1":{"name":"p"}}}`)
	want := `{"swagger":"2.0","info":{"version":"1.32"},` +
		`"paths":{"/apis/g/v1/things":{"get":{"x":2},"parameters":[1],"patch":{"x":1}},"/apis/g/v1beta1/things":{"get":{}}},` +
		`"definitions":{"DeleteOptions":{"properties":{"a":{},"b":{}},"x-kubernetes-group-version-kind":[{"group":"","kind":"DeleteOptions","version":"v1"},{"group":"g","kind":"DeleteOptions","version":"v1beta1"}]},` +
		`"Old":{"type":"object"},"Thing":{"properties":{"fresh":{}}}},` +
		`"parameters":{"p-1":{"name":"p"}},"host":"older"}`
	sources := []OpenAPIV2Source{{"a", "v1.31.0", older}, {"b", "v1.32.0", newer}}
	for range 2 {
		if got := string(MergeOpenAPIV2(sources).JSON()); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		slices.Reverse(sources)
	}
}

func TestParseOpenAPIV2Errors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := ParseOpenAPIV2([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.40s\n got %v\nwant %s", text, err, want)
		}
	}
	f(`null`, "cannot read the OpenAPI v2 document: it is null, not an object")
	f(`{`, "cannot read the OpenAPI v2 document: unexpected end of JSON input")
	f(`{"paths":[]}`, "cannot read paths of the OpenAPI v2 document: json: cannot unmarshal array into Go value of type map[string]json.RawMessage")
	f(strings.Repeat(" ", MaxOpenAPIV2+1), "cannot read an OpenAPI v2 document of 67108865 bytes: at most 67108864 are read")
}

// withConversions derives on the real document of 1.32.
func withConversions(t testing.TB, d *OpenAPIV2, derived ...DerivedV2) map[string]any {
	t.Helper()
	out, err := d.WithConversions(derived)
	if err != nil {
		t.Fatal(err)
	}
	return answeredJSON(t, out)
}

const policyV1beta1 = "policy/v1beta1 poddisruptionbudgets -> policy/v1 poddisruptionbudgets"

// A converted version has paths and definitions under its own names; what it shares
// with others stays where it is, with its kind added.
func TestOpenAPIV2OfAConvertedVersion(t *testing.T) {
	d := readRecorded(t, "1.32.13").openAPIV2(t)
	before := answeredJSON(t, d)
	got := withConversions(t, d, DerivedV2{Conversions: conversions(t, policyV1beta1)})
	leadSomewhere(t, got)

	definitions := asObject(got["definitions"])
	budget := asObject(definitions["io.k8s.api.policy.v1beta1.PodDisruptionBudget"])
	spec := asObject(asObject(budget["properties"])["spec"])
	if spec["$ref"] != "#/definitions/io.k8s.api.policy.v1beta1.PodDisruptionBudgetSpec" {
		t.Errorf("the spec is %v", spec)
	}
	if kinds, _ := budget[extensionGVK].([]any); len(kinds) != 1 || readGVK(kinds[0]) != (groupKind{"policy", "v1beta1", "PodDisruptionBudget"}) {
		t.Errorf("the kind is %v", budget[extensionGVK])
	}
	post := asObject(asObject(asObject(got["paths"])["/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets"])["post"])
	if post["operationId"] != "createPolicyV1beta1NamespacedPodDisruptionBudget" {
		t.Errorf("the operation is %v", post["operationId"])
	}
	options := asObject(definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"])
	if kinds, _ := options[extensionGVK].([]any); !slices.ContainsFunc(kinds, func(k any) bool {
		return readGVK(k) == groupKind{"policy", "v1beta1", "DeleteOptions"}
	}) {
		t.Errorf("DeleteOptions are not of policy/v1beta1")
	}
	// All that was there is there, but for that one list of kinds.
	for _, section := range []string{"paths", "definitions", "parameters"} {
		for name, value := range asObject(before[section]) {
			same := reflect.DeepEqual(asObject(got[section])[name], value)
			if shared := strings.HasSuffix(name, ".DeleteOptions") || strings.HasSuffix(name, ".WatchEvent"); !same && !shared {
				t.Errorf("%s %s is another one now", section, name)
			}
		}
	}
}

func answeredJSON(t testing.TB, d *OpenAPIV2) map[string]any {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(d.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// leadSomewhere fails for references that lead nowhere.
func leadSomewhere(t testing.TB, doc map[string]any) {
	t.Helper()
	eachString(doc, "$ref", func(ref string) string {
		section, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
		if asObject(doc[section])[name] == nil {
			t.Errorf("%s leads nowhere", ref)
		}
		return ref
	})
}

// What a server described is described as it was when none has it any more.
func TestOpenAPIV2Remembered(t *testing.T) {
	oldDocs, newDocs := readRecorded(t, "1.31.14"), readRecorded(t, "1.32.13")
	const group, version = "flowcontrol.apiserver.k8s.io", "v1beta3"
	convert := conversions(t, group+"/v1beta3 flowschemas -> "+group+"/v1 flowschemas")
	part := oldDocs.openAPIV2(t).Part(group, version, []string{"flowschemas"})
	got := withConversions(t, newDocs.openAPIV2(t), DerivedV2{Conversions: convert, Remembered: part})
	leadSomewhere(t, got)
	for _, name := range []string{"FlowSchema", "FlowSchemaSpec", "FlowSchemaList"} {
		name = "io.k8s.api.flowcontrol.v1beta3." + name
		want := asObject(asObject(oldDocs["/openapi/v2"])["definitions"])[name]
		if have := asObject(got["definitions"])[name]; want == nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s\n got %v\nwant %v", name, have, want)
		}
	}
	if asObject(got["definitions"])["io.k8s.api.flowcontrol.v1beta3.PriorityLevelConfiguration"] != nil {
		t.Errorf("a kind that is not converted is described, too")
	}
	if newDocs.openAPIV2(t).Part(group, version, []string{"flowschemas"}) != nil {
		t.Errorf("1.32 has v1beta3")
	}
}

// A version that a server describes is not derived; nor is one whose target nobody
// describes.
func TestOpenAPIV2NothingToDerive(t *testing.T) {
	d := readRecorded(t, "1.31.14").openAPIV2(t)
	out, err := d.WithConversions([]DerivedV2{
		{Conversions: conversions(t, "flowcontrol.apiserver.k8s.io/v1beta3 flowschemas -> flowcontrol.apiserver.k8s.io/v1 flowschemas")},
		{Conversions: conversions(t, "acme.io/v1beta1 things -> acme.io/v1 things")},
	})
	if err != nil || out != d {
		t.Errorf("another document came out, or %v", err)
	}
}

const customV2 = `{"swagger":"2.0","info":{"title":"t","version":"1"},"paths":{
	"/apis/acme.io/v2/namespaces/{namespace}/things":{"get":{"responses":{"200":{"description":"","schema":{"$ref":"#/definitions/io.acme.v2.ThingList"}}},
		"x-kubernetes-group-version-kind":{"group":"acme.io","kind":"Thing","version":"v2"}}}},
	"definitions":{
		"io.acme.v2.Thing":{"type":"object","properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"$ref":"#/definitions/Meta"},"spec":{"type":"object"}},
			"x-kubernetes-group-version-kind":[{"group":"acme.io","kind":"Thing","version":"v2"}]},
		"io.acme.v2.ThingList":{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/definitions/io.acme.v2.Thing"}}},
			"x-kubernetes-group-version-kind":[{"group":"acme.io","kind":"ThingList","version":"v2"}]},
		"io.acme.v1.Thing":{"type":"string"},
		"io.acme.v1.Thing_v2":{"type":"string"},
		"Meta":{"type":"object"}}}`

// A name that another definition has already is not taken from it.
func TestOpenAPIV2TakenName(t *testing.T) {
	got := withConversions(t, parseV2(t, customV2), DerivedV2{Conversions: conversions(t, "acme.io/v1 things -> acme.io/v2 things")})
	leadSomewhere(t, got)
	definitions := asObject(got["definitions"])
	if !reflect.DeepEqual(definitions["io.acme.v1.Thing"], map[string]any{"type": "string"}) {
		t.Errorf("the other definition became %v", definitions["io.acme.v1.Thing"])
	}
	list := asObject(asObject(asObject(definitions["io.acme.v1.ThingList"])["properties"])["items"])
	if ref := asObject(list["items"])["$ref"]; ref != "#/definitions/io.acme.v1.Thing_v3" {
		t.Errorf("the list refers to %v", ref)
	}
	if kinds, _ := asObject(definitions["io.acme.v1.Thing_v3"])[extensionGVK].([]any); len(kinds) != 1 || readGVK(kinds[0]).version != "v1" {
		t.Errorf("the renamed definition is of %v", kinds)
	}
}

// A CRD's own schema is written as kube-apiserver writes it into OpenAPI v2.
func TestOpenAPIV2CustomSchema(t *testing.T) {
	schemas := map[string]json.RawMessage{"Thing": json.RawMessage(`{"type":"object","required":["spec"],"properties":{
		"apiVersion":{"type":"string"},
		"spec":{"type":"object","nullable":true,"properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]}]},
		"status":{"type":"object","anyOf":[{}],"properties":{
			"port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
			"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"b":{"type":"string"}}},
			"list":{"type":"array","items":{"type":"object","nullable":true,"properties":{"c":{"type":"string"}}}},
			"map":{"type":"object","additionalProperties":{"type":"string","nullable":true}}}}}}`)}
	convert := conversions(t, "acme.io/v1alpha1 things -> acme.io/v2 things")
	got := withConversions(t, parseV2(t, customV2), DerivedV2{Conversions: convert, Options: ConvertOptions{Schemas: schemas}})
	properties := asObject(asObject(asObject(got["definitions"])["io.acme.v1alpha1.Thing"])["properties"])
	want := `{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"$ref":"#/definitions/Meta"},"spec":{},` +
		`"status":{"properties":{"list":{"items":{},"type":"array"},"map":{"additionalProperties":{},"type":"object"},` +
		`"open":{"x-kubernetes-preserve-unknown-fields":true},"port":{"x-kubernetes-int-or-string":true}},"type":"object"}}`
	if text, _ := json.Marshal(properties); string(text) != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	if required := asObject(asObject(got["definitions"])["io.acme.v1alpha1.Thing"])["required"]; required != nil {
		t.Errorf("a field that may be null is required: %v", required)
	}

	schemas["Thing"] = json.RawMessage(`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object"}}}`)
	got = withConversions(t, parseV2(t, customV2), DerivedV2{Conversions: convert, Options: ConvertOptions{Schemas: schemas}})
	if thing := asObject(asObject(got["definitions"])["io.acme.v1alpha1.Thing"]); thing["properties"] != nil {
		t.Errorf("a kind that keeps unknown fields states some: %v", thing)
	}

	schemas["Thing"] = json.RawMessage(`[]`)
	_, err := parseV2(t, customV2).WithConversions([]DerivedV2{{Conversions: convert, Options: ConvertOptions{Schemas: schemas}}})
	if want := "cannot read the schema of Thing: json: cannot unmarshal array into Go value of type map[string]interface {}"; err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

func TestOpenAPIV2Answer(t *testing.T) {
	d, err := parseV2(t, customV2).Write()
	if err != nil {
		t.Fatal(err)
	}
	plain, ok := d.Answer("", "", "")
	if !ok || plain.Status != http.StatusOK || plain.ContentType != "application/json" || plain.Vary != "Accept-Encoding, Accept" ||
		plain.CacheControl != "no-cache, private" || plain.ETag != `"`+Hash(plain.Body)+`"` || len(plain.ETag) != 130 {
		t.Errorf("unexpected head %+v", plain)
	}
	zipped, _ := d.Answer("", "br;q=1, gzip;q=0.5", "")
	z, err := gzip.NewReader(bytes.NewReader(zipped.Body))
	if err != nil || zipped.Encoding != "gzip" || zipped.ETag != plain.ETag {
		t.Fatalf("%v: %+v", err, zipped)
	}
	if body, err := io.ReadAll(z); err != nil || !bytes.Equal(body, plain.Body) {
		t.Errorf("unzipped it is %q, %v", body, err)
	}
	for _, encoding := range []string{"", "identity", "gzip;q=0", "deflate, br", "gzipped"} {
		if a, _ := d.Answer("", encoding, ""); a.Encoding != "" || !bytes.Equal(a.Body, plain.Body) {
			t.Errorf("Accept-Encoding: %s: encoded %q", encoding, a.Encoding)
		}
	}
	same, _ := d.Answer("", "gzip", `"x", `+plain.ETag)
	if same.Status != http.StatusNotModified || same.Body != nil || same.ETag != plain.ETag || same.Encoding != "" || same.Vary == "" {
		t.Errorf("asked again: %+v", same)
	}
	if none, _ := d.Answer("text/html", "", ""); none.Status != http.StatusNotAcceptable || none.Body != nil || none.ETag != "" {
		t.Errorf("not acceptable: %+v", none)
	}
}

// Without a protobuf form a server answers for it.
func TestOpenAPIV2WithoutProtobuf(t *testing.T) {
	d, err := parseV2(t, `{"swagger":"2.0","paths":{"/x":{"get":{"responses":{"200":{"schema":7}}}}}}`).Write()
	if err == nil || !strings.HasPrefix(err.Error(), "cannot write the OpenAPI v2 document as protobuf: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("unexpected error %v", err)
	}
	if _, ok := d.Answer("application/json", "", ""); !ok {
		t.Errorf("JSON is not answered")
	}
	if a, ok := d.Answer("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "", ""); ok {
		t.Errorf("protobuf is answered: %+v", a)
	}
}

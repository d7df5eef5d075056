package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	protobufs "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// The kinds of flowcontrol.apiserver.k8s.io are served in v1beta3 and v1 by Kubernetes
// 1.31, which is asked directly, and in v1 only by 1.32, which MVP is asked for.

const flowcontrolGroup = "flowcontrol.apiserver.k8s.io"

var priorityLevels = matrixKind{
	resource: "prioritylevelconfigurations", old: "v1beta3", new: "v1", watched: "abc",
	last: `{"metadata":{"labels":{"last":"yes"}}}`,
	objects: map[string]string{
		"a": priorityLevel("v1", "a", "", limited(20)),
		"b": priorityLevel("v1", "b", "", limited(0)),
		"c": priorityLevel("v1", "c", "", `{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}`),
	},
}

// A FlowSchema gets its status from kube-apiserver's own controller, at some time. So the
// status does not count, nor do tables, which show it, nor versions, which it changes.
var flowSchemas = matrixKind{
	resource: "flowschemas", old: "v1beta3", new: "v1", unsettled: true, watched: "ab",
	last: `{"metadata":{"labels":{"last":"yes"}}}`,
	objects: map[string]string{
		"a": flowSchema("v1", "a", "", flowSpec(1000, "u")),
		"b": flowSchema("v1", "b", "", flowSpec(9000, "v")),
	},
}

// zeroMeansZero is the annotation that makes 0 shares no default in v1beta3.
const zeroMeansZero = `,"annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""}`

func priorityLevel(version, name, metadata, spec string) string {
	return builtinObject("PriorityLevelConfiguration", version, name, metadata, spec)
}

func flowSchema(version, name, metadata, spec string) string {
	return builtinObject("FlowSchema", version, name, metadata, spec)
}

func builtinObject(kind, version, name, metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"GROUP/%s","kind":%q,"metadata":{"name":"NAMESPACE-%s","labels":{"side":"NAMESPACE"}%s},"spec":%s}`, version, kind, name, metadata, spec)
}

func limited(shares int) string {
	return fmt.Sprintf(`{"type":"Limited","limited":{"nominalConcurrencyShares":%d,"lendablePercent":50,"limitResponse":{"type":"Queue","queuing":{"queues":64,"handSize":6,"queueLengthLimit":50}}}}`, shares)
}

func flowSpec(precedence int, user string) string {
	return fmt.Sprintf(`{"priorityLevelConfiguration":{"name":"global-default"},"matchingPrecedence":%d,"distinguisherMethod":{"type":"ByUser"},`+
		`"rules":[{"subjects":[{"kind":"User","user":{"name":%q}}],"resourceRules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"namespaces":["*"]}]}]}`, precedence, user)
}

func testMatrixOfBuiltin(t *testing.T, l *lab) {
	library := l.before("b").serve(t, nil, "flowcontrol-v1beta3")
	for _, of := range []struct {
		kind  matrixKind
		cells []cell
		seen  [][2]string // by watches
		right []difference
	}{
		{
			priorityLevels, priorityLevelCells(),
			[][2]string{{"a", `{"spec":{"limited":{"nominalConcurrencyShares":0}}}`}, {"b", `{"spec":{"limited":{"nominalConcurrencyShares":9}}}`}, {"c", ""}},
			priorityLevelDifferences,
		},
		{flowSchemas, flowSchemaCells(), [][2]string{{"a", `{"spec":{"matchingPrecedence":1200}}`}, {"b", ""}}, flowSchemaDifferences},
	} {
		t.Run(of.kind.resource, func(t *testing.T) {
			m := &matrix{
				want:  l.side(t, of.kind, "both", l.URL("a"), flowcontrolGroup, "side-both"),
				got:   []*side{l.side(t, of.kind, "library", library.url, flowcontrolGroup, "side-mvp")},
				right: newAllowances(of.right),
			}
			m.run(t, of.cells, builtinWatches(of.seen))
			for _, s := range append(m.got, m.want) {
				s.prepare(t, "")
			}
		})
	}
}

// builtinWatches are watches in which changes are made. Kubernetes 1.31 has no initial
// events.
func builtinWatches(changes [][2]string) []watchCell {
	watches := []watchCell{
		{name: "watch from a version", query: "&resourceVersion=RV", changes: changes},
		{name: "watch in protobuf", query: "&resourceVersion=RV", accept: "application/vnd.kubernetes.protobuf;stream=watch", changes: changes},
		{name: "watch in YAML", query: "&resourceVersion=RV", accept: "application/yaml"},
	}
	for i := range watches {
		watches[i].query += "&labelSelector=side%3DNAMESPACE"
	}
	return watches
}

// builtinVerbs are requests whose answers and bodies have every form.
func builtinVerbs(object func(version, name, metadata, spec string) string, at, spec, patch string) []cell {
	const protobufType = "application/vnd.kubernetes.protobuf"
	created := object("v1beta3", "n", "", spec)
	updated := object("v1beta3", "a", at, spec)
	cells := []cell{
		{name: "get", have: "ab", method: "GET", path: "/NAMESPACE-a"},
		{name: "list", have: "ab", method: "GET", path: "?labelSelector=side%3DNAMESPACE"},
		{name: "delete", have: "a", method: "DELETE", path: "/NAMESPACE-a"},
		{name: "delete of many", have: "ab", method: "DELETE", path: "?labelSelector=side%3DNAMESPACE"},
		{name: "merge patch", have: "a", method: "PATCH", path: "/NAMESPACE-a", contentType: mergePatchType, body: patch},
		{name: "strategic merge patch", have: "a", method: "PATCH", path: "/NAMESPACE-a", contentType: "application/strategic-merge-patch+json", body: patch},
		{name: "apply", have: "a", method: "PATCH", path: "/NAMESPACE-a?fieldManager=m&force=true", contentType: applyPatchType, body: object("v1beta3", "a", "", spec)},
		{name: "get of status", have: "a", method: "GET", path: "/NAMESPACE-a/status"},
		{name: "get of nothing", have: "ab", method: "GET", path: "/NAMESPACE-z"},
		{name: "create of a wrong one", method: "POST", contentType: "application/json", body: object("v1beta3", "n", "", `{}`)},
	}
	for name, form := range map[string]string{"JSON": "application/json", "YAML": "application/yaml", "protobuf": protobufType} {
		cells = append(cells, cell{name: "create of " + name, method: "POST", contentType: form, body: created})
		cells = append(cells, cell{name: "update of " + name, have: "a", method: "PUT", path: "/NAMESPACE-a", contentType: form, body: updated})
	}
	return cells
}

func flowSchemaCells() []cell {
	cells := inAllForms(builtinVerbs(flowSchema, "", flowSpec(2000, "w"), `{"spec":{"matchingPrecedence":1500}}`))
	return slices.DeleteFunc(cells, func(c cell) bool { return strings.Contains(c.accept, "as=Table") })
}

func priorityLevelCells() []cell {
	create := func(name, query, metadata, spec string) cell {
		return cell{name: "create " + name, method: "POST", path: query, contentType: "application/json", body: priorityLevel("v1beta3", "n", metadata, spec)}
	}
	update := func(name, metadata, spec string) cell {
		return cell{name: "update " + name, have: "abc", method: "PUT", path: "/NAMESPACE-a", contentType: "application/json", body: priorityLevel("v1beta3", "a", metadata, spec)}
	}
	patch := func(name, of, contentType, body string) cell {
		return cell{name: name, have: "abc", method: "PATCH", path: "/NAMESPACE-" + of, contentType: contentType, body: body}
	}
	const strategic = "application/strategic-merge-patch+json"
	const at = `,"resourceVersion":"RV"`
	late := update("of what somebody else has changed", at, limited(30))
	late.before = `{"spec":{"limited":{"nominalConcurrencyShares":21}}}`
	apply := func(name, query, metadata, spec string) cell {
		return patch("apply "+name, "a"+query, applyPatchType, priorityLevel("v1beta3", "a", metadata, spec))
	}
	cells := []cell{
		late,
		{name: "get of zero", have: "abc", method: "GET", path: "/NAMESPACE-b"},
		{name: "get of the default", have: "abc", method: "GET", path: "/NAMESPACE-c"},
		{name: "list of a page", have: "abc", method: "GET", path: "?labelSelector=side%3DNAMESPACE&limit=2"},
		{name: "list by name", have: "abc", method: "GET", path: "?fieldSelector=metadata.name%3DNAMESPACE-a"},
		{name: "list by a field that is none", have: "abc", method: "GET", path: "?fieldSelector=spec.type%3DLimited"},
		create("of zero", "", "", limited(0)),
		create("of a real zero", "", zeroMeansZero, limited(0)),
		create("of the default", "", "", `{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}`),
		create("of the default that is zero", "", zeroMeansZero, `{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}`),
		create("of few shares", "", "", limited(-1)),
		create("of an unknown type", "", "", `{"type":"Other"}`),
		create("of several mistakes", "", "", `{"type":"Limited","limited":{"nominalConcurrencyShares":-5,"lendablePercent":101,"limitResponse":{"type":"Wrong"}}}`),
		create("of shares in words", "", "", `{"type":"Limited","limited":{"nominalConcurrencyShares":"many"}}`),
		create("with an unknown field", "", "", `{"type":"Limited","limited":{"more":1}}`),
		create("with an unknown field, strictly", "?fieldValidation=Strict", "", `{"type":"Limited","limited":{"more":1}}`),
		create("with a field twice, strictly", "?fieldValidation=Strict", "", `{"type":"Limited","type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}`),
		create("dry", "?dryRun=All&fieldManager=m", "", limited(7)),
		update("to zero", at, limited(0)),
		update("to a real zero", at+zeroMeansZero, limited(0)),
		update("without a version", "", limited(7)),
		update("to few shares", at, limited(-1)),
		update("with another UID", at+`,"uid":"11111111-1111-1111-1111-111111111111"`, limited(7)),
		patch("merge patch to zero", "a", mergePatchType, `{"spec":{"limited":{"nominalConcurrencyShares":0}}}`),
		patch("merge patch to a real zero", "a", mergePatchType, `{"metadata":{"annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""}},"spec":{"limited":{"nominalConcurrencyShares":0}}}`),
		patch("merge patch of zero", "b", mergePatchType, `{"spec":{"limited":{"lendablePercent":10}}}`),
		patch("merge patch that takes the shares away", "a", mergePatchType, `{"spec":{"limited":{"nominalConcurrencyShares":null}}}`),
		patch("merge patch to few shares", "a", mergePatchType, `{"spec":{"limited":{"nominalConcurrencyShares":-1}}}`),
		patch("merge patch with an unknown field", "a", mergePatchType, `{"spec":{"more":1}}`),
		patch("merge patch with an unknown field, strictly", "a?fieldValidation=Strict", mergePatchType, `{"spec":{"more":1}}`),
		patch("merge patch of what is not there", "z", mergePatchType, `{"spec":{"limited":{"lendablePercent":10}}}`),
		patch("merge patch at another version", "a", mergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"limited":{"lendablePercent":10}}}`),
		patch("strategic merge patch to zero", "a", strategic, `{"spec":{"limited":{"nominalConcurrencyShares":0}}}`),
		patch("strategic merge patch of zero", "b", strategic, `{"metadata":{"labels":{"x":"y"}}}`),
		patch("JSON patch", "a", jsonPatchType, `[{"op":"test","path":"/spec/limited/nominalConcurrencyShares","value":20},{"op":"replace","path":"/spec/limited/nominalConcurrencyShares","value":21}]`),
		patch("JSON patch whose test fails", "a", jsonPatchType, `[{"op":"test","path":"/spec/limited/nominalConcurrencyShares","value":1}]`),
		patch("JSON patch to zero", "a", jsonPatchType, `[{"op":"replace","path":"/spec/limited/nominalConcurrencyShares","value":0}]`),
		patch("status merge patch", "a/status", mergePatchType, `{"status":{"conditions":[{"type":"T","status":"True"}]}}`),
		apply("that conflicts", "?fieldManager=m", "", limited(22)),
		apply("by force", "?fieldManager=m&force=true", "", limited(22)),
		apply("without a manager", "", "", limited(22)),
		apply("with an unknown field", "?fieldManager=m&force=true", "", `{"type":"Limited","more":1}`),
		apply("with few shares", "?fieldManager=m&force=true", "", limited(-1)),
		{name: "create of what exists", have: "a", method: "POST", contentType: "application/json", body: priorityLevel("v1beta3", "a", "", limited(1))},
		{name: "create of another kind", method: "POST", contentType: "application/json", body: flowSchema("v1beta3", "n", "", flowSpec(1, "u"))},
		{name: "create of broken protobuf", method: "POST", contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00\xff"},
		{name: "delete with options", have: "a", method: "DELETE", path: "/NAMESPACE-a", contentType: "application/json", body: `{"apiVersion":"GROUP/v1beta3","kind":"DeleteOptions","preconditions":{"resourceVersion":"RV"}}`},
		{name: "delete of another UID", have: "a", method: "DELETE", path: "/NAMESPACE-a", contentType: "application/json", body: `{"apiVersion":"GROUP/v1beta3","kind":"DeleteOptions","preconditions":{"uid":"11111111-1111-1111-1111-111111111111"}}`},
		{name: "delete of what is not there", have: "a", method: "DELETE", path: "/NAMESPACE-z"},
	}
	return append(cells, inAllForms(builtinVerbs(priorityLevel, at, limited(7), `{"spec":{"limited":{"nominalConcurrencyShares":8}}}`))...)
}

// protobufFrom writes an object of Kubernetes in protobuf.
func protobufFrom(t *testing.T, document string) string {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var encoded bytes.Buffer
	if err := protobufs.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &encoded); err != nil {
		t.Fatal(err)
	}
	return encoded.String()
}

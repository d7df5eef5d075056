package e2e

import (
	"fmt"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
)

// heldGadget has a finalizer: it stays when it is deleted.
const heldGadget = "f"

// gadgets are the kind of package webhook.
var gadgets = matrixKind{
	resource: webhook.Resource, old: webhook.Old, new: webhook.New, namespaced: true, watched: "abc",
	objects: map[string]string{
		"a": storedGadget("a", `"labels":{"stage":"production","team":"x"}`,
			`{"requestTimeoutSeconds":30,"mode":"stateless","contact":{"owner":"o"},"scaling":{"replicas":2},"endpoints":[{"name":"w","port":80},{"name":"v","port":443}],"settings":{"k":"v"}}`),
		"b":        storedGadget("b", `"labels":{"stage":"test","team":"y"}`, `{"requestTimeoutSeconds":5,"mode":"stateful"}`),
		"c":        storedGadget("c", `"labels":{"stage":"production"}`, `{"mode":"stateful","scaling":{"replicas":0}}`),
		heldGadget: storedGadget(heldGadget, `"finalizers":["example.com/held"]`, `{"requestTimeoutSeconds":30,"contact":{"owner":"o"}}`),
	},
	status: `{"status":{"phase":"Up","replicas":2,"selector":"app=a"}}`,
	last:   `{"metadata":{"labels":{"stage":"production","last":"yes"}},"spec":{"mode":"stateless","requestTimeoutSeconds":30}}`,
}

func storedGadget(name, metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"GROUP/v1beta1","kind":"Gadget","metadata":{"name":%q,%s},"spec":%s}`, name, metadata, spec)
}

// inOldWords are the objects and their status as a client writes them.
//
// Where a server serves both versions they are written in the one that the cells speak:
// there, a manager that wrote the status in another version loses it by the next update of
// the object, which has nothing to do with a conversion between them.
func inOldWords(kind matrixKind) matrixKind {
	words := strings.NewReplacer(
		"v1beta1", "v1alpha1", `"production"`, `"prod"`, `"stateless"`, `"ephemeral"`, "port", "number", "phase", "state",
		`"requestTimeoutSeconds":30`, `"timeout":"30"`, `"requestTimeoutSeconds":5`, `"timeout":"5"`,
		`"contact":{"owner":"o"}`, `"owner":"o"`, `"scaling":{"replicas":2}`, `"replicas":2`, `"scaling":{"replicas":0}`, `"replicas":0`,
	)
	objects := map[string]string{}
	for name, object := range kind.objects {
		objects[name] = words.Replace(object)
	}
	kind.objects, kind.status, kind.given = objects, words.Replace(kind.status), kind.old
	return kind
}

// gadget is one as a client writes it.
func gadget(metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"GROUP/v1alpha1","kind":"Gadget","metadata":{%s},"spec":%s}`, metadata, spec)
}

const (
	wholeSpec = `{"timeout":"45","mode":"ephemeral","owner":"p","replicas":3,"endpoints":[{"name":"w","number":8080}],"settings":{"k":"w"}}`
)

// The forms of answers that clients ask for.
var acceptLines = map[string]string{
	"json":             "application/json",
	"yaml":             "application/yaml",
	"table":            "application/json;as=Table;g=meta.k8s.io;v=v1",
	"table or json":    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
	"metadata":         "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
	"metadata list":    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	"protobuf":         "application/vnd.kubernetes.protobuf",
	"protobuf or json": "application/vnd.kubernetes.protobuf,application/json",
	"q":                "application/yaml;q=0.9,application/json;q=0.5",
	"q the other way":  "application/yaml;q=0.1,application/json;q=0.5",
	"anything":         "*/*",
	"any application":  "application/*",
	"text":             "text/html",
	"text or any":      "text/html,*/*;q=0.1",
	"old table":        "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
	"pretty":           "application/json;pretty=1",
	"no such as":       "application/json;as=Nothing;g=meta.k8s.io;v=v1",
}

// gadgetCells are all requests.
func gadgetCells() []cell {
	cells := slicesOf(readCells(), createCells(), updateCells(), mergePatchCells(), jsonPatchCells(), applyCells(), statusCells(), scaleCells(), deleteCells(), wrongCells())
	return append(cells, formCells()...)
}

func slicesOf(groups ...[]cell) []cell {
	var all []cell
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

// formCells are every verb with every form of its answer.
func formCells() []cell {
	whole := gadget(`"name":"n","labels":{"stage":"prod"}`, wholeSpec)
	verbs := []cell{
		{name: "get", have: "abc", method: "GET", path: "/a"},
		{name: "list", have: "abc", method: "GET"},
		{name: "create", method: "POST", contentType: "application/json", body: whole},
		{name: "create of YAML", method: "POST", contentType: "application/yaml", body: whole},
		{name: "update", have: "a", method: "PUT", path: "/a", contentType: "application/json", body: gadget(`"name":"a","resourceVersion":"RV"`, wholeSpec)},
		{name: "update of YAML", have: "a", method: "PUT", path: "/a", contentType: "application/yaml", body: gadget(`"name":"a","resourceVersion":"RV"`, wholeSpec)},
		{name: "merge patch", have: "a", method: "PATCH", path: "/a", contentType: mergePatchType, body: `{"spec":{"timeout":"31"}}`},
		{name: "JSON patch", have: "a", method: "PATCH", path: "/a", contentType: jsonPatchType, body: `[{"op":"replace","path":"/spec/timeout","value":"31"}]`},
		{name: "apply", have: "a", method: "PATCH", path: "/a?fieldManager=m&force=true", contentType: applyPatchType, body: gadget(`"name":"a"`, `{"timeout":"31"}`)},
		{name: "get of status", have: "a", method: "GET", path: "/a/status"},
		{name: "update of status", have: "a", method: "PUT", path: "/a/status", contentType: "application/json", body: statusOf("Down")},
		{name: "get of scale", have: "a", method: "GET", path: "/a/scale"},
		{name: "delete", have: "a", method: "DELETE", path: "/a"},
		{name: "delete of held", have: heldGadget, method: "DELETE", path: "/" + heldGadget},
		{name: "delete of many", have: "abc", method: "DELETE"},
		{name: "get of nothing", have: "abc", method: "GET", path: "/none"},
		{name: "create of wrong", method: "POST", contentType: "application/json", body: gadget(`"name":"n"`, `{"mode":"wrong","replicas":-1}`)},
	}
	return inAllForms(verbs)
}

// inAllForms are cells with every Accept line.
func inAllForms(verbs []cell) []cell {
	var cells []cell
	for form, line := range acceptLines {
		for _, c := range verbs {
			c.name += " as " + form
			c.accept = line
			cells = append(cells, c)
		}
	}
	for _, c := range verbs { // what no Accept line says
		c.name += " as is"
		cells = append(cells, c)
	}
	for _, query := range []string{"pretty=true", "pretty=false", "pretty=1"} {
		for _, c := range verbs[:3] {
			c.name += " with " + query
			c.path += "?" + query
			cells = append(cells, c)
		}
	}
	return cells
}

const (
	jsonPatchType  = "application/json-patch+json"
	applyPatchType = "application/apply-patch+yaml"
)

// reading makes a cell that reads from the gadgets a, b and c.
func reading(name, path string) cell { return cell{name: name, have: "abc", method: "GET", path: path} }

func readCells() []cell {
	cells := []cell{
		reading("get of one without a label", "/c"),
		reading("get at a version", "/a?resourceVersion=0"),
		reading("get at nonsense", "/a?resourceVersion=x"),
		reading("get of status of nothing", "/none/status"),
		reading("get of scale of nothing", "/none/scale"),
		reading("get of no subresource", "/a/nothing"),
		reading("get of scale without replicas", "/b/scale"),
		reading("list of a page", "?limit=1"),
		reading("list of the next page", "?limit=1&continue=CONTINUE"),
		reading("list of all other pages", "?continue=CONTINUE"),
		reading("list with a wrong continue token", "?limit=1&continue=nonsense"),
		reading("list with a continue token and a version", "?limit=1&continue=CONTINUE&resourceVersion=1"),
		reading("list at zero", "?resourceVersion=0"),
		reading("list at zero with a limit", "?resourceVersion=0&limit=1"),
		reading("list at exactly", "?resourceVersion=RV&resourceVersionMatch=Exact"),
		reading("list not older than", "?resourceVersion=RV&resourceVersionMatch=NotOlderThan"),
		reading("list with a match but no version", "?resourceVersionMatch=Exact"),
		reading("list with a wrong match", "?resourceVersion=1&resourceVersionMatch=Nearly"),
		reading("list with a wrong limit", "?limit=many"),
		reading("list with a wrong timeout", "?timeoutSeconds=x"),
	}
	for _, selector := range []string{
		"stage=prod", "stage==prod", "stage!=prod", "stage in (prod,test)", "stage notin (prod)", "stage=production", "stage=test",
		"stage", "!stage", "team=x", "stage=prod,team=x", "stage in (prod),team notin (y)", "stage=nowhere", "=", "stage=a b", "stage in ()",
	} {
		cells = append(cells, reading("list by label "+selector, "?labelSelector="+escaped(selector)))
	}
	for _, selector := range []string{
		"metadata.name=a", "metadata.name!=a", "metadata.namespace=NAMESPACE", "spec.mode=ephemeral", "spec.mode=stateful", "spec.mode!=ephemeral",
		"spec.timeout=30", "spec.timeout!=30", "spec.timeout=030", "spec.timeout=", "spec.timeout=x", "spec.mode=ephemeral,spec.timeout=30",
		"spec.owner=o", "spec.requestTimeoutSeconds=30", "spec", "spec.mode",
	} {
		cells = append(cells, reading("list by field "+selector, "?fieldSelector="+escaped(selector)))
	}
	cells = append(cells, reading("list by label and field", "?labelSelector=stage%3Dprod&fieldSelector=spec.mode%3Dstateful"))
	for _, include := range []string{"Object", "None", "Metadata", "Nothing"} {
		c := reading("table with "+include, "?includeObject="+include)
		c.accept = acceptLines["table"]
		cells = append(cells, c)
	}
	return cells
}

// escaped is a selector in a query.
func escaped(selector string) string {
	return strings.NewReplacer(" ", "%20", "=", "%3D", "!", "%21", ",", "%2C", "(", "%28", ")", "%29").Replace(selector)
}

func createCells() []cell {
	create := func(name, query, body string) cell {
		return cell{name: "create " + name, method: "POST", path: query, contentType: "application/json", body: body}
	}
	whole := gadget(`"name":"n","labels":{"stage":"prod"},"annotations":{"timeout":"1"}`, wholeSpec)
	wrong := func(name, spec string) cell { return create(name, "", gadget(`"name":"n"`, spec)) }
	return []cell{
		create("dry", "?dryRun=All", whole),
		create("dry in a wrong way", "?dryRun=Some", whole),
		create("by a manager", "?fieldManager=m", whole),
		create("by a manager with a long name", "?fieldManager="+strings.Repeat("m", 129), whole),
		create("with a generated name", "", gadget(`"generateName":"made-"`, `{"timeout":"1"}`)),
		create("without a name", "", gadget(`"labels":{"a":"b"}`, `{"timeout":"1"}`)),
		create("with a wrong name", "", gadget(`"name":"N_"`, `{"timeout":"1"}`)),
		create("with a wrong label", "", gadget(`"name":"n","labels":{"stage":"a b"}`, `{}`)),
		create("with a label that is no string", "", gadget(`"name":"n","labels":{"stage":1}`, `{}`)),
		create("with the other version's label", "", gadget(`"name":"n","labels":{"stage":"production"}`, `{}`)),
		create("in another namespace", "", gadget(`"name":"n","namespace":"other"`, `{}`)),
		create("with a resourceVersion", "", gadget(`"name":"n","resourceVersion":"1"`, `{}`)),
		create("without a spec", "", `{"apiVersion":"GROUP/v1alpha1","kind":"Gadget","metadata":{"name":"n"}}`),
		create("with a status", "", `{"apiVersion":"GROUP/v1alpha1","kind":"Gadget","metadata":{"name":"n"},"spec":{},"status":{"state":"Up"}}`),
		create("of another kind", "", `{"apiVersion":"GROUP/v1alpha1","kind":"Widget","metadata":{"name":"n"}}`),
		create("of another version", "", `{"apiVersion":"GROUP/v1","kind":"Gadget","metadata":{"name":"n"}}`),
		create("of another group", "", `{"apiVersion":"apps/v1alpha1","kind":"Gadget","metadata":{"name":"n"}}`),
		create("without a kind", "", `{"apiVersion":"GROUP/v1alpha1","metadata":{"name":"n"}}`),
		create("without a version", "", `{"kind":"Gadget","metadata":{"name":"n"}}`),
		create("of nothing", "", ""),
		create("of an empty object", "", "{}"),
		create("of a list", "", "[]"),
		create("of null", "", "null"),
		create("of broken JSON", "", `{"apiVersion":"GROUP/v1alpha1","kind":`),
		create("of two objects", "", gadget(`"name":"n"`, `{}`)+gadget(`"name":"m"`, `{}`)),
		{name: "create of broken YAML", method: "POST", contentType: "application/yaml; charset=utf-8", body: "a: [b"},
		{name: "create of YAML with a parameter", method: "POST", contentType: "application/yaml; charset=utf-8", body: "apiVersion: GROUP/v1alpha1\nkind: Gadget\nmetadata: {name: gadget}\nspec:\n  timeout: '5'\n"},
		{name: "create of YAML with a wrong type", method: "POST", contentType: "application/yaml; charset=utf-8", body: "apiVersion: GROUP/v1alpha1\nkind: Gadget\nmetadata: {name: gadget}\nspec:\n  timeout: 5\n"},
		{name: "create of YAML with a field twice", method: "POST", path: "?fieldValidation=Strict", contentType: "application/yaml; charset=utf-8", body: "apiVersion: GROUP/v1alpha1\nkind: Gadget\nmetadata: {name: gadget}\nspec:\n  owner: a\n  owner: b\n"},
		{name: "create of JSON without a type", method: "POST", body: whole},
		{name: "create of JSON with a parameter", method: "POST", contentType: "application/json; charset=utf-8", body: whole},
		{name: "create of text", method: "POST", contentType: "text/plain", body: whole},
		{name: "create of what exists", have: "a", method: "POST", contentType: "application/json", body: gadget(`"name":"a"`, `{}`)},
		wrong("a wrong mode", `{"mode":"wrong"}`),
		wrong("the other version's mode", `{"mode":"stateless"}`),
		wrong("a wrong timeout", `{"timeout":"soon"}`),
		wrong("a timeout that would change", `{"timeout":"030"}`),
		wrong("a timeout that is a number", `{"timeout":30}`),
		wrong("a long timeout", `{"timeout":"1000000"}`),
		wrong("a timeout of zero", `{"timeout":"0"}`),
		wrong("no timeout", `{"timeout":null}`),
		wrong("no mode", `{"mode":null}`),
		wrong("no owner", `{"owner":null}`),
		wrong("a long owner", `{"owner":"123456789012345678901"}`),
		wrong("an owner that is a number", `{"owner":1}`),
		wrong("few replicas", `{"replicas":-1}`),
		wrong("half a replica", `{"replicas":1.5}`),
		wrong("replicas in words", `{"replicas":"two"}`),
		wrong("replicas as 2.0", `{"replicas":2.0}`),
		wrong("many replicas", `{"replicas":9007199254740993}`),
		wrong("several mistakes", `{"mode":"wrong","replicas":-1,"owner":"123456789012345678901","endpoints":[{"name":"a","number":0}]}`),
		wrong("no endpoints", `{"endpoints":[]}`),
		wrong("an endpoint without a number", `{"endpoints":[{"name":"a"}]}`),
		wrong("an endpoint without a name", `{"endpoints":[{"number":1}]}`),
		wrong("an endpoint with a large number", `{"endpoints":[{"name":"a","number":80},{"name":"b","number":65536}]}`),
		wrong("an endpoint twice", `{"endpoints":[{"name":"a","number":1},{"name":"a","number":2}]}`),
		wrong("endpoints that are none", `{"endpoints":{"name":"a"}}`),
		wrong("an endpoint that is none", `{"endpoints":["a"]}`),
		wrong("a spec that is a list", `[]`),
		wrong("a spec that is null", `null`),
		wrong("settings that are numbers", `{"settings":{"a":1}}`),
		wrong("settings of all kinds", `{"settings":{"timeout":"1","a.b/c":"2","":"3","ü":"\u00e9\u2028<>&"}}`),
		create("with an unknown field", "", gadget(`"name":"n"`, `{"unknown":1}`)),
		create("with an unknown field, strictly", "?fieldValidation=Strict", gadget(`"name":"n"`, `{"unknown":1,"endpoints":[{"name":"a","number":1,"more":true}]}`)),
		create("with an unknown field, warning", "?fieldValidation=Warn", gadget(`"name":"n"`, `{"unknown":1,"endpoints":[{"name":"a","number":1,"more":true}]}`)),
		create("with an unknown field, ignoring", "?fieldValidation=Ignore", gadget(`"name":"n"`, `{"unknown":1}`)),
		create("with the other version's fields", "", gadget(`"name":"n"`, `{"requestTimeoutSeconds":5,"contact":{"owner":"x"}}`)),
		create("with the other version's fields, strictly", "?fieldValidation=Strict", gadget(`"name":"n"`, `{"requestTimeoutSeconds":5,"contact":{"owner":"x"}}`)),
		create("with both versions' fields", "?fieldValidation=Warn", gadget(`"name":"n"`, `{"timeout":"6","requestTimeoutSeconds":5}`)),
		create("with a field twice", "", gadget(`"name":"n"`, `{"timeout":"6","timeout":"7"}`)),
		create("with a field twice, strictly", "?fieldValidation=Strict", gadget(`"name":"n"`, `{"timeout":"6","timeout":"7"}`)),
		create("with an unknown field in metadata", "?fieldValidation=Strict", gadget(`"name":"n","unknown":1`, `{}`)),
		create("with an unknown validation", "?fieldValidation=Maybe", whole),
		create("strictly", "?fieldValidation=Strict", whole),
	}
}

func updateCells() []cell {
	update := func(name, query, metadata, spec string) cell {
		return cell{name: "update " + name, have: "a", method: "PUT", path: "/a" + query, contentType: "application/json", body: gadget(`"name":"a",`+metadata, spec)}
	}
	const at = `"resourceVersion":"RV"`
	late := update("of what somebody else has changed", "", at, wholeSpec)
	late.before = `{"spec":{"requestTimeoutSeconds":31}}`
	held := update("of status through the object", "", at, wholeSpec)
	held.body = strings.TrimSuffix(held.body, "}") + `,"status":{"state":"Down"}}`
	return []cell{
		late, held,
		update("dry", "?dryRun=All", at, wholeSpec),
		update("by a manager", "?fieldManager=m", at, wholeSpec),
		update("without a version", "", `"labels":{"a":"b"}`, wholeSpec),
		update("of nothing", "", at+`,"labels":{"stage":"prod","team":"x"}`, `{"timeout":"30","mode":"ephemeral","owner":"o","replicas":2,"endpoints":[{"name":"w","number":80},{"name":"v","number":443}],"settings":{"k":"v"}}`),
		update("to an empty spec", "", at, `{}`),
		update("without owner", "", at, `{"timeout":"45"}`),
		update("with a wrong mode", "", at, `{"mode":"wrong"}`),
		update("with a wrong timeout", "", at, `{"timeout":"soon"}`),
		update("with another UID", "", at+`,"uid":"11111111-1111-1111-1111-111111111111"`, wholeSpec),
		update("with its UID", "", at+`,"uid":"UID"`, wholeSpec),
		update("with the other version's label", "", at+`,"labels":{"stage":"production"}`, wholeSpec),
		update("with an unknown field", "", at, `{"unknown":1}`),
		update("with an unknown field, strictly", "?fieldValidation=Strict", at, `{"unknown":1}`),
		update("with the other version's field", "", at, `{"contact":{"owner":"x"}}`),
		update("with the other version's field, strictly", "?fieldValidation=Strict", at, `{"contact":{"owner":"x"}}`),
		update("with a version that is none", "", `"resourceVersion":"x"`, wholeSpec),
		{name: "update of another name", have: "a", method: "PUT", path: "/a", contentType: "application/json", body: gadget(`"name":"b",`+at, wholeSpec)},
		{name: "update of what is not there", have: "a", method: "PUT", path: "/n", contentType: "application/json", body: gadget(`"name":"n",`+at, wholeSpec)},
		{name: "update of what is not there without a version", have: "a", method: "PUT", path: "/n", contentType: "application/json", body: gadget(`"name":"n"`, wholeSpec)},
		{name: "update with another kind", have: "a", method: "PUT", path: "/a", contentType: "application/json", body: `{"apiVersion":"GROUP/v1alpha1","kind":"Widget","metadata":{"name":"a","resourceVersion":"RV"}}`},
		{name: "update with nothing", have: "a", method: "PUT", path: "/a", contentType: "application/json"},
		{name: "update with text", have: "a", method: "PUT", path: "/a", contentType: "text/plain", body: "a"},
	}
}

func mergePatchCells() []cell {
	patch := func(name, query, body string) cell {
		return cell{name: "merge patch " + name, have: "a", method: "PATCH", path: "/a" + query, contentType: mergePatchType, body: body}
	}
	late := patch("of what somebody else has changed", "", `{"metadata":{"resourceVersion":"RV"},"spec":{"timeout":"31"}}`)
	late.before = `{"spec":{"requestTimeoutSeconds":32}}`
	b := patch("that adds an owner", "", `{"spec":{"owner":"new","replicas":1}}`)
	b.have, b.path = "b", "/b"
	return []cell{
		late, b,
		patch("of nothing", "", `{}`),
		patch("that changes nothing", "", `{"spec":{"timeout":"30"}}`),
		patch("dry", "?dryRun=All", `{"spec":{"timeout":"31"}}`),
		patch("by a manager", "?fieldManager=m", `{"spec":{"timeout":"31","replicas":4}}`),
		patch("at its version", "", `{"metadata":{"resourceVersion":"RV"},"spec":{"timeout":"31"}}`),
		patch("of the mode", "", `{"spec":{"mode":"stateful"}}`),
		patch("of the mode to what it was", "", `{"spec":{"mode":"ephemeral"}}`),
		patch("to the other version's mode", "", `{"spec":{"mode":"stateless"}}`),
		patch("that takes the timeout away", "", `{"spec":{"timeout":null}}`),
		patch("that takes the owner away", "", `{"spec":{"owner":null}}`),
		patch("that takes the mode away", "", `{"spec":{"mode":null}}`),
		patch("that takes the spec away", "", `{"spec":null}`),
		patch("that empties the spec", "", `{"spec":{}}`),
		patch("of a list", "", `{"spec":{"endpoints":[{"name":"z","number":9}]}}`),
		patch("that takes a list away", "", `{"spec":{"endpoints":null}}`),
		patch("of settings", "", `{"spec":{"settings":{"k":null,"timeout":"7"}}}`),
		patch("of the stage", "", `{"metadata":{"labels":{"stage":"test"}}}`),
		patch("of the stage to prod", "", `{"metadata":{"labels":{"stage":"prod"}}}`),
		patch("that takes the stage away", "", `{"metadata":{"labels":{"stage":null}}}`),
		patch("that takes the labels away", "", `{"metadata":{"labels":null}}`),
		patch("of the name", "", `{"metadata":{"name":"z"}}`),
		patch("of status", "", `{"status":{"state":"Down"}}`),
		patch("with a wrong mode", "", `{"spec":{"mode":"wrong"}}`),
		patch("with a wrong timeout", "", `{"spec":{"timeout":"soon"}}`),
		patch("with a number as timeout", "", `{"spec":{"timeout":5}}`),
		patch("with few replicas", "", `{"spec":{"replicas":-1}}`),
		patch("with several mistakes", "", `{"spec":{"mode":"wrong","replicas":-1,"owner":"123456789012345678901"}}`),
		patch("with an unknown field", "", `{"spec":{"unknown":1}}`),
		patch("with an unknown field, strictly", "?fieldValidation=Strict", `{"spec":{"unknown":1}}`),
		patch("with a field twice, strictly", "?fieldValidation=Strict", `{"spec":{"timeout":"1","timeout":"2"}}`),
		patch("of another version", "", `{"apiVersion":"GROUP/v1beta1","spec":{"timeout":"31"}}`),
		patch("of its version", "", `{"apiVersion":"GROUP/v1alpha1","kind":"Gadget","spec":{"timeout":"31"}}`),
		patch("that is a list", "", `[]`),
		patch("that is broken", "", `{"spec":`),
		patch("that is empty", "", ``),
		patch("forced", "?force=true", `{"spec":{"timeout":"31"}}`),
		{name: "merge patch of what is not there", have: "a", method: "PATCH", path: "/n", contentType: mergePatchType, body: `{"spec":{"timeout":"31"}}`},
		{name: "patch of a text", have: "a", method: "PATCH", path: "/a", contentType: "text/plain", body: `{}`},
		{name: "patch of JSON", have: "a", method: "PATCH", path: "/a", contentType: "application/json", body: `{}`},
		{name: "strategic merge patch", have: "a", method: "PATCH", path: "/a", contentType: "application/strategic-merge-patch+json", body: `{"spec":{"timeout":"31"}}`},
		{name: "strategic merge patch of status", have: "a", method: "PATCH", path: "/a/status", contentType: "application/strategic-merge-patch+json", body: `{"status":{"state":"Down"}}`},
	}
}

func jsonPatchCells() []cell {
	patch := func(name, operations string) cell {
		return cell{name: "JSON patch " + name, have: "a", method: "PATCH", path: "/a", contentType: jsonPatchType, body: operations}
	}
	dry := patch("dry", `[{"op":"replace","path":"/spec/timeout","value":"31"}]`)
	dry.path += "?dryRun=All&fieldManager=m"
	return []cell{
		dry,
		patch("of nothing", `[]`),
		patch("add of timeout", `[{"op":"add","path":"/spec/timeout","value":"31"}]`),
		patch("remove of timeout", `[{"op":"remove","path":"/spec/timeout"}]`),
		patch("replace of owner", `[{"op":"replace","path":"/spec/owner","value":"q"}]`),
		patch("remove of owner", `[{"op":"remove","path":"/spec/owner"}]`),
		patch("replace of spec", `[{"op":"replace","path":"/spec","value":{"timeout":"9","owner":"q"}}]`),
		patch("remove of spec", `[{"op":"remove","path":"/spec"}]`),
		patch("test that holds", `[{"op":"test","path":"/spec/timeout","value":"30"},{"op":"test","path":"/spec/mode","value":"ephemeral"},{"op":"replace","path":"/spec/replicas","value":5}]`),
		patch("test that fails", `[{"op":"test","path":"/spec/timeout","value":"31"},{"op":"replace","path":"/spec/replicas","value":5}]`),
		patch("test of a number", `[{"op":"test","path":"/spec/timeout","value":30}]`),
		patch("test of the stage", `[{"op":"test","path":"/metadata/labels/stage","value":"prod"},{"op":"replace","path":"/metadata/labels/stage","value":"test"}]`),
		patch("test of the other version's stage", `[{"op":"test","path":"/metadata/labels/stage","value":"production"}]`),
		patch("replace of an endpoint's number", `[{"op":"replace","path":"/spec/endpoints/1/number","value":444}]`),
		patch("add of an endpoint", `[{"op":"add","path":"/spec/endpoints/-","value":{"name":"z","number":9}}]`),
		patch("insertion of an endpoint", `[{"op":"add","path":"/spec/endpoints/0","value":{"name":"z","number":9}}]`),
		patch("remove of an endpoint", `[{"op":"remove","path":"/spec/endpoints/0"}]`),
		patch("move of a setting", `[{"op":"move","from":"/spec/settings/k","path":"/spec/settings/timeout"}]`),
		patch("copy of the owner", `[{"op":"copy","from":"/spec/owner","path":"/spec/settings/owner"}]`),
		patch("copy of the timeout", `[{"op":"copy","from":"/spec/timeout","path":"/spec/settings/timeout"}]`),
		patch("of the resourceVersion", `[{"op":"test","path":"/metadata/resourceVersion","value":"RV"},{"op":"replace","path":"/spec/timeout","value":"31"}]`),
		patch("of what is not there", `[{"op":"replace","path":"/spec/nothing","value":"31"}]`),
		patch("of an endpoint that is not there", `[{"op":"replace","path":"/spec/endpoints/7/number","value":1}]`),
		patch("with a wrong mode", `[{"op":"replace","path":"/spec/mode","value":"wrong"}]`),
		patch("with a wrong timeout", `[{"op":"replace","path":"/spec/timeout","value":"soon"}]`),
		patch("with an unknown field", `[{"op":"add","path":"/spec/unknown","value":1}]`),
		patch("with an unknown operation", `[{"op":"increase","path":"/spec/replicas","value":1}]`),
		patch("that is an object", `{"spec":{}}`),
		patch("that is broken", `[`),
		patch("that is empty", ``),
	}
}

func applyCells() []cell {
	apply := func(name, query, body string) cell {
		return cell{name: "apply " + name, have: "a", method: "PATCH", path: "/a" + query, contentType: applyPatchType, body: body}
	}
	const m = "?fieldManager=m"
	mine := func(spec string) string { return gadget(`"name":"a"`, spec) }
	fresh := apply("of what is not there", "?fieldManager=m", gadget(`"name":"n","labels":{"stage":"prod"}`, wholeSpec))
	fresh.have, fresh.path = "", "/n"+m
	return []cell{
		fresh,
		apply("that conflicts", m, mine(`{"timeout":"31"}`)),
		apply("that conflicts in many fields", m, gadget(`"name":"a","labels":{"stage":"test"}`, `{"timeout":"31","mode":"stateful","owner":"q","replicas":7,"endpoints":[{"name":"w","number":81}]}`)),
		apply("by force", m+"&force=true", gadget(`"name":"a","labels":{"stage":"test"}`, `{"timeout":"31","mode":"stateful","owner":"q","replicas":7,"endpoints":[{"name":"w","number":81}]}`)),
		apply("of what is so", m, mine(`{"timeout":"30"}`)),
		apply("dry", m+"&dryRun=All&force=true", mine(`{"timeout":"31"}`)),
		apply("of a new endpoint", m, mine(`{"endpoints":[{"name":"z","number":9}]}`)),
		apply("of nothing", m, gadget(`"name":"a"`, `{}`)),
		apply("without a manager", "", mine(`{"timeout":"31"}`)),
		apply("without a version", m, `{"kind":"Gadget","metadata":{"name":"a"},"spec":{}}`),
		apply("of another version", m, `{"apiVersion":"GROUP/v2","kind":"Gadget","metadata":{"name":"a"},"spec":{}}`),
		apply("of another name", m, gadget(`"name":"b"`, `{}`)),
		apply("without a name", m, `{"apiVersion":"GROUP/v1alpha1","kind":"Gadget","spec":{"settings":{"n":"m"}}}`),
		apply("of YAML", m+"&force=true", "apiVersion: GROUP/v1alpha1\nkind: Gadget\nmetadata:\n  name: a\nspec:\n  timeout: \"31\" # quoted\n  settings: {k: v2}\n"),
		apply("of YAML with a wrong type", m+"&force=true", "apiVersion: GROUP/v1alpha1\nkind: Gadget\nmetadata:\n  name: a\nspec:\n  timeout: 31\n"),
		apply("of broken YAML", m, "a: [b"),
		apply("that is empty", m, ""),
		apply("with an unknown field", m, mine(`{"unknown":1}`)),
		apply("with an unknown field, strictly", m+"&fieldValidation=Strict", mine(`{"unknown":1}`)),
		apply("with a wrong mode", m+"&force=true", mine(`{"mode":"wrong"}`)),
		apply("with a wrong timeout", m+"&force=true", mine(`{"timeout":"soon"}`)),
		apply("with few replicas", m+"&force=true", mine(`{"replicas":-1}`)),
		apply("with replicas in words", m+"&force=true", mine(`{"replicas":"two"}`)),
		apply("with managed fields", m, gadget(`"name":"a","managedFields":[{"manager":"x","operation":"Apply"}]`, `{}`)),
		apply("at another version", m+"&force=true", gadget(`"name":"a","resourceVersion":"1"`, `{"timeout":"31"}`)),
		apply("of status", m+"&force=true", strings.TrimSuffix(mine(`{}`), "}")+`,"status":{"state":"Down"}}`),
		{name: "apply to status", have: "a", method: "PATCH", path: "/a/status" + m, contentType: applyPatchType, body: statusOf("Down")},
		{name: "apply to status by force", have: "a", method: "PATCH", path: "/a/status" + m + "&force=true", contentType: applyPatchType, body: statusOf("Down")},
		{name: "apply by who owns it already", have: "a", method: "PATCH", path: "/a?fieldManager=given&force=true", contentType: applyPatchType, body: mine(`{"timeout":"31"}`)},
	}
}

func statusOf(state string) string {
	return fmt.Sprintf(`{"apiVersion":"GROUP/v1alpha1","kind":"Gadget","metadata":{"name":"a"},"status":{"state":%q,"replicas":1}}`, state)
}

func statusCells() []cell {
	status := func(name, method, contentType, body string) cell {
		return cell{name: "status " + name, have: "a", method: method, path: "/a/status", contentType: contentType, body: body}
	}
	at := strings.Replace(statusOf("Down"), `"name":"a"`, `"name":"a","resourceVersion":"RV"`, 1)
	late := status("that somebody else has changed", "PUT", "application/json", at)
	late.before = `{"spec":{"requestTimeoutSeconds":31}}`
	return []cell{
		late,
		status("update at a version", "PUT", "application/json", at),
		status("update in YAML", "PUT", "application/yaml", at),
		status("update with a spec", "PUT", "application/json", strings.TrimSuffix(at, "}")+`,"spec":{"timeout":"99","owner":"z"}}`),
		status("update with a wrong type", "PUT", "application/json", strings.Replace(at, `"Down"`, "1", 1)),
		status("update with an unknown field", "PUT", "application/json", strings.Replace(at, `"state"`, `"phase"`, 1)),
		status("merge patch", "PATCH", mergePatchType, `{"status":{"state":"Down"}}`),
		status("merge patch that takes it away", "PATCH", mergePatchType, `{"status":{"state":null}}`),
		status("merge patch of the spec", "PATCH", mergePatchType, `{"spec":{"timeout":"99"}}`),
		status("merge patch of a label", "PATCH", mergePatchType, `{"metadata":{"labels":{"stage":"test"}},"status":{"state":"Down"}}`),
		status("JSON patch", "PATCH", jsonPatchType, `[{"op":"replace","path":"/status/state","value":"Down"}]`),
		status("JSON patch with a test", "PATCH", jsonPatchType, `[{"op":"test","path":"/status/state","value":"Up"},{"op":"add","path":"/status/state","value":"Down"}]`),
		status("JSON patch that removes", "PATCH", jsonPatchType, `[{"op":"remove","path":"/status/state"}]`),
		status("of what is not there", "PUT", "application/json", strings.Replace(at, `"name":"a"`, `"name":"z"`, 1)),
		status("delete", "DELETE", "", ""),
		status("create", "POST", "application/json", at),
	}
}

func scaleCells() []cell {
	const object = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"NAMESPACE"%s},"spec":{"replicas":%d}}`
	scale := func(name, method, query, contentType, body string) cell {
		return cell{name: "scale " + name, have: "a", method: method, path: "/a/scale" + query, contentType: contentType, body: body}
	}
	at := fmt.Sprintf(object, `,"resourceVersion":"RV"`, 7)
	late := scale("that somebody else has changed", "PUT", "", "application/json", at)
	late.before = `{"spec":{"requestTimeoutSeconds":31}}`
	return []cell{
		late,
		scale("update", "PUT", "", "application/json", at),
		scale("update in YAML", "PUT", "", "application/yaml", at),
		scale("update without a version", "PUT", "?fieldManager=m", "application/json", fmt.Sprintf(object, "", 7)),
		scale("update below zero", "PUT", "", "application/json", fmt.Sprintf(object, "", -1)),
		scale("update of a Gadget", "PUT", "", "application/json", gadget(`"name":"a"`, `{"replicas":7}`)),
		scale("dry", "PUT", "?dryRun=All", "application/json", at),
		scale("merge patch", "PATCH", "", mergePatchType, `{"spec":{"replicas":7}}`),
		scale("merge patch of nothing", "PATCH", "", mergePatchType, `{}`),
		scale("merge patch in words", "PATCH", "", mergePatchType, `{"spec":{"replicas":"two"}}`),
		scale("JSON patch", "PATCH", "", jsonPatchType, `[{"op":"replace","path":"/spec/replicas","value":7}]`),
		scale("JSON patch with a test", "PATCH", "", jsonPatchType, `[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":7}]`),
		scale("apply", "PATCH", "?fieldManager=m", applyPatchType, fmt.Sprintf(object, "", 7)),
		scale("apply by force", "PATCH", "?fieldManager=m&force=true", applyPatchType, fmt.Sprintf(object, "", 7)),
		scale("strategic merge patch", "PATCH", "", "application/strategic-merge-patch+json", `{"spec":{"replicas":7}}`),
		scale("delete", "DELETE", "", "", ""),
	}
}

func deleteCells() []cell {
	del := func(name, path, body string) cell {
		c := cell{name: "delete " + name, have: "abc", method: "DELETE", path: path, body: body}
		if body != "" {
			c.contentType = "application/json"
		}
		return c
	}
	options := func(members string) string {
		return `{"apiVersion":"GROUP/v1alpha1","kind":"DeleteOptions",` + members + `}`
	}
	late := del("of a version that is gone", "/a", options(`"preconditions":{"resourceVersion":"RV"}`))
	late.before = `{"spec":{"requestTimeoutSeconds":31}}`
	return []cell{
		late,
		del("with options", "/a", options(`"propagationPolicy":"Background"`)),
		del("with plain options", "/a", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`),
		del("with the group's other options", "/a", `{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}`),
		del("in the foreground", "/a?propagationPolicy=Foreground", ""),
		del("that orphans", "/a?propagationPolicy=Orphan", ""),
		del("in an unknown way", "/a?propagationPolicy=Slowly", ""),
		del("dry", "/a?dryRun=All", ""),
		del("dry by options", "/a", options(`"dryRun":["All"]`)),
		del("of its version", "/a", options(`"preconditions":{"resourceVersion":"RV"}`)),
		del("of its UID", "/a", options(`"preconditions":{"uid":"UID"}`)),
		del("of another UID", "/a", options(`"preconditions":{"uid":"11111111-1111-1111-1111-111111111111"}`)),
		del("with broken options", "/a", `{"kind":`),
		del("with a Gadget", "/a", gadget(`"name":"a"`, `{}`)),
		del("of what is not there", "/n", ""),
		del("of many by label", "?labelSelector=stage%3Dprod", ""),
		del("of many by another label", "?labelSelector=stage%21%3Dprod", ""),
		del("of many by field", "?fieldSelector=spec.timeout%3D30", ""),
		del("of many by a value that changes", "?fieldSelector=spec.mode%3Dephemeral", ""),
		del("of many by name", "?fieldSelector=metadata.name%3Db", ""),
		del("of many, dry", "?dryRun=All", ""),
		del("of many with options", "", options(`"propagationPolicy":"Background"`)),
		del("of none", "?labelSelector=stage%3Dnowhere", ""),
		del("of many by a wrong label", "?labelSelector=%3D", ""),
		{name: "delete of held in YAML", have: heldGadget, method: "DELETE", path: "/" + heldGadget, accept: "application/yaml"},
		{name: "delete with options in YAML", have: "a", method: "DELETE", path: "/a", contentType: "application/yaml", body: options(`"propagationPolicy":"Background"`)},
	}
}

// wrongCells are requests that nobody should make.
func wrongCells() []cell {
	return []cell{
		{name: "POST of an object", have: "a", method: "POST", path: "/a", contentType: "application/json", body: gadget(`"name":"a"`, `{}`)},
		{name: "PUT of a collection", have: "a", method: "PUT", contentType: "application/json", body: gadget(`"name":"a"`, `{}`)},
		{name: "PATCH of a collection", have: "a", method: "PATCH", contentType: mergePatchType, body: `{}`},
		{name: "PUT of an unknown subresource", have: "a", method: "PUT", path: "/a/nothing", contentType: "application/json", body: gadget(`"name":"a"`, `{}`)},
	}
}

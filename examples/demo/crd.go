package demo

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
)

// customVersion is what a CustomResourceDefinition says of one of its versions.
type customVersion struct {
	schema  jsonSchema
	storage jsonSchema // the schema of the version that objects are stored in
}

var crdResource = schema.GroupResource{Group: crdKind.Group, Resource: crdKind.plural}

// customKinds returns the served versions of all custom resources, by group, and
// of each the preferred version first. Conversion is always by strategy None.
func (c *ControlPlane) customKinds() []*kind {
	crds, _ := c.store.list(crdResource, "")
	var kinds []*kind
	for _, crd := range crds {
		kinds = append(kinds, kindsOf(crd)...)
	}
	sort.SliceStable(kinds, func(i, j int) bool {
		a, b := kinds[i], kinds[j]
		if a.Group != b.Group {
			return a.Group < b.Group
		}
		return version.CompareKubeAwareVersionStrings(a.Version, b.Version) > 0
	})
	return kinds
}

// customState changes whenever a definition does.
func (c *ControlPlane) customState() string {
	crds, _ := c.store.list(crdResource, "")
	var state strings.Builder
	for _, crd := range crds {
		state.WriteString(crd.GetResourceVersion() + " ")
	}
	return state.String()
}

// kindsOf reads a CustomResourceDefinition that checkCRD found right.
func kindsOf(crd *unstructured.Unstructured) []*kind {
	names := jsonSchema(crd.Object).child("spec").child("names")
	storage := storageSchema(crd)
	var kinds []*kind
	for _, v := range crdVersions(crd) {
		if v["served"] != true {
			continue
		}
		sub := v.child("subresources")
		kinds = append(kinds, &kind{
			GroupVersionKind: gvk(text(crd.Object, "spec", "group"), text(v, "name"), text(names, "kind")),
			plural:           text(names, "plural"),
			singular:         text(names, "singular"),
			shortNames:       texts(names["shortNames"]),
			categories:       texts(names["categories"]),
			namespaced:       text(crd.Object, "spec", "scope") == "Namespaced",
			status:           sub["status"] != nil,
			scale:            scaleOf(sub.child("scale")),
			generation:       true,
			fields:           selectableFields(v),
			columns:          columnsOf(v),
			custom:           &customVersion{schema: versionSchema(v), storage: storage},
		})
	}
	return kinds
}

func crdVersions(crd *unstructured.Unstructured) []jsonSchema {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var versions []jsonSchema
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			versions = append(versions, m)
		}
	}
	return versions
}

func versionSchema(v jsonSchema) jsonSchema { return v.child("schema").child("openAPIV3Schema") }

func storageSchema(crd *unstructured.Unstructured) jsonSchema {
	for _, v := range crdVersions(crd) {
		if v["storage"] == true {
			return versionSchema(v)
		}
	}
	return nil
}

func columnsOf(v jsonSchema) []column {
	list, _ := v["additionalPrinterColumns"].([]any)
	var columns []column
	for _, item := range list {
		c, _ := item.(map[string]any)
		priority, _ := c["priority"].(int64)
		columns = append(columns, column{
			name:        text(c, "name"),
			typ:         text(c, "type"),
			format:      text(c, "format"),
			description: text(c, "description"),
			path:        text(c, "jsonPath"),
			priority:    int32(min(max(priority, 0), 9)),
		})
	}
	return columns
}

func selectableFields(v jsonSchema) []string {
	list, _ := v["selectableFields"].([]any)
	var fields []string
	for _, item := range list {
		f, _ := item.(map[string]any)
		fields = append(fields, strings.TrimPrefix(text(f, "jsonPath"), "."))
	}
	return fields
}

// scaleOf reads the paths of a scale subresource; nil: there is none.
func scaleOf(s jsonSchema) *scalePaths {
	if s == nil {
		return nil
	}
	path := func(key string) []string { return splitPath(text(s, key)) }
	return &scalePaths{spec: path("specReplicasPath"), status: path("statusReplicasPath"), selector: path("labelSelectorPath")}
}

// splitPath splits the simple JSONPath of a CRD (".spec.replicas") into its keys.
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func text(obj map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(obj, path...)
	return s
}

func texts(list any) []string {
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// checkCRD says what is wrong with a CustomResourceDefinition, and fills in the
// names that may be left out.
func checkCRD(crd *unstructured.Unstructured) field.ErrorList {
	spec := field.NewPath("spec")
	names, _, _ := unstructured.NestedMap(crd.Object, "spec", "names")
	var errs field.ErrorList
	for _, key := range []string{"plural", "kind"} {
		if text(names, key) == "" {
			errs = append(errs, field.Required(spec.Child("names", key), ""))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	defaultNames(crd, names)
	group := text(crd.Object, "spec", "group")
	if want := text(names, "plural") + "." + group; crd.GetName() != want || group == "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), crd.GetName(), "must be spec.names.plural+\".\"+spec.group"))
	}
	if scope := text(crd.Object, "spec", "scope"); scope != "Namespaced" && scope != "Cluster" {
		errs = append(errs, field.NotSupported(spec.Child("scope"), scope, []string{"Cluster", "Namespaced"}))
	}
	if strategy := text(crd.Object, "spec", "conversion", "strategy"); strategy != "" && strategy != "None" {
		errs = append(errs, field.NotSupported(spec.Child("conversion", "strategy"), strategy, []string{"None"}))
	}
	return append(errs, checkVersions(crd, spec.Child("versions"))...)
}

func checkVersions(crd *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var seen []string
	storage := 0
	for i, v := range crdVersions(crd) {
		name := text(v, "name")
		if name == "" {
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		}
		if slices.Contains(seen, name) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), name))
		}
		seen = append(seen, name)
		if v["storage"] == true {
			storage++
		}
		if versionSchema(v) == nil {
			errs = append(errs, field.Required(path.Index(i).Child("schema", "openAPIV3Schema"), "schemas are required"))
		}
	}
	if storage != 1 {
		errs = append(errs, field.Invalid(path, storage, "must have exactly one version marked as storage version"))
	}
	return errs
}

func defaultNames(crd *unstructured.Unstructured, names map[string]any) {
	if text(names, "singular") == "" {
		names["singular"] = strings.ToLower(text(names, "kind"))
	}
	if text(names, "listKind") == "" {
		names["listKind"] = text(names, "kind") + "List"
	}
	spec, _ := crd.Object["spec"].(map[string]any)
	spec["names"] = names
	if spec["conversion"] == nil {
		spec["conversion"] = map[string]any{"strategy": "None"}
	}
}

// establish writes the status that kube-apiserver's controllers write a moment
// after a definition comes. Here it is there at once.
func establish(crd, old *unstructured.Unstructured) {
	var stored []string
	if old != nil {
		stored, _, _ = unstructured.NestedStringSlice(old.Object, "status", "storedVersions")
	}
	for _, v := range crdVersions(crd) {
		if name := text(v, "name"); v["storage"] == true && !slices.Contains(stored, name) {
			stored = append(stored, name)
		}
	}
	since := crd.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")
	condition := func(typ, reason, message string) any {
		return map[string]any{"type": typ, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since}
	}
	names, _, _ := unstructured.NestedMap(crd.Object, "spec", "names")
	versions := []any{}
	for _, name := range stored {
		versions = append(versions, name)
	}
	crd.Object["status"] = map[string]any{
		"acceptedNames":  names,
		"storedVersions": versions,
		"conditions": []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
		},
	}
}

// dropInstances deletes the objects of a definition that is gone.
func (c *ControlPlane) dropInstances(crd *unstructured.Unstructured) {
	gone := schema.GroupResource{Group: text(crd.Object, "spec", "group"), Resource: text(crd.Object, "spec", "names", "plural")}
	c.store.drop(func(gr schema.GroupResource, _ *unstructured.Unstructured) bool { return gr == gone })
}

package demo

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// form is how a client wants objects: as they are (the zero form), as a Table, or
// as PartialObjectMetadata.
type form struct {
	as      string
	version string // of meta.k8s.io
}

// negotiate returns the first form of an Accept header that this server has, in
// JSON. Like kube-apiserver it goes by the order, not by quality values.
func negotiate(r *http.Request) (form, error) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return form{}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		switch mediaType {
		case jsonType, "application/*", "*/*":
		default:
			continue
		}
		switch as := params["as"]; {
		case as == "":
			return form{}, nil
		case params["g"] != metav1.GroupName, params["v"] != "v1" && params["v"] != "v1beta1":
			continue
		case as == "Table", as == "PartialObjectMetadata", as == "PartialObjectMetadataList":
			return form{as: as, version: params["v"]}, nil
		}
	}
	return form{}, notAcceptable(jsonType)
}

func notAcceptable(accepted string) error {
	status := statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("only the following media types are accepted: %s", accepted))
	return status
}

// writeObject answers with one object, in the form that the client wants.
func (c *call) writeObject(w http.ResponseWriter, code int, obj *unstructured.Unstructured) error {
	f, err := negotiate(c.request)
	if err != nil {
		return err
	}
	return writeJSON(w, code, c.shape(f, obj, true))
}

// shape returns obj in form f and the call's version. headers says whether a Table
// names its columns.
func (c *call) shape(f form, obj *unstructured.Unstructured, headers bool) any {
	shown := c.kind.in(obj)
	switch f.as {
	case "Table":
		t := c.table(f, headers)
		t.ResourceVersion = shown.GetResourceVersion()
		t.Rows = append(t.Rows, c.row(f, shown))
		return t
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return partial(f, shown)
	}
	return shown.Object
}

// partial is the metadata of an object, under the kind of its own.
func partial(f form, obj *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"kind":       "PartialObjectMetadata",
		"apiVersion": metav1.GroupName + "/" + f.version,
		"metadata":   obj.Object["metadata"],
	}
}

func (c *call) writeList(w http.ResponseWriter, p *page) error {
	f, err := negotiate(c.request)
	if err != nil {
		return err
	}
	meta := metav1.ListMeta{
		ResourceVersion:    strconv.FormatInt(p.revision, 10),
		Continue:           p.next,
		RemainingItemCount: p.remaining,
	}
	if f.as == "Table" {
		t := c.table(f, true)
		t.ListMeta = meta
		for _, obj := range p.items {
			t.Rows = append(t.Rows, c.row(f, c.kind.in(obj)))
		}
		return writeJSON(w, http.StatusOK, t)
	}
	list := objectList{Kind: c.kind.Kind + "List", APIVersion: c.kind.GroupVersion().String(), Metadata: meta, Items: []any{}}
	if f.as != "" {
		list.Kind, list.APIVersion = "PartialObjectMetadataList", metav1.GroupName+"/"+f.version
	}
	for _, obj := range p.items {
		list.Items = append(list.Items, c.item(f, obj))
	}
	return writeJSON(w, http.StatusOK, list)
}

// objectList is a list of any kind, its keys in kube-apiserver's order.
type objectList struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   metav1.ListMeta `json:"metadata"`
	Items      []any           `json:"items"`
}

// item is an object as one of a list: those of built-in kinds come without
// apiVersion and kind, which the list says for all of them.
func (c *call) item(f form, obj *unstructured.Unstructured) any {
	shown := c.kind.in(obj)
	if f.as != "" {
		return partial(f, shown)
	}
	if c.kind.custom == nil {
		delete(shown.Object, "apiVersion")
		delete(shown.Object, "kind")
	}
	return shown.Object
}

package demo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

func (c *call) read(w http.ResponseWriter) error {
	query := c.request.URL.Query()
	watched, _ := strconv.ParseBool(query.Get("watch"))
	switch {
	case watched && c.subresource == "":
		return c.watch(w)
	case c.name == "":
		return c.list(w)
	}
	obj, revision := c.server.plane.store.get(c.groupResource(), c.namespace, c.name)
	if err := notLater(query.Get("resourceVersion"), revision); err != nil {
		return err
	}
	if obj == nil {
		return apierrors.NewNotFound(c.groupResource(), c.name)
	}
	return c.writeObject(w, http.StatusOK, obj)
}

// notLater refuses a resourceVersion that the store has not reached. A real server
// waits some seconds first, for its cache to catch up; this one has none.
func notLater(text string, revision int64) error {
	if text == "" {
		return nil
	}
	wanted, err := strconv.ParseInt(text, 10, 64)
	if err != nil || wanted < 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: Invalid value: %q: must be a number", text))
	}
	if wanted <= revision {
		return nil
	}
	status := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, revision), 1)
	status.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return status
}

// selection is a label and a field selector.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

func (c *call) selector() (*selection, error) {
	query := c.request.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unable to parse label selector: %v", err))
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unable to parse field selector: %v", err))
	}
	for _, r := range byField.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" && !slices.Contains(c.kind.fields, r.Field) {
			return nil, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	if c.name != "" { // an old form of watching one object: its path with watch=true
		byField = fields.AndSelectors(byField, fields.OneTermEqualSelector("metadata.name", c.name))
	}
	return &selection{labels: byLabel, fields: byField}, nil
}

func (s *selection) empty() bool { return s.labels.Empty() && s.fields.Empty() }

func (s *selection) matches(obj *unstructured.Unstructured) bool {
	return obj != nil && s.labels.Matches(labels.Set(obj.GetLabels())) && s.fields.Matches(objectFields{obj})
}

// objectFields are an object's values as field selectors compare them.
type objectFields struct{ obj *unstructured.Unstructured }

func (f objectFields) Has(path string) bool { return f.Get(path) != "" }

func (f objectFields) Get(path string) string {
	value, found, err := unstructured.NestedFieldNoCopy(f.obj.Object, splitPath(path)...)
	if !found || err != nil || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// page is one answer to a list.
type page struct {
	items     []*unstructured.Unstructured
	revision  int64
	next      string // the continue token; empty: this was the last page
	remaining *int64 // nil: not known
}

// token is what a continue token holds.
type token struct {
	Revision int64  `json:"rv"`    // of the first page
	After    string `json:"after"` // the key of the last object that was listed
}

func (c *call) list(w http.ResponseWriter) error {
	selected, err := c.selector()
	if err != nil {
		return err
	}
	p, err := c.page(selected)
	if err != nil {
		return err
	}
	return c.writeList(w, p)
}

func (c *call) page(selected *selection) (*page, error) {
	query := c.request.URL.Query()
	all, revision := c.server.plane.store.list(c.groupResource(), c.namespace)
	if err := notLater(query.Get("resourceVersion"), revision); err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi("0" + query.Get("limit"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("limit: Invalid value: %q: must be a number", query.Get("limit")))
	}
	p := &page{revision: revision}
	after := ""
	if text := query.Get("continue"); text != "" {
		t, err := c.readToken(text)
		if err != nil {
			return nil, err
		}
		p.revision, after = t.Revision, t.After
	}
	for i, obj := range all {
		key := objectKey(obj.GetNamespace(), obj.GetName())
		if key <= after || !selected.matches(obj) {
			continue
		}
		if limit > 0 && len(p.items) == limit {
			p.cut(selected, len(all)-i)
			break
		}
		p.items = append(p.items, obj)
	}
	return p, nil
}

// cut ends a page before the last rest objects. How many of them a selector
// matches is not counted, as in kube-apiserver.
func (p *page) cut(selected *selection, rest int) {
	last := p.items[len(p.items)-1]
	data, _ := json.Marshal(token{Revision: p.revision, After: objectKey(last.GetNamespace(), last.GetName())})
	p.next = base64.RawURLEncoding.EncodeToString(data)
	if selected.empty() {
		n := int64(rest)
		p.remaining = &n
	}
}

func (c *call) readToken(text string) (token, error) {
	var t token
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, apierrors.NewBadRequest("continue key is not valid")
	}
	if _, _, _, err := c.server.plane.store.since(c.groupResource(), t.Revision); err != nil {
		return t, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You must start a new list without the continue parameter.")
	}
	return t, nil
}

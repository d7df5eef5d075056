package demo

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (c *call) delete(w http.ResponseWriter) error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if c.name == "" {
		return c.deleteCollection(w, options)
	}
	last, err := c.deleteOne(c.name, options)
	if err != nil {
		return err
	}
	if last.GetDeletionTimestamp() != nil { // waits for its finalizers
		return c.writeObject(w, http.StatusOK, last)
	}
	return writeJSON(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: c.name, Group: c.kind.Group, Kind: c.kind.plural, UID: last.GetUID()},
	})
}

// deleteOptions reads the options from the body and puts its dryRun among the
// query's, where the rest of the call looks for it.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	body, mediaType, err := readBody(c.request)
	if err != nil || len(body) == 0 {
		return options, err
	}
	m, err := c.kind.decode(body, mediaType)
	if err != nil {
		return nil, err
	}
	if err := fromMap(m, options); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot read the DeleteOptions: %v", err))
	}
	query := c.request.URL.Query()
	query["dryRun"] = append(query["dryRun"], options.DryRun...)
	c.request.URL.RawQuery = query.Encode()
	return options, nil
}

// deleteOne deletes an object, or marks it for deletion if it has finalizers, and
// returns its last state.
func (c *call) deleteOne(name string, options *metav1.DeleteOptions) (*unstructured.Unstructured, error) {
	last, err := c.change(name, func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(c.groupResource(), name)
		}
		if err := checkPreconditions(options.Preconditions, old); err != nil {
			return nil, apierrors.NewConflict(c.groupResource(), name, err)
		}
		return withoutFinalizers(old), nil
	})
	if err != nil {
		return nil, err
	}
	if dry, _ := isDryRun(c.request.URL.Query()["dryRun"]); !dry && last.GetDeletionTimestamp() == nil {
		c.server.plane.deleted(c.kind, last)
	}
	return last, nil
}

// withoutFinalizers returns what a deletion leaves of old: nil, or old marked as
// being deleted while it has finalizers.
func withoutFinalizers(old *unstructured.Unstructured) *unstructured.Unstructured {
	switch {
	case len(old.GetFinalizers()) == 0:
		return nil
	case old.GetDeletionTimestamp() != nil:
		return old
	}
	obj := old.DeepCopy()
	now := metav1.Now()
	obj.SetDeletionTimestamp(&now)
	none := int64(0)
	obj.SetDeletionGracePeriodSeconds(&none)
	return obj
}

func checkPreconditions(p *metav1.Preconditions, old *unstructured.Unstructured) error {
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != old.GetUID():
		return fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, old.GetUID())
	case p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion():
		return fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)", *p.ResourceVersion, old.GetResourceVersion())
	}
	return nil
}

func (c *call) deleteCollection(w http.ResponseWriter, options *metav1.DeleteOptions) error {
	if c.kind.namespaced && c.namespace == "" {
		return apierrors.NewMethodNotSupported(c.groupResource(), "deletecollection")
	}
	selected, err := c.selector()
	if err != nil {
		return err
	}
	objects, revision := c.server.plane.store.list(c.groupResource(), c.namespace)
	list := &page{revision: revision}
	for _, obj := range objects {
		if !selected.matches(obj) {
			continue
		}
		last, err := c.deleteOne(obj.GetName(), options)
		if apierrors.IsNotFound(err) {
			continue // someone else was faster
		}
		if err != nil {
			return err
		}
		list.items = append(list.items, last)
	}
	return c.writeList(w, list)
}

// deleted removes what lived inside of an object that is gone. In a cluster
// controllers do that, some time later.
func (c *ControlPlane) deleted(k *kind, obj *unstructured.Unstructured) {
	switch k {
	case namespaceKind:
		c.store.drop(inNamespace(obj.GetName()))
	case crdKind:
		c.dropInstances(obj)
	}
}

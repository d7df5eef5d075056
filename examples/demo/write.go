package demo

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
)

// generatedNameLength is how many random characters generateName gets.
const generatedNameLength = 5

// An edit makes of the stored object the one to store; see store.write.
type edit func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)

// change runs edit on the object called name, and stores its result unless the
// request is a dry run.
func (c *call) change(name string, edit edit) (*unstructured.Unstructured, error) {
	s := c.server.plane.store
	dry, err := isDryRun(c.request.URL.Query()["dryRun"])
	if err != nil {
		return nil, err
	}
	if !dry {
		return s.write(c.groupResource(), c.namespace, name, edit)
	}
	old, _ := s.get(c.groupResource(), c.namespace, name)
	obj, err := edit(old)
	if obj == nil && err == nil {
		return old, nil // would be deleted
	}
	return obj, err
}

func isDryRun(values []string) (bool, error) {
	for _, v := range values {
		if v != metav1.DryRunAll {
			return false, apierrors.NewBadRequest(fmt.Sprintf("dryRun: unsupported value: %q: supported values: %q", v, metav1.DryRunAll))
		}
	}
	return len(values) > 0, nil
}

// decode reads the request's body as an object of the call's kind, checked, with
// the name and namespace of the URL.
func (c *call) decode() (*unstructured.Unstructured, []string, error) {
	body, mediaType, err := readBody(c.request)
	if err != nil {
		return nil, nil, err
	}
	m, err := c.kind.decode(body, mediaType)
	if err != nil {
		return nil, nil, err
	}
	return c.take(m)
}

func (c *call) take(body map[string]any) (*unstructured.Unstructured, []string, error) {
	obj, err := c.kind.accept(body)
	if err != nil {
		return nil, nil, err
	}
	warnings, err := c.kind.checkFields(obj, c.request.URL.Query().Get("fieldValidation"))
	if err != nil {
		return nil, nil, err
	}
	return obj, warnings, c.addressed(obj)
}

// addressed makes sure that obj is the one that the URL names.
func (c *call) addressed(obj *unstructured.Unstructured) error {
	if got := obj.GetNamespace(); got != "" && got != c.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if got := obj.GetName(); got != "" && c.name != "" && got != c.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", got, c.name))
	}
	if c.namespace != "" {
		obj.SetNamespace(c.namespace)
	}
	if c.name != "" {
		obj.SetName(c.name)
	}
	return nil
}

func (c *call) create(w http.ResponseWriter) error {
	if c.kind.namespaced && c.namespace == "" {
		return apierrors.NewMethodNotSupported(c.groupResource(), "create")
	}
	obj, warnings, err := c.decode()
	if err != nil {
		return err
	}
	if obj.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if prefix := obj.GetGenerateName(); obj.GetName() == "" && prefix != "" {
		obj.SetName(prefix + rand.String(generatedNameLength))
	}
	if err := c.checkNamespace(); err != nil {
		return err
	}
	stored, err := c.change(obj.GetName(), func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(c.groupResource(), obj.GetName())
		}
		return c.settleUpdate(nil, obj)
	})
	if err != nil {
		return err
	}
	addWarnings(w, warnings)
	return c.writeObject(w, http.StatusCreated, stored)
}

// checkNamespace refuses to create an object in a namespace that is not there.
func (c *call) checkNamespace() error {
	if c.namespace == "" {
		return nil
	}
	gr := namespaceKind.groupResource()
	if ns, _ := c.server.plane.store.get(gr, "", c.namespace); ns == nil {
		return apierrors.NewNotFound(gr, c.namespace)
	}
	return nil
}

func (c *call) update(w http.ResponseWriter) error {
	obj, warnings, err := c.decode()
	if err != nil {
		return err
	}
	stored, err := c.change(c.name, func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if err := c.checkUpdate(old, obj); err != nil {
			return nil, err
		}
		return c.settleUpdate(old, obj)
	})
	if err != nil {
		return err
	}
	addWarnings(w, warnings)
	return c.writeObject(w, http.StatusOK, stored)
}

// checkUpdate is optimistic locking: an update that names a resourceVersion or uid
// is of that one or of none.
func (c *call) checkUpdate(old, obj *unstructured.Unstructured) error {
	if old == nil {
		return apierrors.NewNotFound(c.groupResource(), c.name)
	}
	if got := obj.GetUID(); got != "" && got != old.GetUID() {
		return apierrors.NewConflict(c.groupResource(), c.name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", got, old.GetUID()))
	}
	rv := obj.GetResourceVersion()
	if rv == "" && c.kind.custom != nil {
		return invalidField(c.kind, c.name, "metadata.resourceVersion", 0, "must be specified for an update")
	}
	if rv != "" && rv != old.GetResourceVersion() {
		return apierrors.NewConflict(c.groupResource(), c.name,
			fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

func addWarnings(w http.ResponseWriter, warnings []string) {
	for _, text := range warnings {
		w.Header().Add("Warning", `299 - "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
	}
}

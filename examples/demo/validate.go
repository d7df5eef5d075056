package demo

import (
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errNotUnstructured = errors.New("the merged object has an unexpected Go type")

// validate says what of obj kube-apiserver would refuse, as far as this package
// knows: names, custom resources by their schema, CustomResourceDefinitions, and
// the budgets of PodDisruptionBudgets.
func (k *kind) validate(obj *unstructured.Unstructured) field.ErrorList {
	errs := validateName(k, obj)
	switch {
	case k == crdKind:
		errs = append(errs, checkCRD(obj)...)
	case k.custom != nil:
		errs = append(errs, validate(k.custom.schema, obj.Object, nil)...)
	case k.Kind == "PodDisruptionBudget":
		errs = append(errs, validateBudget(obj)...)
	}
	return errs
}

func validateName(k *kind, obj *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata", "name")
	name := obj.GetName()
	if name == "" {
		return field.ErrorList{field.Required(path, "name or generateName is required")}
	}
	check := validation.IsDNS1123Subdomain
	if k == namespaceKind {
		check = validation.IsDNS1123Label
	}
	var errs field.ErrorList
	for _, message := range check(name) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

var percent = regexp.MustCompile(`^[0-9]+%$`)

func validateBudget(obj *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	if spec["minAvailable"] != nil && spec["maxUnavailable"] != nil {
		errs = append(errs, field.Invalid(path, "both set", "minAvailable and maxUnavailable cannot be both set"))
	}
	for _, key := range []string{"minAvailable", "maxUnavailable"} {
		switch value := spec[key].(type) {
		case string:
			if !percent.MatchString(value) {
				errs = append(errs, field.Invalid(path.Child(key), value, "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%')"))
			}
		case int64:
			if value < 0 {
				errs = append(errs, field.Invalid(path.Child(key), value, "must be greater than or equal to 0"))
			}
		}
	}
	return errs
}

func invalidField(k *kind, name, path string, value any, message string) error {
	err := field.Invalid(field.NewPath(path), value, message)
	return apierrors.NewInvalid(k.GroupKind(), name, field.ErrorList{err})
}

// unknownFieldError is how the field manager of kube-apiserver refuses an applied
// configuration with a field that the schema does not have.
func unknownFieldError(obj *unstructured.Unstructured, path string) error {
	return fmt.Errorf("failed to create typed patch object (%s/%s; %s): .%s: field not declared in schema",
		obj.GetNamespace(), obj.GetName(), obj.GroupVersionKind(), path)
}

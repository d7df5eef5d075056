package builtin

import (
	"errors"
	"reflect"

	kjson "sigs.k8s.io/json"
)

// Unknown returns the paths of the fields of object, in JSON, that the kind does not
// have, as kube-apiserver writes them ("spec.containers[0].imag"): none when the object
// cannot be read as one of the kind.
func (s *Schema) Unknown(object []byte) []string {
	mistakes, err := kjson.UnmarshalStrict(object, reflect.New(deref(s.root)).Interface(), kjson.DisallowUnknownFields)
	if err != nil {
		return nil
	}
	var paths []string
	for _, mistake := range mistakes {
		var field kjson.FieldError
		if errors.As(mistake, &field) {
			paths = append(paths, field.FieldPath())
		}
	}
	return paths
}

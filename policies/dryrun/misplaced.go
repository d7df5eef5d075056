package dryrun

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// strictError refuses fields that the client's version does not have.
type strictError struct{ error }

func (strictError) code() int { return http.StatusBadRequest }

// withoutMisplaced returns the body of a create or an update without the fields that the
// client's version does not have and that the conversion would take for others, and warns
// of them or refuses them, as ?fieldValidation= says. What else a client's version does not
// have is the server's to tell of.
func (r *run) withoutMisplaced() ([]byte, error) {
	if r.Request.Verb != "create" && r.Request.Verb != "update" {
		return r.Body, nil
	}
	misplaced := r.Conversion.Misplaced(r.Body)
	if len(misplaced) == 0 {
		return r.Body, nil
	}
	directive := ""
	if query, err := url.ParseQuery(r.Request.Query); err == nil {
		directive = query.Get("fieldValidation")
	}
	var mistakes []error
	for _, path := range misplaced {
		mistakes = append(mistakes, errors.New(`unknown field "`+path+`"`))
	}
	switch directive {
	case metav1.FieldValidationStrict:
		from := r.Conversion.From
		return nil, strictError{fmt.Errorf("%s in version %q cannot be handled as a %[1]s: %[3]w", from.Kind, from.Version, runtime.NewStrictDecodingError(mistakes))}
	case metav1.FieldValidationIgnore:
	default:
		for _, mistake := range mistakes {
			r.Warnings = append(r.Warnings, mistake.Error())
		}
	}
	return convert.Without(nil, r.Body, misplaced), nil
}

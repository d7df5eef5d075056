package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/builtin"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
)

// Field validation is what a client asks for with ?fieldValidation=: whether fields that
// its version does not have, and keys that stand twice, are refused (Strict), warned
// about (Warn, kube-apiserver's default) or passed over (Ignore).
//
// The server can tell of the object that it gets, and does. What only the proxy can tell
// is what the conversion changes before: a field of the client's under a name that only
// the server's version has, one that the conversion drops, and a second key where a rule
// looks for one.

// maxFieldWarnings is how many bytes of warnings about fields one answer has, as with
// kube-apiserver, so that its head stays one that clients take. The first always fits.
const maxFieldWarnings = 4 << 10

// fieldValidation is what the client asks for; "" for what kube-apiserver refuses.
func (x *exchange) fieldValidation() string {
	if !strings.Contains(x.req.Query, "fieldValidation") {
		return metav1.FieldValidationWarn
	}
	query, err := url.ParseQuery(x.req.Query)
	if err != nil {
		return ""
	}
	switch asked := query.Get("fieldValidation"); asked {
	case "":
		return metav1.FieldValidationWarn
	case metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore:
		return asked
	}
	return ""
}

// validated returns the client's doc, the JSON of raw, as it is to be converted: without
// unknown fields that would become others. It refuses or warns as the client asks.
func (x *exchange) validated(raw, doc []byte) ([]byte, error) {
	directive, form := x.fieldValidation(), patchType(x.req.ContentType)
	if directive == "" || form == mediaProtobuf {
		return doc, nil // in protobuf there is no unknown field
	}
	decoded, mistakes := decodeStrict(doc)
	if form == "application/yaml" || form == applyPatch {
		mistakes = yamlTwice(raw)
	}
	if isApply(form) {
		if err := x.undeclared(decoded, doc); err != nil {
			return nil, err
		}
	}
	wrong := x.wrongFields(form, decoded, doc)
	for _, text := range wrong.told {
		mistakes = append(mistakes, errors.New(`unknown field "`+text+`"`))
	}
	switch {
	case len(mistakes) == 0:
	case directive == metav1.FieldValidationStrict:
		return nil, x.strictly(form, doc, decoded, mistakes)
	case directive == metav1.FieldValidationWarn:
		x.warnAbout(mistakes)
	}
	if len(wrong.drop) > 0 {
		return convert.Without(nil, doc, wrong.drop), nil
	}
	return doc, nil
}

// wrongFields are the fields of a body that the server does not get as the client's.
type wrongFields struct {
	told []string // what the client's version does not have, or the conversion drops
	drop []string // where in the body they are that would become other fields
}

// wrongFields finds them in a body of the form, given decoded and as text.
func (x *exchange) wrongFields(form string, decoded any, doc []byte) wrongFields {
	switch form {
	case jsonPatch:
		return x.wrongOperations(decoded)
	case strategicMergePatch:
		decoded = withoutDirectives(decoded)
		stripped, err := json.Marshal(decoded)
		if err != nil {
			return wrongFields{}
		}
		doc = stripped
	}
	var wrong wrongFields
	object, ok := decoded.(map[string]any)
	if !ok {
		return wrong
	}
	deletes := form == mergePatch || form == strategicMergePatch // by a null
	if !isApply(form) {                                          // of which undeclared has judged
		for _, f := range x.unknownFields(object, doc, deletes) {
			if x.conv.Takes(f.Path) {
				wrong.drop = append(wrong.drop, f.Path)
			}
			if !f.Null || !deletes {
				wrong.told = append(wrong.told, f.Path)
			}
		}
	}
	wrong.addLost(x.conv.Lost(doc), deletes)
	return wrong
}

// addLost adds the fields that a conversion drops. One that a patch deletes is not
// missed.
func (w *wrongFields) addLost(lost []convert.Lost, deletes bool) {
	for _, f := range lost {
		if (!f.Null || !deletes) && !slices.Contains(w.told, f.Path) {
			w.told = append(w.told, f.Path)
		}
	}
}

// isApply reports whether a patch of the form is a server-side apply.
func isApply(form string) bool { return form == applyPatch || form == applyPatchCBOR }

func (x *exchange) warnAbout(mistakes []error) {
	size := 0
	for i, mistake := range mistakes {
		text := mistake.Error()
		if size += min(len(text), maxWarning); i > 0 && size > maxFieldWarnings {
			return
		}
		x.warnings = append(x.warnings, text)
	}
}

// decodeStrict decodes doc, to nil when it is not JSON, and says which keys stand twice.
func decodeStrict(doc []byte) (decoded any, twice []error) {
	twice, err := kjson.UnmarshalStrict(doc, &decoded, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, nil // the conversion says what is wrong with it
	}
	return decoded, twice
}

// yamlTwice says which keys stand twice in a YAML document.
func yamlTwice(raw []byte) []error {
	if _, err := yaml.YAMLToJSONStrict(raw); err != nil {
		return []error{err}
	}
	return nil
}

// unknownFields returns the fields of the client's object that its version does not have.
//
// A field that the server's version does have under the same name may have come to the
// client in an object that it read. It is not held against an update or a patch that
// sends it back.
func (x *exchange) unknownFields(object map[string]any, doc []byte, patch bool) []discovery.UnknownField {
	unknown := x.st.fields[x.conv.From].unknown(object, doc)
	if len(unknown) == 0 || !patch && x.req.Verb == "create" {
		return unknown
	}
	server, known := x.st.fields[x.conv.To]
	if !known {
		return unknown
	}
	everywhere := server.unknown(object, doc)
	return slices.DeleteFunc(unknown, func(f discovery.UnknownField) bool {
		if x.conv.Takes(f.Path) || x.conv.FieldPath(f.Path) != f.Path {
			return false
		}
		return !slices.ContainsFunc(everywhere, func(e discovery.UnknownField) bool {
			return e.Path == f.Path || strings.HasPrefix(f.Path, e.Path+".") || strings.HasPrefix(f.Path, e.Path+"[")
		})
	})
}

// strictly is kube-apiserver's answer to a request that must not have mistakes.
func (x *exchange) strictly(form string, doc []byte, decoded any, mistakes []error) error {
	err := &strictError{runtime.NewStrictDecodingError(mistakes)}
	switch form {
	case applyPatch, applyPatchCBOR:
		return &statusError{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
			message: fmt.Sprintf("error strict decoding YAML: %v", mistakes[0]),
		}
	case mergePatch, strategicMergePatch, jsonPatch:
		shown := string(doc)
		if form == strategicMergePatch {
			shown = fmt.Sprintf("%+v", decoded)
		}
		invalid := apierrors.NewInvalid(schema.GroupKind{}, "", fieldpath.ErrorList{
			fieldpath.Invalid(fieldpath.NewPath("patch"), shown, err.Error()),
		})
		return &statusError{
			code: http.StatusUnprocessableEntity, reason: metav1.StatusReasonInvalid, err: err,
			message: invalid.ErrStatus.Message, causes: invalid.ErrStatus.Details.Causes, // which show the patch
		}
	}
	kind := x.kindOf(doc)
	return &statusError{
		code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, err: err,
		message: fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", kind, x.conv.From.Version, kind, err),
	}
}

// strictError is what the log says of an answer that may show the client's patch.
type strictError struct{ error }

// details are as kube-apiserver's: what it cannot decode it does not name.
func (*strictError) details(causes []metav1.StatusCause) *metav1.StatusDetails {
	if len(causes) == 0 {
		return nil
	}
	return &metav1.StatusDetails{Causes: causes}
}

// kindOf is the kind of the client's object: as it says, or as discovery does.
func (x *exchange) kindOf(doc []byte) string {
	var named struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(doc, &named); err == nil && named.Kind != "" {
		return clip(named.Kind)
	}
	return x.st.kind(x.conv.From)
}

// fieldNames knows which fields a version has.
type fieldNames struct{ schema any }

// unknown returns the fields of an object, given decoded and as text, that the version
// does not have; none when nobody knows its fields.
func (n fieldNames) unknown(object map[string]any, doc []byte) []discovery.UnknownField {
	switch s := n.schema.(type) {
	case *discovery.Schema:
		return s.Unknown(object)
	case *builtin.Schema:
		return unknownOf(s, object, doc)
	}
	return nil
}

// unknownOf is Unknown of a schema that does not tell which of the fields are null.
func unknownOf(s *builtin.Schema, object map[string]any, doc []byte) []discovery.UnknownField {
	paths := s.Unknown(doc)
	if len(paths) == 0 {
		return nil
	}
	values, err := json.Marshal(withoutNull(object))
	if err != nil {
		return nil
	}
	withValue := s.Unknown(values)
	found := make([]discovery.UnknownField, 0, len(paths))
	for _, path := range paths {
		found = append(found, discovery.UnknownField{Path: path, Null: !slices.Contains(withValue, path)})
	}
	return found
}

// withoutNull returns v without the members of objects that are null. Items of lists
// keep their places.
func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for key, member := range v {
			if member != nil {
				kept[key] = withoutNull(member)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = withoutNull(item)
		}
		return kept
	}
	return v
}

// rememberFields notes which fields a version has, for the requests of st.
func (st *state) rememberFields(v convert.Version, s convert.Schema) convert.Schema {
	if n, ok := s.(convert.Named); ok {
		if st.fields == nil {
			st.fields = map[convert.Version]fieldNames{}
		}
		st.fields[v] = fieldNames{n.Types}
	}
	return s
}

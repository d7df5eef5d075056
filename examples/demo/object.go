package demo

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// maxBody is kube-apiserver's limit of a request body, in bytes.
const maxBody = 3 << 20

// readBody returns the body and its media type without parameters.
func readBody(r *http.Request) ([]byte, string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("cannot read the request body: %v", err))
	}
	if len(body) > maxBody {
		return nil, "", apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	header := r.Header.Get("Content-Type")
	if header == "" {
		return body, jsonType, nil
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return nil, "", unsupportedMediaType(header, jsonType, "application/yaml")
	}
	return body, mediaType, nil
}

func unsupportedMediaType(got string, accepted ...string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format (%s) - accepted media types include: %s", got, strings.Join(accepted, ", ")))
}

// decode reads a request's body: JSON or YAML, or, of a kind with a Go type,
// protobuf, in which kubectl writes what it makes itself.
func (k *kind) decode(body []byte, mediaType string) (map[string]any, error) {
	if mediaType != runtime.ContentTypeProtobuf || !k.typed() {
		return decodeMap(body, mediaType)
	}
	typed, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot read the protobuf body: %v", err))
	}
	gvk := typed.GetObjectKind().GroupVersionKind()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("cannot read a %s: %w", gvk, err)
	}
	m["apiVersion"], m["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return m, nil
}

// decodeMap reads one JSON or YAML object.
func decodeMap(body []byte, mediaType string) (map[string]any, error) {
	switch mediaType {
	case jsonType:
	case "application/yaml", "application/apply-patch+yaml":
		data, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
		}
		body = data
	default:
		return nil, unsupportedMediaType(mediaType, jsonType, "application/yaml")
	}
	var obj map[string]any
	if err := utiljson.Unmarshal(body, &obj); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; json parse error: %v", err))
	}
	if obj == nil {
		return nil, apierrors.NewBadRequest("the request has no body")
	}
	return obj, nil
}

// accept takes a body as an object of k. A missing apiVersion and kind are those
// of k, another one is an error, as in kube-apiserver.
func (k *kind) accept(body map[string]any) (*unstructured.Unstructured, error) {
	for key, want := range map[string]string{"apiVersion": k.GroupVersion().String(), "kind": k.Kind} {
		if body[key] == nil || body[key] == "" {
			body[key] = want
		}
	}
	obj := &unstructured.Unstructured{Object: body}
	if got, want := obj.GetAPIVersion(), k.GroupVersion().String(); got != want {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
	}
	if got := obj.GetKind(); got != k.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", got, k.Kind))
	}
	return obj, checkMetadata(body)
}

// checkMetadata refuses metadata of wrong types, which the accessors of
// Unstructured would read as absent.
func checkMetadata(body map[string]any) error {
	raw, ok := body["metadata"].(map[string]any)
	if !ok {
		if body["metadata"] != nil {
			return apierrors.NewBadRequest("metadata: must be an object")
		}
		body["metadata"] = map[string]any{}
		return nil
	}
	var meta metav1.ObjectMeta
	if err := fromMap(raw, &meta); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata: %v", err))
	}
	return nil
}

// fromMap reads a decoded object into a Go type.
func fromMap(m map[string]any, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, into); err != nil {
		return fmt.Errorf("cannot read a %T: %w", into, err)
	}
	return nil
}

// checkFields removes the fields of obj that k does not have, checks the types of
// the others, and returns a warning for each that it removed, or, if validation
// is "Strict", an error.
func (k *kind) checkFields(obj *unstructured.Unstructured, validation string) ([]string, error) {
	unknown, err := k.pruneUnknown(obj)
	if err != nil || len(unknown) == 0 || validation == metav1.FieldValidationIgnore {
		return nil, err
	}
	for i, path := range unknown {
		unknown[i] = fmt.Sprintf("unknown field %q", path)
	}
	if validation == metav1.FieldValidationStrict {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			k.Kind, k.Version, k.Kind, strings.Join(unknown, ", ")))
	}
	return unknown, nil
}

func (k *kind) pruneUnknown(obj *unstructured.Unstructured) ([]string, error) {
	if k.custom != nil {
		return pruneObject(k.custom.schema, obj.Object), nil
	}
	if !k.typed() {
		return nil, nil
	}
	unknown, err := unknownFields(obj, k)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.Kind, k.Version, k.Kind, err))
	}
	return unknown, nil
}

// unknownFields reads obj into k's Go type and back.
func unknownFields(obj *unstructured.Unstructured, k *kind) ([]string, error) {
	typed, err := scheme.Scheme.New(k.GroupVersionKind)
	if err != nil {
		return nil, fmt.Errorf("no such kind: %w", err)
	}
	converter := runtime.DefaultUnstructuredConverter
	var unknown []string
	err = converter.FromUnstructuredWithValidation(obj.Object, typed, true)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			name := strings.TrimPrefix(e.Error(), "unknown field ")
			unknown = append(unknown, strings.Trim(name, `"`))
		}
	} else if err != nil {
		return nil, err
	}
	clean, err := converter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("cannot write the object back: %w", err)
	}
	obj.Object = clean
	obj.SetGroupVersionKind(k.GroupVersionKind)
	return unknown, nil
}

// in returns obj as k's version shows it. obj may be one that the store holds: it
// is not changed.
func (k *kind) in(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	out.SetGroupVersionKind(k.GroupVersionKind)
	if k.custom != nil {
		pruneObject(k.custom.schema, out.Object)
		applyDefaults(k.custom.schema, out.Object)
	}
	return out
}

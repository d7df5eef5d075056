package dryrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// The media types of patches.
const (
	MergePatch          = "application/merge-patch+json"
	StrategicMergePatch = "application/strategic-merge-patch+json"
	JSONPatch           = "application/json-patch+json"
	ApplyPatch          = "application/apply-patch+yaml"
)

const (
	mediaJSON = "application/json"
	mediaYAML = "application/yaml"
)

// mediaType is a Content-Type without its parameters; "" for what is none.
func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return media
}

// hasBody reports whether r may have a body that a policy looks at.
func hasBody(r *engine.Request) bool {
	return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch"
}

// bodyError is a body where there can be none.
type bodyError struct{ verb string }

func (e *bodyError) Error() string {
	return fmt.Sprintf("a %s has no body that policies look at: only create (POST), update (PUT) and patch (PATCH) have one", e.verb)
}

func (e *bodyError) code() int { return http.StatusBadRequest }

// formError is a body in a form that the request cannot have.
type formError struct{ contentType, want string }

func (e *formError) Error() string {
	return fmt.Sprintf("cannot read a body of the content type %s: want %s", source.Quote(e.contentType), e.want)
}

func (e *formError) code() int { return http.StatusUnsupportedMediaType }

// toJSON gives the body of r in JSON; nil for none. A kube-apiserver takes YAML
// wherever it takes JSON, but for patches.
func toJSON(r *engine.Request, body []byte) ([]byte, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	switch media := mediaType(r.ContentType); {
	case r.Verb == "patch":
		return patchJSON(r, media, body)
	case r.ContentType == "" || media == mediaJSON:
		return body, nil
	case media == mediaYAML:
		return yamlToJSON(body)
	}
	return nil, &formError{r.ContentType, mediaJSON + " or " + mediaYAML}
}

func patchJSON(r *engine.Request, media string, body []byte) ([]byte, error) {
	switch media {
	case MergePatch, StrategicMergePatch, JSONPatch:
		return body, nil
	case ApplyPatch:
		return yamlToJSON(body)
	}
	return nil, &formError{r.ContentType, MergePatch + ", " + StrategicMergePatch + ", " + JSONPatch + " or " + ApplyPatch}
}

func yamlToJSON(body []byte) ([]byte, error) {
	if json.Valid(body) {
		return body, nil
	}
	converted, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, &engine.BodyError{Err: err}
	}
	return converted, nil
}

// responseJSON gives a server's answer in JSON; the events of a watch stand one
// after the other.
func responseJSON(r *engine.Request, body []byte) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	documents, err := ReadDocuments(bytes.NewReader(body), "the response")
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 && !r.Watch {
		return nil, fmt.Errorf("cannot read the response: it has %d documents; only a watch has several", len(documents))
	}
	if !r.Watch {
		return documents[0].JSON, nil
	}
	var events bytes.Buffer
	for _, d := range documents {
		events.Write(d.JSON)
		events.WriteByte('\n')
	}
	return events.Bytes(), nil
}

// Equal reports whether two JSON documents are the same: the order of keys does not
// count, the spelling of numbers does.
func Equal(a, b []byte) bool {
	var x, y any
	if decode(a, &x) != nil || decode(b, &y) != nil {
		return false
	}
	first, errX := json.Marshal(x)
	second, errY := json.Marshal(y)
	return errX == nil && errY == nil && bytes.Equal(first, second)
}

func decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}

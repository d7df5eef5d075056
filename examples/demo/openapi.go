package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protoV2Type is how older clients ask for OpenAPI v2, and the answer's type.
const protoV2Type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

var objectMeta metav1.ObjectMeta

// documents are encoded OpenAPI documents, which are large, kept while the custom
// resources stay the same.
type documents struct {
	mu     sync.Mutex
	state  string // of the definitions that the documents were made of
	byPath map[string][]byte
}

// document returns what build makes, encoded, or what it made before. A document
// is nil if build returns nil.
func (s *Server) document(path string, build func() map[string]any) ([]byte, error) {
	state := s.plane.customState()
	d := &s.documents
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byPath == nil || d.state != state {
		d.state, d.byPath = state, map[string][]byte{}
	}
	if data, ok := d.byPath[path]; ok {
		return data, nil
	}
	document := build()
	if document == nil {
		return nil, nil
	}
	data, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the OpenAPI document: %w", err)
	}
	d.byPath[path] = data
	return data, nil
}

// serveOpenAPIv3 answers for the index (path empty) and for the document of one
// group and version ("apis/policy/v1").
func (s *Server) serveOpenAPIv3(w http.ResponseWriter, r *http.Request, path string) error {
	var data []byte
	var err error
	if path == "" {
		data, err = s.indexV3()
	} else {
		data, err = s.documentV3(path)
	}
	if err != nil {
		return err
	}
	if data == nil {
		return errNotFound
	}
	return writeTagged(w, r, jsonType, data)
}

// indexV3 names all documents, each with a hash, so that clients may keep them.
func (s *Server) indexV3() ([]byte, error) {
	paths := map[string]any{}
	for _, k := range s.kinds() {
		name := strings.TrimPrefix(groupPath(k.GroupVersion()), "/")
		if paths[name] != nil {
			continue
		}
		data, err := s.documentV3(name)
		if err != nil {
			return nil, err
		}
		paths[name] = map[string]any{"serverRelativeURL": "/openapi/v3/" + name + "?hash=" + hashOf(data)}
	}
	data, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the OpenAPI index: %w", err)
	}
	return data, nil
}

func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

func (s *Server) documentV3(path string) ([]byte, error) {
	return s.document(path, func() map[string]any {
		m := &models{refPrefix: "#/components/schemas/", schemas: map[string]any{}}
		paths := map[string]any{}
		for _, k := range s.kinds() {
			if groupPath(k.GroupVersion()) == "/"+path {
				m.add(k)
				maps.Copy(paths, k.paths(parameterV3))
			}
		}
		if len(paths) == 0 {
			return nil
		}
		return map[string]any{
			"openapi":    "3.0.0",
			"info":       s.openAPIInfo(),
			"paths":      paths,
			"components": map[string]any{"schemas": m.schemas},
		}
	})
}

func parameterV3(name string) map[string]any {
	return map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}}
}

func parameterV2(name string) map[string]any {
	return map[string]any{"name": name, "in": "query", "type": "string", "uniqueItems": true}
}

func (s *Server) openAPIInfo() map[string]any {
	return map[string]any{"title": "Kubernetes", "version": "v" + s.Version}
}

// paths are the operations of k that clients look for in a document: kubectl
// learns from the patch operation which parameters a server knows.
func (k *kind) paths(parameter func(name string) map[string]any) map[string]any {
	own := map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
	operation := func(action string, parameters ...string) map[string]any {
		list := []any{}
		for _, name := range parameters {
			list = append(list, parameter(name))
		}
		return map[string]any{
			"operationId":                     action + strings.ReplaceAll(k.modelName(), ".", ""),
			"parameters":                      list,
			"responses":                       map[string]any{"200": map[string]any{"description": "OK"}},
			"x-kubernetes-action":             action,
			"x-kubernetes-group-version-kind": own,
		}
	}
	path := groupPath(k.GroupVersion())
	if k.namespaced {
		path += "/namespaces/{namespace}"
	}
	path += "/" + k.plural
	return map[string]any{
		path: map[string]any{
			"get":  operation("list", "labelSelector", "fieldSelector", "limit", "continue", "watch"),
			"post": operation("post", "dryRun", "fieldManager", "fieldValidation"),
		},
		path + "/{name}": map[string]any{
			"get":    operation("get"),
			"put":    operation("put", "dryRun", "fieldManager", "fieldValidation"),
			"patch":  operation("patch", "dryRun", "fieldManager", "fieldValidation", "force"),
			"delete": operation("delete", "dryRun", "propagationPolicy"),
		},
	}
}

func (s *Server) documentV2() ([]byte, error) {
	return s.document("openapi/v2", func() map[string]any {
		m := &models{refPrefix: "#/definitions/", v2: true, schemas: map[string]any{}}
		paths := map[string]any{}
		for _, k := range s.kinds() {
			m.add(k)
			maps.Copy(paths, k.paths(parameterV2))
		}
		return map[string]any{"swagger": "2.0", "info": s.openAPIInfo(), "paths": paths, "definitions": m.schemas}
	})
}

// serveOpenAPIv2 answers in JSON or, as kubectl asks for it, in protobuf.
func (s *Server) serveOpenAPIv2(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept")
	data, err := s.documentV2()
	if err != nil {
		return err
	}
	accept := r.Header.Get("Accept")
	switch {
	case accept == "", strings.Contains(accept, jsonType), strings.Contains(accept, "*/*"):
		return writeTagged(w, r, jsonType, data)
	case !strings.Contains(accept, "proto-openapi.spec.v2"):
		return notAcceptable(jsonType + ", " + protoV2Type)
	}
	document, err := openapiv2.ParseDocument(data)
	if err != nil {
		return fmt.Errorf("cannot read the OpenAPI document: %w", err)
	}
	out, err := proto.Marshal(document)
	if err != nil {
		return fmt.Errorf("cannot encode the OpenAPI document as protobuf: %w", err)
	}
	return writeTagged(w, r, protoV2Type, out)
}

// keywordsV2 are those of a schema that OpenAPI v2 has too.
var keywordsV2 = []string{
	"description", "enum", "format", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
	"minLength", "minProperties", "minimum", "pattern", "required", "title", "type", "uniqueItems",
}

// schemaV2 is a definition's schema in OpenAPI v2. As in kube-apiserver, what v2
// cannot say is left out, so that a client's own checks never refuse more than the
// server does.
func schemaV2(s map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range s {
		if slices.Contains(keywordsV2, key) || strings.HasPrefix(key, "x-kubernetes-") {
			out[key] = value
		}
	}
	source := jsonSchema(s)
	if source["nullable"] == true || source.is("x-kubernetes-int-or-string") {
		delete(out, "type")
	}
	if items := source.child("items"); items != nil {
		out["items"] = schemaV2(items)
	}
	if more := source.child("additionalProperties"); more != nil {
		out["additionalProperties"] = schemaV2(more)
	}
	if source.is("x-kubernetes-preserve-unknown-fields") {
		return out // its other properties would be taken for all there are
	}
	properties := map[string]any{}
	for name, p := range source.child("properties") {
		if child, ok := p.(map[string]any); ok {
			properties[name] = schemaV2(child)
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	return out
}

package dryrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Manifest is one object as a user would apply it.
type Manifest struct {
	// Source is where it stands: the file and, of several, which one
	// ("app.yaml#2").
	Source string

	APIVersion, Kind, Namespace, Name string

	// JSON is the object.
	JSON []byte
}

// String names the object as kubectl does.
func (m *Manifest) String() string {
	return fmt.Sprintf("%s: %s %s %s", m.Source, m.APIVersion, m.Kind, m.Name)
}

// typedItem gives an item of a kind's own list the version and kind that it need
// not have there.
func typedItem(item json.RawMessage, apiVersion, kind string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(item, &object); err != nil {
		return nil, err
	}
	if kind == "" || object["kind"] != nil || object["apiVersion"] != nil {
		return item, nil
	}
	var err error
	if object["apiVersion"], err = json.Marshal(apiVersion); err != nil {
		return nil, err
	}
	if object["kind"], err = json.Marshal(kind); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// maxManifestFile bounds one file of manifests, in bytes: what a chart of a
// large application renders to is a few MiB.
const maxManifestFile = 64 << 20

// ReadPath reads the manifests of a file, or of every .yaml, .yml and .json file
// below a folder, in the order of their names.
func ReadPath(path string) ([]Manifest, error) {
	var files []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != path && strings.HasPrefix(entry.Name(), ".") // ..data of a mounted ConfigMap, .git
		switch {
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case !entry.IsDir() && !hidden && (name == path || isManifest(name)):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	slices.Sort(files)
	var all []Manifest
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read manifests: %w", err)
		}
		manifests, err := Read(file, name)
		file.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, manifests...)
	}
	return all, nil
}

// isManifest tells manifests from what lies beside them: policies' own test
// cases are not manifests.
func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasSuffix(name, ".test.yaml")
	}
	return false
}

// Read reads the manifests of a stream of YAML or JSON documents, as kubectl
// does. A List, also one of a kind's own, counts as its items. name is what
// messages call the stream.
func Read(r io.Reader, name string) ([]Manifest, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxManifestFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if len(content) > maxManifestFile {
		return nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", name, maxManifestFile)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), peekBytes)
	var all []Manifest
	for n := 1; ; n++ {
		var object json.RawMessage
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read document %d of %s: %w", n, name, err)
		}
		manifests, err := manifestsOf(object, fmt.Sprintf("%s#%d", name, n))
		if err != nil {
			return nil, err
		}
		all = append(all, manifests...)
	}
	if len(all) == 1 {
		all[0].Source = name
	}
	return all, nil
}

// peekBytes is how much of a stream may be white space before it is known to be
// JSON or YAML.
const peekBytes = 4096

// manifestsOf gives the object of one document, the items of a List, or nothing
// for a document of comments only.
func manifestsOf(object []byte, where string) ([]Manifest, error) {
	if trimmed := bytes.TrimSpace(object); len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return nil, nil
	}
	if object[0] != '{' {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: a map is wanted", where)
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
		Items *[]json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: %w", where, err)
	}
	if head.APIVersion == "" || head.Kind == "" {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: apiVersion and kind are wanted", where)
	}
	if strings.HasSuffix(head.Kind, "List") && head.Items != nil {
		var all []Manifest
		for i, item := range *head.Items {
			item, err := typedItem(item, head.APIVersion, strings.TrimSuffix(head.Kind, "List"))
			if err != nil {
				return nil, fmt.Errorf("cannot read %s.items[%d]: %w", where, i, err)
			}
			items, err := manifestsOf(item, fmt.Sprintf("%s.items[%d]", where, i))
			if err != nil {
				return nil, err
			}
			all = append(all, items...)
		}
		return all, nil
	}
	name := head.Metadata.Name
	if name == "" {
		name = head.Metadata.GenerateName
	}
	return []Manifest{{
		Source: where, APIVersion: head.APIVersion, Kind: head.Kind,
		Namespace: head.Metadata.Namespace, Name: name, JSON: object,
	}}, nil
}

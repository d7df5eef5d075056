package dryrun

import (
	"bufio"
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
	"sigs.k8s.io/yaml"
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
		if !entry.IsDir() && (name == path || isManifest(name)) {
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

// Read reads the manifests of a stream of YAML or JSON documents. A List counts
// as its items. name is what messages call the stream.
func Read(r io.Reader, name string) ([]Manifest, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(io.LimitReader(r, maxManifestFile)))
	var all []Manifest
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		object, err := yaml.YAMLToJSON(document)
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

// manifestsOf gives the object of one document, the items of a List, or nothing
// for a document of comments only.
func manifestsOf(object []byte, where string) ([]Manifest, error) {
	if bytes.Equal(bytes.TrimSpace(object), []byte("null")) {
		return nil, nil
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: %w", where, err)
	}
	if head.APIVersion == "" || head.Kind == "" {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: apiVersion and kind are wanted", where)
	}
	if head.Kind == "List" && head.APIVersion == "v1" {
		var all []Manifest
		for i, item := range head.Items {
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

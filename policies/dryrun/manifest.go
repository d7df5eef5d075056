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
)

// Manifest is one object as a user would apply it.
type Manifest struct {
	// Source is where it stands: the file and, of several, which one ("app.yaml#2"),
	// with the file of a chart that Helm made it of.
	Source string

	APIVersion, Kind, Namespace, Name string

	// JSON is the object.
	JSON []byte
}

// String names the object as kubectl does.
func (m *Manifest) String() string {
	return fmt.Sprintf("%s: %s %s %s", m.Source, m.APIVersion, m.Kind, m.Name)
}

// ReadPath reads the manifests of a file, or of every .yaml, .yml and .json file
// below a folder, in the order of their names. The error has all that is wrong; the
// manifests are the others.
func ReadPath(path string) ([]Manifest, error) {
	var all []Manifest
	err := eachFile(path, IsManifest, func(file io.Reader, name string) error {
		manifests, err := Read(file, name)
		all = append(all, manifests...)
		return err
	})
	return all, err
}

// eachFile reads a file, or those below a folder that wanted wants.
func eachFile(path string, wanted func(name string) bool, read func(file io.Reader, name string) error) error {
	names, err := Files(path, wanted)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read manifests: %w", err))
			continue
		}
		errs = append(errs, read(file, name))
		file.Close()
	}
	return errors.Join(errs...)
}

// Files lists the file path, or the files below the folder path that are wanted, in
// the order of their names. Hidden ones are left out.
func Files(path string, wanted func(name string) bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := name != path && strings.HasPrefix(entry.Name(), ".") // ..data of a mounted ConfigMap, .git
		switch {
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case !entry.IsDir() && !hidden && (name == path || wanted(name)):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	slices.Sort(files)
	return files, nil
}

// IsManifest tells manifests from what lies beside them: policies' own test cases
// are not manifests.
func IsManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return !strings.HasSuffix(name, ".test.yaml")
	}
	return false
}

// Read reads the manifests of a stream of YAML or JSON documents, as kubectl does. A
// List, also one of a kind's own, counts as its items. name is what messages call
// the stream. The error has all that is wrong; the manifests are the others.
func Read(r io.Reader, name string) ([]Manifest, error) {
	documents, err := ReadDocuments(r, name)
	errs := []error{err}
	var all []Manifest
	for i := range documents {
		manifests, err := manifestsOf(documents[i].JSON, documents[i].Source)
		all, errs = append(all, manifests...), append(errs, err)
	}
	if len(all) == 1 && len(documents) == 1 {
		all[0].Source = documents[0].alone(name)
	}
	return all, errors.Join(errs...)
}

// head is what is looked at of every object.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
		Namespace    string `json:"namespace"`
	} `json:"metadata"`
	Items *[]json.RawMessage `json:"items"`
}

// manifestsOf gives the object of one document, or the items of a List.
func manifestsOf(object []byte, where string) ([]Manifest, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(object), []byte("{")) {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: a map is wanted", where)
	}
	var h head
	if err := json.Unmarshal(object, &h); err != nil {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: %w", where, err)
	}
	if h.APIVersion == "" || h.Kind == "" {
		return nil, fmt.Errorf("cannot read %s: it is no Kubernetes object: apiVersion and kind are wanted", where)
	}
	if strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		return itemsOf(&h, where)
	}
	name := h.Metadata.Name
	if name == "" {
		name = h.Metadata.GenerateName
	}
	return []Manifest{{
		Source: where, APIVersion: h.APIVersion, Kind: h.Kind,
		Namespace: h.Metadata.Namespace, Name: name, JSON: object,
	}}, nil
}

func itemsOf(list *head, where string) ([]Manifest, error) {
	var all []Manifest
	var errs []error
	for i, item := range *list.Items {
		item, err := typedItem(item, list.APIVersion, strings.TrimSuffix(list.Kind, "List"))
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read %s.items[%d]: %w", where, i, err))
			continue
		}
		items, err := manifestsOf(item, fmt.Sprintf("%s.items[%d]", where, i))
		all, errs = append(all, items...), append(errs, err)
	}
	return all, errors.Join(errs...)
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

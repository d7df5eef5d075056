package dryrun

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxManifestFile bounds one file of manifests, in bytes: what a chart of a
// large application renders to is a few MiB.
const maxManifestFile = 64 << 20

// Document is one document of a stream.
type Document struct {
	// Source is the stream and which of its documents it is ("app.yaml#2"), with the
	// file of a chart that Helm made it of.
	Source string

	// JSON is the document.
	JSON []byte

	chart string // the file of the chart; "" for none
}

// alone is what the one document of the stream name is called.
func (d *Document) alone(name string) string { return name + inChart(d.chart) }

func inChart(file string) string {
	if file == "" {
		return ""
	}
	return " (" + file + ")"
}

// ReadDocuments reads a stream of YAML or JSON documents, as kubectl does, and leaves
// out those that are empty or have comments only. name is what messages call the
// stream. The error has all that is wrong; the documents are the others.
func ReadDocuments(r io.Reader, name string) ([]Document, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxManifestFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	if len(content) > maxManifestFile {
		return nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", name, maxManifestFile)
	}
	s := stream{name: name}
	switch content := bytes.TrimSpace(content); {
	case bytes.HasPrefix(content, []byte("{")), bytes.HasPrefix(content, []byte("[")):
		if !s.json(content) {
			s.yaml(content) // YAML in flow style
		}
	default:
		s.yaml(content)
	}
	return s.documents, errors.Join(s.errs...)
}

// stream collects the documents of a stream.
type stream struct {
	name      string
	count     int // of documents so far, also those that are left out
	documents []Document
	errs      []error
}

func (s *stream) add(document []byte, chart string) {
	if trimmed := bytes.TrimSpace(document); len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return
	}
	source := fmt.Sprintf("%s#%d%s", s.name, s.count, inChart(chart))
	s.documents = append(s.documents, Document{Source: source, JSON: document, chart: chart})
}

func (s *stream) fail(err error) {
	s.errs = append(s.errs, fmt.Errorf("cannot read document %d of %s: %w", s.count, s.name, err))
}

// json reads one JSON document after the other. It reports false if the first is
// none.
func (s *stream) json(content []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return true
		}
		s.count++
		if err != nil && s.count == 1 {
			s.count = 0
			return false
		}
		if err != nil {
			s.fail(err)
			return true
		}
		s.add(document, "")
	}
}

// yaml reads documents between lines of "---".
func (s *stream) yaml(content []byte) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		s.count++
		if err != nil {
			s.fail(err)
			return
		}
		if json.Valid(document) { // keeps its numbers as they are
			s.add(bytes.TrimSpace(document), "")
			continue
		}
		converted, err := yaml.YAMLToJSON(document)
		if err != nil {
			s.fail(err)
			continue
		}
		s.add(converted, chartFile(document))
	}
}

// chartFile is what Helm notes before each document that it makes: "# Source:
// shop/templates/app.yaml".
func chartFile(document []byte) string {
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if file, ok := strings.CutPrefix(line, "# Source: "); ok {
			return file
		}
		if line != "" && !strings.HasPrefix(line, "#") && line != "---" {
			return ""
		}
	}
	return ""
}

// Manifests are the objects of the document: itself, or the items of a List.
func (d *Document) Manifests() ([]Manifest, error) { return manifestsOf(d.JSON, d.Source) }

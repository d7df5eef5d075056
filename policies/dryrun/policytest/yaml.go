package policytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// The document that *.test.yaml holds.
const (
	apiVersion = "mvp.k8s.io/v1"
	kind       = "PolicyTest"
)

// testSpec is a *.test.yaml file. Files are named from where it lies.
type testSpec struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"` // of the cases together; default that of the file
	} `json:"metadata"`

	Policies  []string     `json:"policies"`  // folders and files; default, without a library: the file's own folder
	Library   []string     `json:"library"`   // shipped policies
	Resources []string     `json:"resources"` // CustomResourceDefinitions, which tell the types of fields
	Servers   []serverSpec `json:"servers"`   // default: one that serves everything but what policies convert
	Cases     []caseSpec   `json:"cases"`
}

// caseSpec is one case of a *.test.yaml file.
type caseSpec struct {
	Name string `json:"name"`

	// Object is the manifest, or the body of Request; Manifest is a file that has it.
	Object   json.RawMessage `json:"object"`
	Manifest string          `json:"manifest"`

	// Request is the request line; default the create of the object.
	Request string            `json:"request"`
	Header  map[string]string `json:"header"`
	User    *userSpec         `json:"user"`

	// Response is the body of the server's answer, ResponseFile a file that has it.
	Response     json.RawMessage `json:"response"`
	ResponseFile string          `json:"responseFile"`

	Servers []serverSpec `json:"servers"` // instead of the file's

	Expect *expectSpec `json:"expect"`
}

// countDocuments returns how many documents of data say anything.
func countDocuments(data []byte) int {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 0; ; {
		document, err := reader.Read()
		if err != nil {
			return n
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err != nil || content != nil {
			n++
		}
	}
}

func loadYAML(name string, data []byte) ([]*Case, error) {
	if n := countDocuments(data); n > 1 {
		return nil, fmt.Errorf("it has %d documents, and only one would be run: put the cases into one list, or into files of their own", n)
	}
	var spec testSpec
	if err := yaml.UnmarshalStrict(data, &spec); err != nil {
		return nil, err
	}
	switch {
	case spec.APIVersion != apiVersion || spec.Kind != kind:
		return nil, fmt.Errorf("it must be of apiVersion: %s and kind: %s", apiVersion, kind)
	case len(spec.Cases) == 0:
		return nil, errors.New("it has no cases")
	}
	l := yamlLoader{file: name, dir: filepath.Dir(name), spec: &spec}
	return l.load()
}

// yamlLoader makes the cases of one file.
type yamlLoader struct {
	file, dir string
	spec      *testSpec
	reads     []string // files and folders that all cases read
}

func (l *yamlLoader) load() ([]*Case, error) {
	policies := policySource{library: l.spec.Library}
	for _, name := range l.spec.Policies {
		policies.dirs = append(policies.dirs, l.path(name))
	}
	if len(policies.dirs) == 0 && len(policies.library) == 0 {
		policies.dirs = []string{l.dir}
	}
	var resources []dryrun.Manifest
	var errs []error
	l.reads = slices.Clone(policies.dirs)
	for _, name := range l.spec.Resources {
		l.reads = append(l.reads, l.path(name))
		manifests, err := dryrun.ReadPath(l.path(name))
		resources, errs = append(resources, manifests...), append(errs, err)
	}
	set := l.spec.Metadata.Name
	if set == "" {
		set = nameOf(l.file)
	}
	seen := map[string]bool{}
	var cases []*Case
	for i := range l.spec.Cases {
		spec := &l.spec.Cases[i]
		c := &Case{File: l.file, Name: set + "/" + spec.Name, policies: policies, resources: resources, servers: l.spec.Servers, reads: l.reads}
		err := l.fill(c, spec)
		if err == nil && seen[spec.Name] {
			err = errors.New("another case has the same name")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cases[%d] %q: %w", i, spec.Name, err))
		}
		seen[spec.Name] = true
		cases = append(cases, c)
	}
	return cases, errors.Join(errs...)
}

// path is a file that the case names.
func (l *yamlLoader) path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

// fill takes what spec says into c.
func (l *yamlLoader) fill(c *Case, spec *caseSpec) error {
	if spec.Name == "" {
		return errors.New("it has no name")
	}
	if spec.Servers != nil {
		c.servers = spec.Servers
	}
	c.template = dryrun.Template{Header: http.Header{}, User: spec.User.user()}
	for name, value := range spec.Header {
		c.template.Header.Set(name, value)
	}
	if spec.Request != "" {
		if err := c.template.ParseLine(spec.Request); err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	body, err := l.content("object", spec.Object, "manifest", spec.Manifest)
	if err != nil {
		return err
	}
	if c.bodies, err = dryrun.ReadDocuments(bytes.NewReader(body), "the object"); err != nil {
		return err
	}
	if len(c.bodies) > 1 {
		return fmt.Errorf("manifest: it has %d documents; a case is about one", len(c.bodies))
	}
	if c.response, err = l.content("response", spec.Response, "responseFile", spec.ResponseFile); err != nil {
		return err
	}
	for _, name := range []string{spec.Manifest, spec.ResponseFile} {
		if name != "" {
			c.reads = append(slices.Clip(c.reads), l.path(name))
		}
	}
	c.wants, err = l.wants(spec.Expect)
	return err
}

// content is what stands in the case or in a file that it names; nil for neither.
func (l *yamlLoader) content(field string, given json.RawMessage, fileField, file string) ([]byte, error) {
	switch {
	case given != nil && file != "":
		return nil, fmt.Errorf("%s and %s cannot both be given", field, fileField)
	case given != nil:
		return given, nil
	case file == "":
		return nil, nil
	}
	data, err := os.ReadFile(l.path(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fileField, err)
	}
	return data, nil
}

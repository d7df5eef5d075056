package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
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

func loadYAML(name string, data []byte) ([]*Case, source.Errors) {
	var spec testSpec
	decoded, errs := policies.Decode(policies.File{Name: name, Data: data}, "the file", &spec)
	if len(errs) > 0 {
		return nil, errs
	}
	l := yamlLoader{file: name, dir: filepath.Dir(name), spec: &spec, decoded: decoded}
	switch {
	case spec.APIVersion != apiVersion:
		l.fail("apiVersion", "apiVersion is %q: it must be %s", spec.APIVersion, apiVersion)
	case spec.Kind != kind:
		l.fail("kind", "kind is %q: it must be %s", spec.Kind, kind)
	case len(spec.Cases) == 0:
		l.fail("cases", "the file has no cases")
	default:
		cases := l.load()
		return cases, l.errs
	}
	return nil, l.errs
}

// yamlLoader makes the cases of one file.
type yamlLoader struct {
	file, dir string
	spec      *testSpec
	decoded   *policies.Decoded
	reads     []string // files and folders that all cases read
	errs      source.Errors
}

// fail notes a mistake at the part of the file that path names.
func (l *yamlLoader) fail(path, format string, args ...any) {
	l.errs = append(l.errs, l.decoded.Error(path, format, args...))
}

func (l *yamlLoader) load() []*Case {
	from := policySource{library: l.spec.Library}
	for _, name := range l.spec.Policies {
		from.dirs = append(from.dirs, l.path(name))
	}
	if len(from.dirs) == 0 && len(from.library) == 0 {
		from.dirs = []string{l.dir}
	}
	var resources []dryrun.Manifest
	l.reads = slices.Clone(from.dirs)
	for i, name := range l.spec.Resources {
		l.reads = append(l.reads, l.path(name))
		manifests, err := dryrun.ReadPath(l.path(name))
		if err != nil {
			l.fail(fmt.Sprintf("resources[%d]", i), "resources: %v", err)
		}
		resources = append(resources, manifests...)
	}
	servers := serversOf("servers", l.spec.Servers, l.fail)
	set := l.spec.Metadata.Name
	if set == "" {
		set = nameOf(l.file)
	}
	seen := map[string]bool{}
	cases := make([]*Case, len(l.spec.Cases))
	for i := range l.spec.Cases {
		spec, at := &l.spec.Cases[i], fmt.Sprintf("cases[%d]", i)
		cases[i] = &Case{File: l.file, Name: set + "/" + spec.Name, policies: from, resources: resources, servers: servers, reads: l.reads}
		l.fill(cases[i], spec, at)
		switch {
		case spec.Name == "":
			l.fail(at, "the case has no name")
		case seen[spec.Name]:
			l.fail(at+".name", "another case is called %q, too: name them apart", spec.Name)
		}
		seen[spec.Name] = true
	}
	return cases
}

// path is a file that the case names.
func (l *yamlLoader) path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

// fill takes what spec, which stands at the path at, says into c.
func (l *yamlLoader) fill(c *Case, spec *caseSpec, at string) {
	if spec.Servers != nil {
		c.servers = serversOf(at+".servers", spec.Servers, l.fail)
	}
	c.template = dryrun.Template{Header: http.Header{}, User: spec.User.user()}
	for name, value := range spec.Header {
		c.template.Header.Set(name, value)
	}
	if spec.Request != "" {
		if err := c.template.ParseLine(spec.Request); err != nil {
			l.fail(at+".request", "request: %v", err)
		}
	}
	l.body(c, spec, at)
	c.response = l.content(at, contentSpec{"response", spec.Response, "responseFile", spec.ResponseFile})
	for _, name := range []string{spec.Manifest, spec.ResponseFile} {
		if name != "" {
			c.reads = append(slices.Clip(c.reads), l.path(name))
		}
	}
	c.wants = l.wants(spec, at)
}

// body takes the body of the request into c.
func (l *yamlLoader) body(c *Case, spec *caseSpec, at string) {
	before := len(l.errs)
	content := contentSpec{"object", spec.Object, "manifest", spec.Manifest}
	body := l.content(at, content)
	var err error
	if c.bodies, err = dryrun.ReadDocuments(bytes.NewReader(body), "the object"); err != nil {
		l.fail(at+"."+content.givenAs(), "%v", err)
	}
	switch {
	case len(l.errs) > before:
	case len(c.bodies) > 1:
		l.fail(at+".manifest", "manifest: %s has %d documents; a case is about one", spec.Manifest, len(c.bodies))
	case len(c.bodies) == 0 && spec.Request == "":
		l.fail(at, "the case has no request: give it an object, a manifest or a request")
	}
}

// contentSpec is a body that stands in a case, or in a file that the case names.
type contentSpec struct {
	field     string
	given     json.RawMessage
	fileField string
	file      string
}

func (s *contentSpec) isGiven() bool { return s.given != nil || s.file != "" }

// givenAs is the field that says what the body is.
func (s *contentSpec) givenAs() string {
	if s.file != "" {
		return s.fileField
	}
	return s.field
}

// content is the body; nil for none.
func (l *yamlLoader) content(at string, s contentSpec) []byte {
	switch {
	case s.given != nil && s.file != "":
		l.fail(at+"."+s.fileField, "%s and %s cannot both be given", s.field, s.fileField)
		return nil
	case s.given != nil:
		return s.given
	case s.file == "":
		return nil
	}
	data, err := os.ReadFile(l.path(s.file))
	if err != nil {
		l.fail(at+"."+s.fileField, "%s: %v", s.fileField, err)
	}
	return data
}

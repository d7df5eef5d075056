package policytest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// The files of an archive. All in policiesDir are policies.
const (
	policiesDir  = "policies/"
	fileLibrary  = "library"        // shipped policies, a name in each line
	fileCRDs     = "resources.yaml" // CustomResourceDefinitions
	fileServers  = "servers.yaml"   // a list of servers
	fileUser     = "user.yaml"      // who sends the request
	fileRequest  = "request"        // the request line, then header lines
	fileInput    = "input"          // also .yaml and .json: the manifests, or the body of the request
	fileResponse = "response"       // also .yaml and .json: the server's answer

	wantSummary = "want"             // a line for each request, and notes
	wantSent    = "want.yaml"        // what the server is sent
	wantAnswer  = "want.answer.yaml" // what the client is answered
)

// loadArchive makes the one case of a *_test.txtar file.
func loadArchive(name string, data []byte) ([]*Case, error) {
	a := &archive{name: name, txtar: txtar.Parse(data), c: &Case{File: name, Name: nameOf(name)}}
	a.c.template.Header = http.Header{}
	var errs []error
	for i := range a.txtar.Files {
		file := &a.txtar.Files[i]
		if err := a.file(file.Name, file.Data); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.Name, err))
		}
	}
	source := &a.c.policies
	if len(source.files) == 0 && len(source.library) == 0 {
		source.dirs = []string{filepath.Dir(name)}
		a.c.reads = source.dirs
	}
	if len(a.c.wants) == 0 {
		errs = append(errs, fmt.Errorf("it expects nothing: add -- %s --, -- %s -- or -- %s --, and fill it in with --update", wantSummary, wantSent, wantAnswer))
	}
	return []*Case{a.c}, errors.Join(errs...)
}

// archive is a *_test.txtar file.
type archive struct {
	name  string
	txtar *txtar.Archive
	c     *Case
}

// file takes one file of the archive.
func (a *archive) file(name string, data []byte) error {
	if policy, ok := strings.CutPrefix(name, policiesDir); ok {
		a.c.policies.files = append(a.c.policies.files, policies.File{Name: policy, Data: data})
		return nil
	}
	var err error
	switch name {
	case fileLibrary:
		a.c.policies.library = strings.Fields(string(data))
	case fileCRDs:
		a.c.resources, err = dryrun.Read(bytes.NewReader(data), name)
	case fileServers:
		err = yaml.UnmarshalStrict(data, &a.c.servers)
	case fileUser:
		var user userSpec
		err = yaml.UnmarshalStrict(data, &user)
		a.c.template.User = user.user()
	case fileRequest:
		err = a.request(string(data))
	case fileInput, fileInput + ".yaml", fileInput + ".json":
		a.c.bodies, err = dryrun.ReadDocuments(bytes.NewReader(data), name)
	case fileResponse, fileResponse + ".yaml", fileResponse + ".json":
		a.c.response = data
	case wantSummary:
		a.c.wants = append(a.c.wants, &goldenPart{a, name, summary})
	case wantSent:
		a.c.wants = append(a.c.wants, &goldenPart{a, name, sentBody.yaml})
	case wantAnswer:
		a.c.wants = append(a.c.wants, &goldenPart{a, name, answerBody.yaml})
	default:
		err = fmt.Errorf("no such part of a case; there are %s", strings.Join([]string{
			policiesDir + "…", fileLibrary, fileCRDs, fileServers, fileUser, fileRequest, fileInput, fileResponse, wantSummary, wantSent, wantAnswer,
		}, ", "))
	}
	return err
}

// request reads the request line and the header lines after it.
func (a *archive) request(text string) error {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if err := a.c.template.ParseLine(line); err != nil {
		return err
	}
	for header := range strings.Lines(rest) {
		name, value, ok := strings.Cut(strings.TrimSpace(header), ":")
		if !ok {
			return fmt.Errorf("%q is no header line, such as \"User-Agent: kubectl/v1.30\"", strings.TrimSpace(header))
		}
		a.c.template.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return nil
}

// summary is what became of each request, in words.
func summary(results []*dryrun.Result) (string, error) {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%s: %s\n", &r.Request, r.Verdict())
		if r.Err != nil {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(r.Err.Error(), "\n", "\n  "))
		}
		for _, note := range r.Notes() {
			fmt.Fprintf(&b, "  %s\n", note)
		}
	}
	return b.String(), nil
}

// goldenPart is a part of the archive with what is expected.
type goldenPart struct {
	archive *archive
	name    string
	text    func(results []*dryrun.Result) (string, error)
}

// at is where in the archive g is.
func (g *goldenPart) at() int {
	return slices.IndexFunc(g.archive.txtar.Files, func(f txtar.File) bool { return f.Name == g.name })
}

func (g *goldenPart) check(results []*dryrun.Result) (string, error) {
	got, err := g.text(results)
	want := string(g.archive.txtar.Files[g.at()].Data)
	if err != nil || got == want {
		return "", err
	}
	return g.name + " differs:\n" + strings.TrimSuffix(udiff.Unified("want", "got", want, got), "\n"), nil
}

func (g *goldenPart) update(results []*dryrun.Result) (bool, error) {
	got, err := g.text(results)
	file := &g.archive.txtar.Files[g.at()]
	if err != nil || got == string(file.Data) {
		return false, err
	}
	file.Data = []byte(got)
	if err := os.WriteFile(g.archive.name, txtar.Format(g.archive.txtar), 0o666); err != nil {
		return false, fmt.Errorf("cannot write the case: %w", err)
	}
	return true, nil
}

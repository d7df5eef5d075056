package policytest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine/source"
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

// archiveParts are the names of the parts of an archive.
var archiveParts = []string{
	policiesDir + "…", fileLibrary, fileCRDs, fileServers, fileUser, fileRequest, fileInput, fileResponse, wantSummary, wantSent, wantAnswer,
}

// loadArchive makes the one case of a *_test.txtar file.
func loadArchive(name string, data []byte) ([]*Case, source.Errors) {
	a := &archive{
		name: name, txtar: txtar.Parse(data), c: &Case{File: name, Name: nameOf(name)},
		text: source.Text{Code: string(data), Start: source.Pos{File: name, Line: 1, Col: 1}},
	}
	a.c.template.Header = http.Header{}
	starts := a.starts()
	given := map[string]string{} // the name of each part, by what it is
	for i := range a.txtar.Files {
		file := &a.txtar.Files[i]
		is := whatItIs(file.Name)
		if first, twice := given[is]; twice {
			a.failAt(starts[i], "the case has %s already, as -- %s --: only one of them would count", is, first)
			continue
		}
		given[is] = file.Name
		a.part(starts[i], file)
	}
	from := &a.c.policies
	if len(from.files) == 0 && len(from.library) == 0 {
		from.dirs = []string{filepath.Dir(name)}
		a.c.reads = from.dirs
	}
	switch at := a.index(wantAnswer); {
	case len(a.errs) > 0:
	case len(a.c.wants) == 0:
		a.failAt(0, "the case expects nothing: add -- %s --, -- %s -- or -- %s --, and fill it in with --update", wantSummary, wantSent, wantAnswer)
	case at >= 0 && a.c.response == nil:
		a.failAt(starts[at], "%s: %s", wantAnswer, noResponse)
	}
	return []*Case{a.c}, a.errs
}

// archive is a *_test.txtar file.
type archive struct {
	name  string
	text  source.Text // all of it
	txtar *txtar.Archive
	c     *Case

	errs source.Errors
}

// failAt notes a mistake at an offset in the archive.
func (a *archive) failAt(offset int, format string, args ...any) {
	a.errs = append(a.errs, a.text.Error(offset, format, args...))
}

// whatItIs is the part that a file of an archive is: manifests and answers have several
// names.
func whatItIs(name string) string {
	for _, part := range []string{fileInput, fileResponse} {
		if name == part+".yaml" || name == part+".json" {
			return part
		}
	}
	return name
}

// part takes one file of the archive, whose name stands at start.
func (a *archive) part(start int, file *txtar.File) {
	if policy, ok := strings.CutPrefix(file.Name, policiesDir); ok {
		a.c.policies.files = append(a.c.policies.files, policies.File{Name: policy, Data: file.Data})
		return
	}
	var err error
	switch file.Name {
	case fileLibrary:
		a.c.policies.library = strings.Fields(string(file.Data))
	case fileCRDs:
		a.c.resources, err = dryrun.Read(bytes.NewReader(file.Data), file.Name)
	case fileServers:
		var servers []serverSpec
		if decoded := a.decode(start, file, &servers); decoded != nil {
			a.c.servers = serversOf("", servers, func(path, format string, args ...any) {
				a.errs = append(a.errs, decoded.Error(path, format, args...))
			})
		}
	case fileUser:
		var user userSpec
		a.decode(start, file, &user)
		a.c.template.User = user.user()
	case fileRequest:
		a.request(a.content(start), string(file.Data))
	case fileInput, fileInput + ".yaml", fileInput + ".json":
		a.c.bodies, err = dryrun.ReadDocuments(bytes.NewReader(file.Data), file.Name)
	case fileResponse, fileResponse + ".yaml", fileResponse + ".json":
		a.c.response = file.Data
	case wantSummary:
		a.c.wants = append(a.c.wants, &goldenPart{a, file.Name, summary})
	case wantSent:
		a.c.wants = append(a.c.wants, &goldenPart{a, file.Name, sentBody.yaml})
	case wantAnswer:
		a.c.wants = append(a.c.wants, &goldenPart{a, file.Name, answerBody.yaml})
	default:
		known := append(slices.Clone(archiveParts), policiesDir+path.Base(file.Name))
		if source.Closest(file.Name, known) == "" {
			known = archiveParts
		}
		a.failAt(start, "a case has no part %s%s", source.Quote(file.Name), source.Suggest(file.Name, known))
	}
	if err == nil {
		return
	}
	if mistakes := policies.SyntaxMistakes(a.within(start, file)); len(mistakes) > 0 {
		a.errs = append(a.errs, mistakes...)
		return
	}
	a.failAt(start, "%v", err)
}

// starts are the offsets of the names of the parts in the archive.
func (a *archive) starts() []int {
	var starts []int
	offset := 0
	for line := range strings.Lines(a.text.Code) {
		if len(txtar.Parse([]byte(line)).Files) > 0 {
			starts = append(starts, offset+len("-- "))
		}
		offset += len(line)
	}
	return starts
}

// content is the offset of what stands below the name of a part at start.
func (a *archive) content(start int) int {
	if i := strings.IndexByte(a.text.Code[start:], '\n'); i >= 0 {
		return start + i + 1
	}
	return len(a.text.Code)
}

// within is a part of the archive as a file whose lines stand where they do in the archive.
func (a *archive) within(start int, part *txtar.File) policies.File {
	above := strings.Count(a.text.Code[:a.content(start)], "\n")
	return policies.File{Name: a.name, Data: append(bytes.Repeat([]byte("\n"), above), part.Data...)}
}

// decode reads a part into a value; nil when it cannot be read.
func (a *archive) decode(start int, part *txtar.File, into any) *policies.Decoded {
	decoded, errs := policies.Decode(a.within(start, part), part.Name, into)
	a.errs = append(a.errs, errs...)
	if len(errs) > 0 {
		return nil
	}
	return decoded
}

// request reads the request line and the header lines after it, which stand from offset on.
func (a *archive) request(offset int, lines string) {
	line := -1
	for text := range strings.Lines(lines) {
		at := offset
		offset += len(text)
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if line++; line == 0 {
			if err := a.c.template.ParseLine(text); err != nil {
				a.failAt(at, "%v", err)
			}
			continue
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			a.failAt(at, "%q is no header line, such as \"User-Agent: kubectl/v1.30\"", text)
			continue
		}
		a.c.template.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if line < 0 {
		a.failAt(offset, "the request is empty: %v", a.c.template.ParseLine(""))
	}
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

// index is which of its parts is called name; -1 for none.
func (a *archive) index(name string) int {
	return slices.IndexFunc(a.txtar.Files, func(f txtar.File) bool { return f.Name == name })
}

// at is where in the archive g is.
func (g *goldenPart) at() int { return g.archive.index(g.name) }

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

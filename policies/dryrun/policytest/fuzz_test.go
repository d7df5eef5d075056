package policytest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// examplesDir has cases in both forms, or such as can be written in both.
const examplesDir = "../../../examples"

// seedFiles adds the case files of the examples with the suffix.
func seedFiles(f *testing.F, suffix string) {
	files, err := Files(examplesDir)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// checkLoaded holds what Load promises of the cases of a file that it takes: each has a
// name, a request that can be made, and something that is expected.
func checkLoaded(t *testing.T, data []byte, cases []*Case, errs source.Errors) {
	t.Helper()
	for _, err := range errs {
		if lines := bytes.Count(data, []byte("\n")) + 1; err.Pos.Line < 1 || err.Pos.Line > lines {
			t.Fatalf("a mistake in line %d of %d: %v", err.Pos.Line, lines, err)
		}
	}
	if len(errs) > 0 {
		return
	}
	if len(cases) == 0 {
		t.Fatalf("no case in %q", data)
	}
	for _, c := range cases {
		if c.Name == "" || len(c.wants) == 0 {
			t.Fatalf("the case %q expects %d things: %q", c.Name, len(c.wants), data)
		}
		if c.template.Target != "" {
			c.template.Request(nil)
		}
		if objects, err := c.Objects(); err == nil {
			for i := range objects {
				if objects[i].APIVersion == "" || objects[i].Kind == "" {
					t.Fatalf("an object without a kind: %q", data)
				}
			}
		}
	}
}

func FuzzLoadYAML(f *testing.F) {
	seedFiles(f, yamlSuffix)
	for _, seed := range []string{
		"apiVersion: mvp.k8s.io/v1\nkind: PolicyTest\ncases:\n- {name: a, object: {apiVersion: v1, kind: Pod}, expect: {result: passed}}\n",
		"apiVersion: mvp.k8s.io/v1\nkind: PolicyTest\nservers: [{name: a, version: v1.31, serves: [v1]}]\ncases:\n- {name: a, request: GET /api/v1/pods, header: {A: b}, user: {name: u}, response: {}, expect: {audited: []}}\n",
		"apiVersion: mvp.k8s.io/v1\nkind: PolicyTest\ncases: [{name: a, request: PATCH /api/v1/pods, object: [1], expect: {code: 403}}]\n",
		"a: &a [*a]", "{", "",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir() // so that no file that data names is there
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, errs := loadYAML(filepath.Join(dir, "x"+yamlSuffix), data)
		checkLoaded(t, data, cases, errs)
	})
}

func FuzzLoadArchive(f *testing.F) {
	seedFiles(f, txtarSuffix)
	for _, seed := range []string{
		"-- policies/10.warn.cel --\n'w'\n-- input.yaml --\napiVersion: v1\nkind: Pod\n-- want --\n",
		"-- library --\nkubernetes-1.25\n-- request --\nGET /api/v1/pods\nUser-Agent: x\n-- response --\n{}\n-- want.answer.yaml --\n",
		"-- servers.yaml --\n- {name: a}\n-- user.yaml --\nname: u\n-- resources.yaml --\nkind: x\n-- want.yaml --\n",
		"-- want --\n-- want --\n", "-- x --\n", "",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(dir, "x"+txtarSuffix)
		cases, errs := loadArchive(name, data)
		checkLoaded(t, data, cases, errs)
		if len(errs) > 0 {
			return
		}
		// What --update would write is read as the same case.
		again, errs := loadArchive(name, txtar.Format(txtar.Parse(data)))
		if len(errs) > 0 || len(again[0].bodies) != len(cases[0].bodies) {
			t.Fatalf("%q is read as %d bodies, and written anew as %d, %v", data, len(cases[0].bodies), len(again[0].bodies), errs)
		}
	})
}

// What a case's server is checked, too: the parts that Load leaves to the run.
func FuzzServers(f *testing.F) {
	for _, seed := range [][3]string{{"v1.31.4", "v1.30", "policy/v1"}, {"v1", "v1.30.0", "v1 pods"}, {"", "", "a/b/c"}, {"1.2.3.4", ".0", " "}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, version, emulation, serves string) {
		spec := serverSpec{Name: "a", Version: version, Emulation: emulation, Serves: []string{serves}}
		failed := false
		server := spec.server(func(string, string, ...any) { failed = true })
		if !failed && server.Serves("", "", "") {
			t.Fatalf("%q serves what has no version", serves)
		}
		_ = dryrun.Run(&engine.Set{}, dryrun.Request{Method: "GET", Target: "/api/v1/pods"}, dryrun.Options{Servers: []dryrun.Server{server}})
	})
}

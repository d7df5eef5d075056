package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/policytest"
)

// examplesDir holds the sets of policies to take over; each has cases.
const examplesDir = "../../examples"

// TestExamples runs the cases of all examples, as `mvp test-policy examples` does.
func TestExamples(t *testing.T) {
	files, err := policytest.Files(examplesDir)
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string]bool{}
	for _, file := range files {
		dir, name := filepath.Split(file)
		sets[filepath.Base(dir)] = true
		cases, err := policytest.Load(file)
		if err != nil {
			t.Error(err)
		}
		for _, c := range cases {
			t.Run(filepath.Base(dir)+"/"+name+"/"+c.Name, func(t *testing.T) {
				if o := c.Run(policytest.Options{Schemas: offlineSchemas}); !o.Passed() {
					t.Error(problemText(&o))
				}
			})
		}
	}
	for _, set := range []string{"article", "renamed-field", "list-element", "type-change", "deny-freeze", "user-agent", "canary", "audit"} {
		if !sets[set] {
			t.Errorf("examples/%s has no cases", set)
		}
	}
	testExamplesList(t, sets)
}

// testExamplesList looks for each set in the list of examples, and for the command that
// runs its cases in its own description.
func testExamplesList(t *testing.T, sets map[string]bool) {
	list := readText(t, filepath.Join(examplesDir, "README.md"))
	for set := range sets {
		if !strings.Contains(list, "| ["+set+"]("+set+") |") {
			t.Errorf("examples/README.md does not list %s", set)
		}
		if own := readText(t, filepath.Join(examplesDir, set, "README.md")); !strings.Contains(own, "\nmvp test-policy -v examples/"+set+"\n") {
			t.Errorf("examples/%s/README.md does not say how its cases run", set)
		}
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/itchyny/gojq"
)

const articleFiles = "../article-files"

// The files in article-files convert the manifests as the rules in mvp-rules.yaml
// do, and back.
func TestArticlePrograms(t *testing.T) {
	f := func(program, input, want string) {
		t.Helper()
		var object any
		if err := json.Unmarshal([]byte(input), &object); err != nil {
			t.Fatal(err)
		}
		equal(t, program+" of "+input, runJQ(t, program, object), json.RawMessage(want))
	}

	const request, response = "10-customresources.request.jq", "10-customresources.response.jq"
	f(request, `{"spec":{"config":{"legacyTimeout":"30"},"stateManagement":"ephemeral"}}`, `{"spec":{"config":{"requestTimeoutSeconds":30},"stateManagement":"stateless"}}`)
	f(response, `{"spec":{"config":{"requestTimeoutSeconds":30},"stateManagement":"stateless"}}`, `{"spec":{"config":{"legacyTimeout":"30"},"stateManagement":"ephemeral"}}`)
	for _, program := range []string{request, response} {
		f(program, `{"spec":{"stateManagement":"stateful"}}`, `{"spec":{"stateManagement":"stateful"}}`)
		f(program, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`)
	}

	const budget = "20-pdb.request.jq"
	f(budget, `{"spec":{}}`, `{"spec":{"minAvailable":1}}`)
	f(budget, `{"spec":{"minAvailable":2}}`, `{"spec":{"minAvailable":2}}`)
	f(budget, `{"spec":{"maxUnavailable":2}}`, `{"spec":{"maxUnavailable":2}}`)
}

func runJQ(t *testing.T, file string, input any) any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(articleFiles, file))
	if err != nil {
		t.Fatal(err)
	}
	query, err := gojq.Parse(string(data))
	if err != nil {
		t.Fatal(err)
	}
	results := query.Run(input)
	value, _ := results.Next()
	if err, ok := value.(error); ok {
		t.Fatal(err)
	}
	if more, ok := results.Next(); ok {
		t.Fatalf("%s gives a second result: %v", file, more)
	}
	return value
}

// The conversions are constant maps, as discovery needs them.
func TestArticleConversions(t *testing.T) {
	env, err := cel.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(articleFiles, "*.convert.cel"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%d conversions, want 2: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Compile(string(data))
		if issues.Err() != nil {
			t.Fatalf("%s: %v", file, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := program.Eval(map[string]any{}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestManifests(t *testing.T) {
	rules := string(manifest(t, "mvp-rules.yaml"))
	for _, want := range []string{
		"kind: TransformationRules", `targetPath: "spec.config.requestTimeoutSeconds"`, `preferApiServerVersion: "v1.32.y"`,
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("mvp-rules.yaml is without %s", want)
		}
	}
	c := start(t, Options{})
	if err := c.Apply(manifest(t, "deployment.yaml")); err != nil {
		t.Error(err)
	}
	// The old budget is of a version that no server here serves, but that is known.
	if err := c.Apply(manifest(t, "pdb-v1beta1.yaml")); err != nil {
		t.Error(err)
	}
	if err := c.Apply(manifest(t, "customresource-v1alpha1.yaml")); err == nil || !strings.Contains(err.Error(), "there is no kind") {
		t.Errorf("a version that its definition does not serve: %v", err)
	}
}

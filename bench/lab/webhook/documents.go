package webhook

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed manifests
var manifests embed.FS

// Resource is the plural of the kind Gadget, whose definition is named
// "gadgets.<group>".
const Resource = "gadgets"

// CRD is the CustomResourceDefinition, in JSON, of Gadgets in a group of which both
// versions are served, and converted by s.
func (s *Server) CRD(group string) ([]byte, error) {
	return definition(group, func(spec map[string]any) {
		spec["conversion"] = map[string]any{
			"strategy": "Webhook",
			"webhook": map[string]any{
				"conversionReviewVersions": []string{"v1"},
				"clientConfig":             map[string]any{"url": s.url, "caBundle": s.ca},
			},
		}
	})
}

// TargetOnlyCRD is the CustomResourceDefinition, in JSON, of Gadgets in a group of which
// only New is served; it keeps the schema of Old. Nothing is converted.
func TargetOnlyCRD(group string) ([]byte, error) {
	return definition(group, func(spec map[string]any) {
		spec["conversion"] = map[string]any{"strategy": "None"}
		for _, version := range spec["versions"].([]any) {
			version := version.(map[string]any)
			version["served"] = version["name"] == New
		}
	})
}

func definition(group string, edit func(spec map[string]any)) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal([]byte(manifest("crd.yaml", group)), &crd); err != nil {
		return nil, fmt.Errorf("cannot read the definition of Gadgets: %w", err)
	}
	edit(crd["spec"].(map[string]any))
	return json.Marshal(crd)
}

// Rules are the policy files, by their names, that have MVP convert the Gadgets of a
// group as the webhook does, by declarative rules.
func Rules(group string) map[string]string {
	return map[string]string{"gadgets.yaml": manifest("rules.yaml", group)}
}

// Programs are policy files that mean the same as Rules, by jq programs.
func Programs(group string) map[string]string {
	files := map[string]string{}
	for _, name := range []string{"gadgets.convert.cel", "gadgets.request.jq", "gadgets.response.jq"} {
		files[name] = manifest(name, group)
	}
	return files
}

func manifest(name, group string) string {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		panic(err) // the files are part of this program
	}
	return strings.ReplaceAll(string(content), "GROUP", group)
}

package policies

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// placeByField makes the places of doc those of its fields, "NAME: spec.list[1].field":
// an object of a cluster has no lines.
func (f *yamlFile) placeByField(doc *yaml.Node) {
	f.fields = map[*yaml.Node]string{}
	f.placeFields(doc, "")
}

// placeFields names node and all that is in it. It goes as deep as the JSON that was
// read, which encoding/json bounds.
func (f *yamlFile) placeFields(node *yaml.Node, path string) {
	f.fields[node] = path
	switch node.Kind {
	case yaml.SequenceNode:
		for i, item := range node.Content {
			f.placeFields(item, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			field := key.Value
			if path != "" {
				field = path + "." + key.Value
			}
			f.fields[key] = field
			f.placeFields(value, field)
		}
	}
}

// fieldPos is the place of node by its field.
func (f *yamlFile) fieldPos(node *yaml.Node) source.Pos {
	if field := f.fields[node]; field != "" {
		return source.Pos{File: f.name + fieldMark + field}
	}
	return source.Pos{File: f.name}
}

// fieldMark stands between the name of an object and the field in it.
const fieldMark = ": "

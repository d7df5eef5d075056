package dryrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"
)

// yamlText writes a JSON document as YAML: numbers with the digits that they have, which
// may be more than a float64 holds, keys in order.
func yamlText(document []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("cannot write it as YAML: %w", err)
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(yamlNode(value)); err != nil {
		return "", fmt.Errorf("cannot write it as YAML: %w", err)
	}
	return text.String(), encoder.Close()
}

func yamlNode(value any) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode}
	switch value := value.(type) {
	case map[string]any:
		node.Kind = yaml.MappingNode
		for _, key := range slices.Sorted(maps.Keys(value)) {
			node.Content = append(node.Content, yamlNode(key), yamlNode(value[key]))
		}
	case []any:
		node.Kind = yaml.SequenceNode
		for _, item := range value {
			node.Content = append(node.Content, yamlNode(item))
		}
	case json.Number:
		// The tag is not written where the text says the same.
		node.Tag, node.Value = "!!float", value.String()
		if _, err := value.Int64(); err == nil {
			node.Tag = "!!int"
		}
	case string:
		node.SetString(value)
		node.Style = stringStyle(value)
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(value)
	case nil:
		node.Tag, node.Value = "!!null", "null"
	}
	return node
}

// stringStyle is how a text is to be written so that every reader of YAML takes it for
// one, also those of YAML 1.1, as kubectl is one: "on" is a bool for them.
func stringStyle(text string) yaml.Style {
	written, err := kubeyaml.Marshal(text)
	if err != nil || text == "<<" { // which merges a map where it is a key
		return yaml.DoubleQuotedStyle
	}
	switch written[0] {
	case '"':
		return yaml.DoubleQuotedStyle
	case '\'':
		return yaml.SingleQuotedStyle
	case '|':
		return yaml.LiteralStyle
	}
	return 0
}

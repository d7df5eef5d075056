package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// undeclared is kube-apiserver's answer to a server-side apply of fields that the
// client's version does not have, which it refuses whatever the field validation; nil
// where there are none. The server could tell only of those that its version does not
// have either.
func (x *exchange) undeclared(decoded any, doc []byte) error {
	object, _ := decoded.(map[string]any)
	if object == nil {
		return nil
	}
	unknown := x.st.fields[x.conv.From].unknown(object, doc)
	if len(unknown) == 0 {
		return nil
	}
	mistakes := make([]string, 0, len(unknown))
	for _, f := range unknown {
		mistakes = append(mistakes, "."+f.Path+": field not declared in schema")
	}
	text := mistakes[0]
	if len(mistakes) > 1 {
		text = "errors:\n  " + strings.Join(mistakes, "\n  ")
	}
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	_ = json.Unmarshal(doc, &named) // what cannot be read has no name
	gvk := schema.GroupVersionKind{Group: x.conv.From.Group, Version: x.conv.From.Version, Kind: x.kindOf(doc)}
	return &statusError{
		code: http.StatusInternalServerError, reason: metav1.StatusReasonUnknown,
		err:     &strictError{errors.New("a field is not declared in the schema of the client's version")},
		message: fmt.Sprintf("failed to create typed patch object (%s/%s; %v): %s", clip(named.Metadata.Namespace), clip(named.Metadata.Name), gvk, text),
	}
}

// withoutDirectives is a strategic merge patch without what is no field in it.
func withoutDirectives(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for key, member := range v {
			if !strings.HasPrefix(key, "$") {
				kept[key] = withoutDirectives(member)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = withoutDirectives(item)
		}
		return kept
	}
	return v
}

// written is a value that an operation of a JSON patch puts into the object.
type written struct {
	operation int
	tokens    []string // of its place
	value     any      // nil where it is not in the patch: it was somewhere else in the object
	copied    bool
}

// valuesOf are the values that the operations of a JSON patch leave in the object, as
// far as that can be told without it.
func valuesOf(operations []any) []written {
	var values []written
	gone := func(tokens []string) {
		values = slices.DeleteFunc(values, func(w written) bool {
			return len(w.tokens) >= len(tokens) && slices.Equal(w.tokens[:len(tokens)], tokens)
		})
	}
	for i, o := range operations {
		operation, _ := o.(map[string]any)
		tokens, ok := pointerTokens(operation["path"])
		if !ok {
			continue // the server refuses it
		}
		switch operation["op"] {
		case "add", "replace":
			gone(tokens)
			values = append(values, written{operation: i, tokens: tokens, value: operation["value"]})
		case "remove":
			gone(tokens)
		case "move":
			if from, ok := pointerTokens(operation["from"]); ok {
				gone(from)
			}
			fallthrough
		case "copy":
			gone(tokens)
			values = append(values, written{operation: i, tokens: tokens, copied: true})
		}
	}
	return values
}

// pointerTokens are the tokens of a JSON pointer.
func pointerTokens(v any) ([]string, bool) {
	text, ok := v.(string)
	if !ok || text != "" && text[0] != '/' {
		return nil, false
	}
	if text == "" {
		return nil, true
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, true
}

// wrongOperations is wrongFields of a JSON patch. Each value is looked at in an object
// that has nothing else; so an item's place in its list is as the patch gives it.
func (x *exchange) wrongOperations(decoded any) wrongFields {
	var wrong wrongFields
	operations, _ := decoded.([]any)
	fields := x.st.fields[x.conv.From]
	for _, w := range valuesOf(operations) {
		object, at, shown := fields.around(w)
		doc, err := json.Marshal(object)
		if err != nil || object == nil {
			continue
		}
		named := func(path string) string {
			if rest, below := strings.CutPrefix(path, at); below {
				return shown + rest
			}
			return path
		}
		for _, f := range x.unknownFields(object, doc, true) {
			wrong.told = append(wrong.told, named(f.Path))
			if !x.conv.Takes(f.Path) {
				continue
			}
			place := fmt.Sprintf("[%d]", w.operation)
			if rest, below := strings.CutPrefix(f.Path, at); below && rest != "" {
				place += ".value" + rest
			}
			wrong.drop = append(wrong.drop, place)
		}
		if w.copied {
			continue
		}
		lost := x.conv.Lost(doc)
		for i := range lost {
			lost[i].Path = named(lost[i].Path)
		}
		wrong.addLost(lost, false)
	}
	return wrong
}

// around returns an object that has nothing but the value w, the path of w in it, and
// that path as the patch gives it.
func (n fieldNames) around(w written) (object map[string]any, at, shown string) {
	lists := make([]bool, len(w.tokens))
	var types []string
	for i, token := range w.tokens {
		if lists[i] = n.isList(types); lists[i] {
			types = append(types, "*")
			at, shown = at+"[0]", shown+"["+token+"]"
			continue
		}
		types = append(types, token)
		if i > 0 {
			at, shown = at+".", shown+"."
		}
		at, shown = at+token, shown+token
	}
	value := w.value
	for i := len(w.tokens) - 1; i >= 0; i-- {
		if lists[i] {
			value = []any{value}
		} else {
			value = map[string]any{w.tokens[i]: value}
		}
	}
	object, _ = value.(map[string]any)
	return object, at, shown
}

// isList reports whether the field at path is known to be a list.
func (n fieldNames) isList(path []string) bool {
	s, ok := n.schema.(interface{ TypeAt(path []string) string })
	return ok && len(path) > 0 && s.TypeAt(path) == string(convert.TypeArray)
}

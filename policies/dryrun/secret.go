package dryrun

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// secrecy says whether a value is what a Secret holds.
type secrecy struct {
	in     bool // in a Secret
	hidden bool // and in that what must not be shown
}

// of is s in object.
func (s secrecy) of(object map[string]any) secrecy {
	switch object["kind"] {
	case "Secret", "SecretList":
		s.in = true
	}
	return s
}

// under is s in the member key of an object. kubectl keeps the whole object in an
// annotation. A JSON patch has its values in value.
func (s secrecy) under(key string) secrecy {
	switch key {
	case "data", "stringData", "kubectl.kubernetes.io/last-applied-configuration", "value":
		s.hidden = s.hidden || s.in
	}
	return s
}

// Redacted returns a body in JSON without what Secrets hold: their data, stringData
// and last-applied-configuration. resource is that of the request, for a patch that
// does not say what it is of.
func Redacted(body []byte, resource string) []byte {
	in := resource == "secrets"
	if !in && !bytes.Contains(body, []byte("Secret")) {
		return body
	}
	var document any
	if decode(body, &document) != nil {
		return body
	}
	redacted, err := json.Marshal(redact(document, secrecy{in: in}))
	if err != nil {
		return body
	}
	return redacted
}

func redact(value any, s secrecy) any {
	switch value := value.(type) {
	case map[string]any:
		s = s.of(value)
		for key, item := range value {
			value[key] = redact(item, s.under(key))
		}
		return value
	case []any:
		for i, item := range value {
			value[i] = redact(item, s)
		}
		return value
	}
	if s.hidden {
		return "(not shown)"
	}
	return value
}

func sortedKeys(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

func itoa(i int) string { return strconv.Itoa(i) }

// text is a value in JSON, one that is no leaf only if there is nothing in it.
func text(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(out.String(), "\n")
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// member is the path of a member, as a kube-apiserver writes it: keys that are no
// plain names stand in brackets.
func member(path, key string) string {
	switch {
	case !plainName.MatchString(key):
		return path + "[" + key + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

var bracketed = regexp.MustCompile(`\[([^\]]*[^\]0-9][^\]]*)\]`)

// shownPath is path as policies write it: keys in brackets in quotes.
func shownPath(path string) string { return bracketed.ReplaceAllString(path, `["$1"]`) }

// Package convert turns the bodies of one Kubernetes kind between two of its API
// versions: single objects, lists, watch streams, and every form of patch.
//
// A [Spec] says how: declarative rules, and optionally a jq program for each
// direction. [Compile] makes it a [Converter], which never changes and may be
// used by any number of goroutines.
//
// Declarative rules never decode a body. They edit a document that is spans of
// the bytes received, and only the objects on a rule's path are looked into, so
// that what no rule names comes out as the bytes that went in: numbers keep their
// digits, strings their escapes, objects their order. A jq program of a plain shape
// is such edits, too. Any other sees, decoded, the part of the object that it needs.
//
// The package does no I/O beyond the readers and writers it is handed, starts no
// goroutine, and knows nothing of HTTP, media types (beyond JSON, and YAML in
// [Converter.Apply]) or which requests are to be converted.
package convert

import (
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Version names one version of a kind.
type Version struct {
	Group, Version, Resource string

	// Kind is the kind's name, or "" when it is not known. A converter that does
	// not know the kind converts every object of the version but lists, options
	// and the kinds of subresources, and changes no kind.
	Kind string
}

// APIVersion returns the version as an object's apiVersion field spells it:
// "policy/v1beta1", and "v1" in the core group.
func (v Version) APIVersion() string {
	if v.Group == "" {
		return v.Version
	}
	return v.Group + "/" + v.Version
}

// Action is what a [Rule] does.
type Action string

// The actions. Towards the server rules run in their order, towards the client
// in reverse order, each in reverse.
const (
	// Rename takes the value at Path to TargetPath; in reverse it takes it back.
	// Where both have the same parent the field keeps its position. Otherwise objects
	// on the way to TargetPath are made, and those on the way to Path that are empty
	// afterwards go: on the way back it is the other way round. Lost is only that an
	// object with nothing in it stood on the way to TargetPath before.
	//
	// An object of a client's that has a value at both is refused with an [Error]
	// that is Invalid: one of the two would be lost. A server's that has both comes
	// with the two exchanged, so that the client's field is right and nothing is lost.
	Rename Action = "rename"

	// Move is Rename under the name that fits when the parent changes too.
	Move Action = "move"

	// Modify replaces MatchValue (any value without one) by ReplaceValue; in
	// reverse ReplaceValue by MatchValue, and nothing without a MatchValue. With a
	// Type and no ReplaceValue it only changes the type.
	Modify Action = "modify"

	// EnsureFieldExistence writes DefaultValue where there is none. It has no
	// reverse and never applies to a patch.
	EnsureFieldExistence Action = "ensureFieldExistence"

	// Remove drops the field towards the server. It has no reverse.
	Remove Action = "remove"
)

// Rule is one declarative change. Paths are dotted: spec.containers[*].image; a
// key that is no plain name stands in brackets: metadata.annotations["a.b/c"].
type Rule struct {
	Pos source.Pos // of the rule in its file

	// FieldPos has the places of the values of the rule's fields, by the field's
	// name in a document: "action", "targetPath", "unless[0]". A mistake in a field
	// that has none is shown at Pos.
	FieldPos map[string]source.Pos

	Action Action

	Path, TargetPath string

	// Type is the value's type in the target version: "string", "integer",
	// "number", "boolean", "int-or-string", or "" to leave it. A client's value that
	// cannot be converted is an [Error] that is Invalid.
	Type string

	// MatchValue, ReplaceValue and DefaultValue are JSON values: nil, bool, string,
	// json.Number (or a Go number), []any, map[string]any. The Has fields tell a
	// given null from none.
	MatchValue, ReplaceValue, DefaultValue any
	HasMatch, HasReplace, HasDefault       bool

	// Unless are paths that keep EnsureFieldExistence from applying when one of
	// them has a value.
	Unless []string
}

// Spec says how the bodies of one kind differ between two versions.
type Spec struct {
	Policy string     // the policy's name, for messages
	Pos    source.Pos // of the conversion in its file

	From, To Version // From is the client's version, To the server's

	Rules []Rule

	// Request and Response are jq programs from object to object; nil is none.
	// Request runs after the rules on the way to the server, Response before the
	// reversed rules on the way back.
	Request, Response *source.Text

	// Preserve are the fields of To that From cannot hold: see [Converter.Keep].
	Preserve []Preserved

	Limits Limits
}

// Type is the type of a field as a schema gives it.
type Type string

// The types. TypeUnknown is the zero value.
const (
	TypeUnknown     Type = ""
	TypeString      Type = "string"
	TypeInteger     Type = "integer"
	TypeNumber      Type = "number"
	TypeBoolean     Type = "boolean"
	TypeObject      Type = "object"
	TypeArray       Type = "array"
	TypeIntOrString Type = "int-or-string"
)

// Schema knows the types of a version's fields. It must be safe for concurrent
// use.
type Schema interface {
	// TypeAt returns the type of the field at path, whose elements are keys and
	// "*" for the items of an array; TypeUnknown when there is no such field.
	TypeAt(path []string) Type
}

// Named is a [Schema] made of one that says types by their names, as packages do that know
// nothing of conversions. It has the names of fields ([FieldNames]) where Types has them.
type Named struct {
	Types interface{ TypeAt(path []string) string }
}

// TypeAt implements [Schema].
func (n Named) TypeAt(path []string) Type { return Type(n.Types.TypeAt(path)) }

// FieldsAt implements [FieldNames].
func (n Named) FieldsAt(path []string) (names []string, ok bool) {
	if s, knows := n.Types.(FieldNames); knows {
		return s.FieldsAt(path)
	}
	return nil, false
}

// Direction is where a body is going.
type Direction int

// The directions.
const (
	ToServer Direction = iota // the client's version becomes the server's
	ToClient                  // and back
)

// Vars are what jq programs know beside the object. A nil *Vars is an empty one.
type Vars struct {
	// Request is $request. It is only read, and may hold what encoding/json
	// decodes to, Go integers, []string and maps of strings.
	Request map[string]any

	// Acted is told of what takes part, for tests of policies; nil for nobody.
	Acted Acted
}

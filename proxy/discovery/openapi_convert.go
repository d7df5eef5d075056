package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ConvertOptions is what is known of the client's version beyond the document of
// the server's.
type ConvertOptions struct {
	// Schemas has, by the client's kind, the schema that its version has: a CRD
	// keeps those of versions that it no longer serves. It may refer to schemas that
	// the document has under "#/components/schemas/"; what it refers to and is not
	// there may be anything. For other kinds the target's schema is taken.
	Schemas map[string]json.RawMessage

	// Renames has, by the client's kind, what to undo in the target's schema.
	// Kinds with a schema of their own do not need it.
	Renames map[string][]FieldRename
}

// A FieldRename says that the field From of the client's version is the field To
// of the server's. Path elements are as in [Schema.TypeAt].
//
// With a Type, which is the type in the server's version, the client's type is
// another one that nobody has stated: any is then allowed. From equal to To says
// that the value differs between the versions: the client's may be any and may be
// absent.
type FieldRename struct {
	From, To []string
	Type     string
}

// ConvertV3 derives the OpenAPI v3 document of the client's group version from
// doc, that of the server's. Only converted resources are in it, with all their
// operations and parameters (kubectl looks there for fieldValidation); paths,
// operation IDs, kinds and schema names are the client's.
//
// All conversions must have the same client's and the same server's group version,
// and their resources must be in doc.
func ConvertV3(doc []byte, conversions []Conversion, opts ConvertOptions) ([]byte, error) {
	from, to, err := groupVersions(conversions)
	if err != nil {
		return nil, err
	}
	root, err := decodeObject(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI document of %s: %w", to, err)
	}
	d := &derivation{from: from, to: to, resources: map[string]string{}}
	if err := d.convert(root, conversions, opts); err != nil {
		return nil, err
	}
	return encodeDocument(root)
}

// convert makes a decoded document, until here the server's, into the client's.
func (d *derivation) convert(root map[string]any, conversions []Conversion, opts ConvertOptions) error {
	if err := d.findKinds(conversions, asObject(root["paths"])); err != nil {
		return err
	}
	schemas := componentSchemas(root)
	names := d.newNames(schemas)
	d.convertPaths(root)
	renameKeys(schemas, names)
	d.rewrite(root, names)
	for _, k := range d.kinds {
		if err := d.editSchema(schemas, k.from, opts); err != nil {
			return err
		}
	}
	d.prune(root)
	return nil
}

// A groupKind is a group and version, and mostly a kind, as documents name them.
type groupKind struct{ group, version, kind string }

// String writes the group version as objects do: "v1", "apps/v1".
func (k groupKind) String() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// A derivation makes one document, of OpenAPI v3 or v2.
type derivation struct {
	from, to  groupKind         // the client's and the server's group version
	resources map[string]string // server's resource to client's
	kinds     []kindPair
}

// A kindPair is one converted kind, the client's and the server's.
type kindPair struct{ from, to string }

func groupVersions(conversions []Conversion) (from, to groupKind, err error) {
	for i, c := range conversions {
		f, t := groupKind{c.FromGroup, c.FromVersion, ""}, groupKind{c.ToGroup, c.ToVersion, ""}
		if i > 0 && (f != from || t != to) {
			return from, to, fmt.Errorf("cannot derive one OpenAPI document from conversions of %s to %s and of %s to %s: derive one of each", from, to, f, t)
		}
		from, to = f, t
	}
	if len(conversions) == 0 {
		return from, to, errors.New("cannot derive an OpenAPI document: there is no conversion")
	}
	return from, to, nil
}

// findKinds notes the resources and kinds to convert. Kinds that the conversions
// leave open are those of the operations on their resources.
func (d *derivation) findKinds(conversions []Conversion, paths map[string]any) error {
	inPaths := d.kindsByResource(paths)
	for _, c := range sortedConversions(conversions) {
		kind, ok := inPaths[c.ToResource]
		if !ok {
			return fmt.Errorf("cannot derive the OpenAPI document of %s: that of %s has no operation on %q", d.from, d.to, c.ToResource)
		}
		pair := kindPair{from: c.FromKind, to: kind}
		if c.ToKind != "" {
			pair.to = c.ToKind
		}
		if pair.from == "" {
			pair.from = pair.to
		}
		d.resources[c.ToResource] = c.fromResource()
		if !slices.Contains(d.kinds, pair) {
			d.kinds = append(d.kinds, pair)
		}
	}
	return nil
}

// clientKind returns the client's kind for a kind of the server's group version:
// a converted kind, its list, or one of those that every group version has.
func (d *derivation) clientKind(kind string) (string, bool) {
	for _, k := range d.kinds {
		switch kind {
		case k.to:
			return k.from, true
		case k.to + "List":
			return k.from + "List", true
		}
	}
	return kind, kind == "DeleteOptions" || kind == "WatchEvent"
}

func encodeDocument(root map[string]any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("cannot write the OpenAPI document: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

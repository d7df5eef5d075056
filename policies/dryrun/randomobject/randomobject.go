// Package randomobject makes random objects of a schema, for round trips through
// conversions.
//
// It writes JSON texts rather than values, with the spellings that conversions have
// lost before: escapes, digits, white space, nulls. An object depends on the seed, the
// schema and the options alone.
package randomobject

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

// Options say what the objects are like.
type Options struct {
	// Values are the JSON texts that a field of the name has, in place of random ones.
	Values map[string][]string

	// Words are texts that are often among those of fields: what policies look for.
	Words []string

	// Nulls writes null, at times, where the schema allows it.
	Nulls bool

	// AnyNumber writes any JSON number, also where the schema wants an integer: what a
	// decoder that looks at no type passes on.
	AnyNumber bool
}

// Limits of one object.
const (
	// maxNesting is how deep it nests; what would be deeper is left out, or empty.
	maxNesting = 12

	// maxValues is after how many values what can be left out is.
	maxValues = 3000

	// fewFields is how many fields a struct may have of which two of three are there; of
	// more, about as many are.
	fewFields = 12

	// tries is how often an object is made anew that its schema does not allow.
	tries = 50
)

// Make makes the object of the seed, which begins with head: members of a JSON object,
// such as its apiVersion and kind, or "". The error says what the schema wants that was
// not found by trying.
func Make(seed uint64, s *kindschema.Schema, head string, opts Options) ([]byte, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	var violations []kindschema.Violation
	for range tries {
		m := maker{Rand: r, opts: &opts}
		m.whole(s, head)
		object := []byte(m.String())
		if opts.AnyNumber {
			return object, nil
		}
		var err error
		if violations, err = s.Validate(object); err != nil || len(violations) == 0 {
			return object, err
		}
	}
	return nil, fmt.Errorf("cannot make an object that the schema allows: %v", violations[0])
}

// maker writes one object.
type maker struct {
	*rand.Rand
	strings.Builder
	opts  *Options
	count int // of values so far
}

func pick[T any](m *maker, pool []T) T { return pool[m.IntN(len(pool))] }

// whole writes an object with metadata.
func (m *maker) whole(s *kindschema.Schema, head string) {
	m.WriteByte('{')
	m.WriteString(head)
	properties := maps.Clone(s.Properties)
	delete(properties, "apiVersion")
	delete(properties, "kind")
	if metadata := properties["metadata"]; metadata == nil || len(metadata.Properties) == 0 {
		if properties == nil {
			properties = map[string]*kindschema.Schema{}
		}
		properties["metadata"] = metadata0
	}
	m.fields(properties, append(slices.Clone(s.Required), "spec"), head != "", 0)
	m.WriteByte('}')
}

// metadata0 is the schema of the metadata of a custom resource, which its own does not
// have.
var metadata0 = kindschema.OfObjectMeta()

// fields writes members of an object, behind others where there are some.
func (m *maker) fields(properties map[string]*kindschema.Schema, required []string, more bool, depth int) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, name) && !m.present(len(properties), depth) {
			continue
		}
		if more {
			m.WriteByte(',')
		}
		more = true
		m.WriteString(pick(m, []string{"", "", "", " ", "\n\t"}) + strconv.Quote(name) + ":")
		if pool := m.opts.Values[name]; pool != nil {
			m.WriteString(pick(m, pool))
			continue
		}
		m.value(properties[name], depth+1)
	}
}

// present decides whether one of n optional fields is there.
func (m *maker) present(n, depth int) bool {
	if depth > maxNesting || m.count > maxValues {
		return false
	}
	return m.IntN(max(3*n, 3*fewFields)) < 2*fewFields
}

// value writes a value of the schema.
func (m *maker) value(s *kindschema.Schema, depth int) {
	m.count++
	switch {
	case s == nil:
		m.WriteString(pick(m, anything))
	case m.opts.Nulls && s.Nullable && m.IntN(8) == 0:
		m.WriteString("null")
	case len(s.Enum) > 0:
		text, err := json.Marshal(pick(m, s.Enum))
		if err != nil {
			text = []byte("null") // cannot be: it was decoded from JSON
		}
		m.Write(text)
	case s.IntOrString:
		m.intOrString(s)
	case s.Quantity:
		m.WriteString(pick(m, quantities))
	default:
		m.typed(s, depth)
	}
}

func (m *maker) typed(s *kindschema.Schema, depth int) {
	switch s.Type {
	case "object":
		m.object(s, depth)
	case "array":
		m.list(s, depth)
	case "string":
		m.text(s)
	case "integer", "number":
		m.number(s)
	case "boolean":
		m.WriteString(pick(m, []string{"true", "false"}))
	default:
		m.WriteString(pick(m, anything))
	}
}

func (m *maker) object(s *kindschema.Schema, depth int) {
	if len(s.Properties) == 0 && s.Values == nil {
		m.WriteString(pick(m, anyObjects))
		return
	}
	m.WriteByte('{')
	m.fields(s.Properties, s.Required, false, depth)
	if s.Values != nil && len(s.Properties) == 0 {
		for i := range m.size(s.MinProperties, s.MaxProperties, depth) {
			m.comma(i)
			m.WriteString(m.key(i) + ":")
			m.value(s.Values, depth+1)
		}
	}
	m.WriteByte('}')
}

// key is the i-th key of a map.
func (m *maker) key(i int) string {
	if i < len(mapKeys) {
		return pick(m, mapKeys[i])
	}
	return fmt.Sprintf(`"k%d"`, i)
}

func (m *maker) list(s *kindschema.Schema, depth int) {
	m.WriteByte('[')
	seen := map[string]bool{}
	written := 0
	for range m.size(s.MinItems, s.MaxItems, depth) {
		item := maker{Rand: m.Rand, opts: m.opts, count: m.count}
		item.value(s.Items, depth+1)
		m.count = item.count
		if len(s.Keys) > 0 || s.Unique {
			id := kindschema.Identity(s.Keys, []byte(item.String()))
			if seen[id] {
				continue // an item like this one is there
			}
			seen[id] = true
		}
		m.comma(written)
		m.WriteString(item.String())
		written++
	}
	m.WriteByte(']')
}

// size is how many items or members there are, where so many are allowed.
func (m *maker) size(least, most *int64, depth int) int {
	n := m.IntN(3)
	if depth > maxNesting || m.count > maxValues {
		n = 0
	}
	if least != nil && int64(n) < *least {
		n = int(min(*least, maxValues))
	}
	if most != nil && int64(n) > *most {
		n = int(*most)
	}
	return n
}

func (m *maker) comma(i int) {
	if i > 0 {
		m.WriteByte(',')
	}
}

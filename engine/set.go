package engine

import (
	"slices"

	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Set is a set of compiled policies. It never changes and may be used by any
// number of goroutines. The zero Set has no policies.
type Set struct {
	policies []*policy // in the order in which they apply
	index    index
}

// Info is what is to be shown of a policy.
type Info struct {
	Name   string     `json:"name"`
	Origin string     `json:"origin"` // one of the Origin constants
	Pos    source.Pos `json:"pos"`

	// Roles are what the policy has, in this order: "match", "convert", "route",
	// "deny", "warn", "prefer".
	Roles []string `json:"roles"`

	// From and To are the two sides of its conversion, with their resources:
	// "policy/v1beta1 poddisruptionbudgets". Empty without one.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`

	// When says when the conversion takes place; "" without one.
	When string `json:"when,omitempty"`

	// Prefer is the server version that it prefers: "v1.32.y"; empty for none.
	Prefer string `json:"prefer,omitempty"`

	// Audit is true if it is evaluated only.
	Audit bool `json:"audit,omitempty"`

	// Ignore is true if a request goes on without it when it fails.
	Ignore bool `json:"ignore,omitempty"`

	// ShadowedBy names the user's policy that takes the place of the conversion
	// of this shipped one; empty if none does.
	ShadowedBy string `json:"shadowedBy,omitempty"`
}

func infoOf(p *Policy) Info {
	info := Info{Name: p.Name, Origin: p.Origin, Pos: p.Pos, Audit: p.Audit, Ignore: p.OnFailure == Ignore}
	for _, role := range []struct {
		name string
		has  bool
	}{
		{"match", p.Match != nil},
		{"convert", p.Convert != nil},
		{"route", p.Route != nil},
		{"deny", p.Deny != nil},
		{"warn", p.Warn != nil},
		{"prefer", p.Prefer != nil},
	} {
		if role.has {
			info.Roles = append(info.Roles, role.name)
		}
	}
	if p.Convert != nil {
		info.From = p.Convert.From.APIVersion() + " " + p.Convert.From.Resource
		info.To = p.Convert.To.APIVersion() + " " + p.Convert.To.Resource
		info.When = p.When.String()
	}
	if p.Prefer != nil {
		info.Prefer = p.Prefer.Server.String()
	}
	return info
}

// Conversion is a conversion that a policy makes, from the client's version to
// the server's. It never changes and may be used by any number of goroutines.
type Conversion struct {
	*convert.Converter

	Policy   string
	When     When
	From, To convert.Version
	Library  bool // it is shipped with MVP

	// Index is that of its policy in [Set.Policies]. Ignore says that a request
	// which it cannot convert goes on without the policy where that is possible:
	// decide again, with [Input.Without].
	Index  int
	Ignore bool

	// Via are the versions between From and To where the conversion is a chain of
	// several policies' conversions, Policy being the first of them. A chain takes
	// place only while no server serves any of Via.
	Via []convert.Version

	further []*Conversion // the chains that begin with it, the shortest first
}

// newSet takes policies in the order in which they apply.
func newSet(policies []*policy) *Set {
	return &Set{policies: policies, index: newIndex(policies)}
}

// Policies returns what is to be shown of each policy, in the order in which
// they apply.
func (s *Set) Policies() []Info {
	infos := make([]Info, len(s.policies))
	for i, p := range s.policies {
		infos[i] = p.Info
		infos[i].Roles = slices.Clone(p.Roles)
	}
	return infos
}

// Conversions returns the conversions that may take place, in the order of their
// policies: what discovery has to list. Those of policies in audit mode, and
// shipped ones that a user's replaces, are not among them. Two of one version may
// be, if they have different matches, or where one is a chain that goes on from the
// other.
func (s *Set) Conversions() []*Conversion {
	var conversions []*Conversion
	for _, p := range s.policies {
		if p.converts() && !p.Audit {
			conversions = append(conversions, p.conversion)
			conversions = append(conversions, p.conversion.further...)
		}
	}
	return conversions
}

// WithSchemas returns a copy of s whose conversions know the types of the fields
// of both versions. schema returns nil for a version that it does not know.
func (s *Set) WithSchemas(schema func(convert.Version) convert.Schema) *Set {
	policies := make([]*policy, len(s.policies))
	for i, p := range s.policies {
		policies[i] = p
		if p.conversion == nil {
			continue
		}
		copied := *p
		copied.conversion = p.conversion.withSchemas(schema)
		policies[i] = &copied
	}
	return newSet(policies)
}

func (c *Conversion) withSchemas(schema func(convert.Version) convert.Schema) *Conversion {
	copied := *c
	copied.Converter = c.Converter.WithSchemas(schema(c.From), schema(c.To))
	copied.further = nil
	for _, longer := range c.further {
		copied.further = append(copied.further, longer.withSchemas(schema))
	}
	return &copied
}

// converts reports whether the conversion of p may take place.
func (p *policy) converts() bool { return p.conversion != nil && p.ShadowedBy == "" }

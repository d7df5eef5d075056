package convert

import (
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Converter converts bodies as its [Spec] says. It never changes and is safe for
// concurrent use.
type Converter struct {
	spec  Spec
	steps []*step
	words []word // From's apiVersion and kind, To's apiVersion and kind

	request, response *program // nil: none, or those of the links
	links             []link   // in the order of their way to the server
	client            Schema   // of the client's version; nil: not known
	limits            Limits

	preserve []path // in the server's version
	hidden   []path // those of them that the client does not see

	warnings source.Errors // about the rules
}

// Compile makes a Converter. When the spec has mistakes it returns all of them,
// each with its place, and no Converter.
func Compile(spec Spec) (*Converter, source.Errors) {
	c := &Converter{spec: spec, words: knownWords(&spec), limits: spec.Limits.withDefaults()}
	var errs source.Errors
	c.preserve, errs = compilePreserve(&spec)
	for i := range spec.Rules {
		s, mistakes := compileRule(&spec.Rules[i])
		if len(mistakes) > 0 {
			errs = append(errs, mistakes...)
			continue
		}
		s.number = len(c.steps)
		c.steps = append(c.steps, s)
	}
	for _, p := range []struct {
		text *source.Text
		into **program
	}{{spec.Request, &c.request}, {spec.Response, &c.response}} {
		if p.text == nil {
			continue
		}
		compiled, mistakes := compileProgram(p.text)
		if len(mistakes) > 0 && spec.Limits.UnboundedJQ {
			compiled, mistakes = compileUnbounded(p.text)
		}
		if len(mistakes) == 0 {
			mistakes = resultMistakes(p.text)
		}
		*p.into = compiled
		errs = append(errs, mistakes...)
	}
	if len(errs) == 0 {
		found := findClashes(c)
		errs, c.warnings = found.errs, found.warnings
	}
	if len(errs) > 0 {
		errs.Sort()
		return nil, errs
	}
	c.spec.Rules = nil // the steps have all of them that counts
	c.links = []link{{len(c.steps), c}}
	c.hidden = c.hiddenPaths()
	return c, nil
}

// Versions returns the versions that c converts between.
func (c *Converter) Versions() (from, to Version) { return c.spec.From, c.spec.To }

// WithSchemas returns a copy of c that knows the field types of the client's
// version (from) and of the server's (to); nil is unknown. With them, values that
// rules write get the type the server wants, and what a rule retyped gets the
// type the client wants back.
func (c *Converter) WithSchemas(from, to Schema) *Converter {
	typeAt := func(schema Schema, p path) Type {
		if schema == nil {
			return TypeUnknown
		}
		return schema.TypeAt(p.schemaPath())
	}
	copied := *c
	copied.client = from
	copied.steps = make([]*step, len(c.steps))
	for i, s := range c.steps {
		client := typeAt(from, c.clientPath(i, s.from))
		server := typeAt(to, c.serverPath(i, s.to))
		copied.steps[i] = s.typed(client, server)
	}
	return &copied
}

// UsesJQ reports whether a jq program takes part in the conversion, so that a
// patch cannot be converted by itself.
func (c *Converter) UsesJQ() bool {
	for _, l := range c.links {
		if l.of.request != nil || l.of.response != nil {
			return true
		}
	}
	return false
}

// Decodes reports whether, in that direction, a jq program of the conversion has a part
// that gojq runs on a decoded object. Where none has, bodies are changed on their bytes
// alone, which costs what rules cost.
func (c *Converter) Decodes(dir Direction) bool {
	for _, l := range c.links {
		p := l.of.request
		if dir == ToClient {
			p = l.of.response
		}
		if p != nil && !p.isPlanned() {
			return true
		}
	}
	return false
}

// link is one conversion of those that a converter makes one after the other: some of
// its steps, and the programs that come behind them.
type link struct {
	end int        // of its steps, which start where those of the link before end
	of  *Converter // whose versions, programs and limits are meant
}

// stepsOf returns the steps of link i.
func (c *Converter) stepsOf(i int) []*step {
	start := 0
	if i > 0 {
		start = c.links[i-1].end
	}
	return c.steps[start:c.links[i].end]
}

// clientPath returns what p, as step i sees it before it runs, is in the client's
// version.
func (c *Converter) clientPath(i int, p path) path {
	for i--; i >= 0; i-- {
		if s := c.steps[i]; s.renames() && p.hasPrefix(s.to) {
			p = append(s.from[:len(s.from):len(s.from)], p[len(s.to):]...)
		}
	}
	return p
}

// serverPath returns what p, as step i leaves it, is in the server's version.
func (c *Converter) serverPath(i int, p path) path {
	for _, s := range c.steps[i+1:] {
		if s.renames() && p.hasPrefix(s.from) {
			p = append(s.to[:len(s.to):len(s.to)], p[len(s.from):]...)
		}
	}
	return p
}

// source and target are the versions that a body has and gets.
func (c *Converter) source(dir Direction) *Version {
	if dir == ToClient {
		return &c.spec.To
	}
	return &c.spec.From
}

func (c *Converter) target(dir Direction) *Version {
	if dir == ToClient {
		return &c.spec.From
	}
	return &c.spec.To
}

// apiVersion is the one that a body going in direction dir comes with.
func (c *Converter) apiVersion(dir Direction) string {
	if dir == ToClient {
		return c.words[2].text
	}
	return c.words[0].text
}

// quotedVersion is apiVersion in JSON.
func (c *Converter) quotedVersion(dir Direction) string {
	if dir == ToClient {
		return c.words[2].quoted
	}
	return c.words[0].quoted
}

func (dir Direction) reverse() Direction {
	if dir == ToClient {
		return ToServer
	}
	return ToClient
}

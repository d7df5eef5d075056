package engine

import "github.com/mixed-version-proxy/mvp/engine/convert"

// maxChain is over how many conversions a request may be converted: more versions
// of one resource than any has ever had.
const maxChain = 8

// addChains gives each conversion those that go on from its server's version, for
// when nobody serves that: v1alpha1 to v1beta1 and v1beta1 to v1 make v1alpha1 to
// v1. A chain never comes back to a version that it went through, so that
// conversions in both directions may stand side by side.
func addChains(policies []*policy) {
	next := map[gvr]*Conversion{}
	for _, p := range policies {
		if from := p.converts() && !p.Audit && p.match == nil; from && next[gvrOf(p.conversion.From)] == nil {
			next[gvrOf(p.conversion.From)] = p.conversion
		}
	}
	for _, p := range policies {
		if p.converts() {
			p.conversion.further = chain(p.conversion, next)
		}
	}
}

// chain composes c with the conversions that follow it, the shortest first.
func chain(c *Conversion, next map[gvr]*Conversion) (further []*Conversion) {
	seen := map[gvr]bool{gvrOf(c.From): true}
	for len(further) < maxChain-1 {
		seen[gvrOf(c.To)] = true
		link := next[gvrOf(c.To)]
		if link == nil || seen[gvrOf(link.To)] {
			break
		}
		converter := convert.Compose(c.Converter, link.Converter)
		longer := *c
		longer.Converter = converter
		longer.From, longer.To = converter.Versions()
		longer.Via = append(c.Via[:len(c.Via):len(c.Via)], c.To)
		further = append(further, &longer)
		c = &longer
	}
	return further
}

// reach returns the shortest chain that begins with c, c itself if it can be, and ends
// at a version that is served; where none is, at one that will be when its servers are
// back. It is nil where no server has any of them: there is nothing to convert to.
func (c *Conversion) reach(in *Input) *Conversion {
	if in.Served == nil {
		return c
	}
	if found := c.shortest(in.Served); found != nil {
		return found
	}
	if in.Known == nil {
		return c
	}
	return c.shortest(in.Known)
}

// shortest returns the shortest chain that begins with c and ends at a version that has
// a server, nil where none does.
func (c *Conversion) shortest(has func(group, version, resource string) bool) *Conversion {
	if has(c.To.Group, c.To.Version, c.To.Resource) {
		return c
	}
	for _, longer := range c.further {
		if has(longer.To.Group, longer.To.Version, longer.To.Resource) {
			return longer
		}
	}
	return nil
}

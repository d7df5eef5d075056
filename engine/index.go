package engine

import "github.com/mixed-version-proxy/mvp/engine/convert"

// gvr is a resource of a group version.
type gvr struct{ group, version, resource string }

func gvrOf(v convert.Version) gvr { return gvr{v.Group, v.Version, v.Resource} }

// index finds the policies that may be about a request, so that ten thousand of
// them for other requests cost nothing. A policy stands under the values of one of
// the variables that it pins, or of group, version and resource together: where the
// fewest others stand. What it pins beside that is compared when it is met.
type index struct {
	byVersion  map[gvr][]*policy
	byVariable []variableIndexed
	general    []*policy // those that pin nothing
}

// variableIndexed are the policies that stand under the values of one variable.
type variableIndexed struct {
	variable int
	policies map[string][]*policy
}

// newIndex takes policies in the order in which they apply.
func newIndex(policies []*policy) (x index) {
	var c crowd
	for _, p := range policies {
		c.add(p)
	}
	for _, p := range policies {
		if p.replaced() {
			continue
		}
		switch variable, ok := c.best(p); {
		case !ok:
			x.general = append(x.general, p)
		case variable == allOfVersion:
			if x.byVersion == nil {
				x.byVersion = map[gvr][]*policy{}
			}
			for _, key := range versionKeys(p.pins) {
				x.byVersion[key] = append(x.byVersion[key], p)
			}
		default:
			x.add(variable, p)
		}
	}
	return x
}

// replaced reports whether nothing is left of p, a shipped policy whose conversion
// a user's takes the place of.
func (p *policy) replaced() bool { return p.onlyConverts() && !p.converts() }

func (p *policy) onlyConverts() bool {
	return p.conversion != nil && p.route == nil && p.deny == nil && p.warn == nil && p.prefer == nil
}

func (x *index) add(variable int, p *policy) {
	values, _ := p.pins.of(variable)
	for i := range x.byVariable {
		if v := &x.byVariable[i]; v.variable == variable {
			v.add(values, p)
			return
		}
	}
	v := variableIndexed{variable, map[string][]*policy{}}
	v.add(values, p)
	x.byVariable = append(x.byVariable, v)
}

func (v *variableIndexed) add(values []string, p *policy) {
	for _, value := range values {
		v.policies[value] = append(v.policies[value], p)
	}
}

// allOfVersion stands for group, version and resource together.
const allOfVersion = -1

// maxVersionKeys bounds under how many combinations of group, version and resource
// one policy stands.
const maxVersionKeys = 64

// versionKeys returns the combinations of group, version and resource that p
// admits; none if it does not pin all three, or there are too many.
func versionKeys(p pins) (keys []gvr) {
	groups, ok1 := p.of(varGroup)
	versions, ok2 := p.of(varVersion)
	resources, ok3 := p.of(varResource)
	if !ok1 || !ok2 || !ok3 || len(groups) > maxVersionKeys || len(versions) > maxVersionKeys || len(resources) > maxVersionKeys ||
		len(groups)*len(versions)*len(resources) > maxVersionKeys {
		return nil
	}
	for _, group := range groups {
		for _, version := range versions {
			for _, resource := range resources {
				keys = append(keys, gvr{group, version, resource})
			}
		}
	}
	return keys
}

// crowd counts how many policies could stand under each value.
type crowd struct {
	versions  map[gvr]int
	variables [numTexts]map[string]int
}

func (c *crowd) add(p *policy) {
	if c.versions == nil {
		c.versions = map[gvr]int{}
	}
	for _, key := range versionKeys(p.pins) {
		c.versions[key]++
	}
	for i := range p.pins {
		counts := &c.variables[p.pins[i].variable]
		if *counts == nil {
			*counts = map[string]int{}
		}
		for _, value := range p.pins[i].values {
			(*counts)[value]++
		}
	}
}

// best returns under which variable p shares its values with the fewest others; ok
// is false if it pins none.
func (c *crowd) best(p *policy) (variable int, ok bool) {
	fewest := 0
	consider := func(candidate, most int) {
		if !ok || most < fewest {
			variable, fewest, ok = candidate, most, true
		}
	}
	if keys := versionKeys(p.pins); len(keys) > 0 {
		most := 0
		for _, key := range keys {
			most = max(most, c.versions[key])
		}
		consider(allOfVersion, most)
	}
	for i := range p.pins {
		most := 0
		for _, value := range p.pins[i].values {
			most = max(most, c.variables[p.pins[i].variable][value])
		}
		consider(p.pins[i].variable, most)
	}
	return variable, ok
}

// candidates are the policies that may be about a request: lists, each in order.
type candidates struct {
	request *Request
	lists   [numTexts + 2][]*policy // one a variable, that of the version, the general one
	n       int
}

func (x *index) find(r *Request) candidates {
	c := candidates{request: r}
	c.add(x.general)
	if len(x.byVersion) > 0 {
		c.add(x.byVersion[gvr{r.Group, r.Version, r.Resource}])
	}
	for i := range x.byVariable {
		value, _ := r.text(x.byVariable[i].variable)
		c.add(x.byVariable[i].policies[value])
	}
	return c
}

func (c *candidates) add(list []*policy) {
	if len(list) > 0 {
		c.lists[c.n] = list
		c.n++
	}
}

// next takes the first policy off c whose pins admit the request; nil when there
// is none.
func (c *candidates) next() *policy {
	for {
		first := -1
		for i, list := range c.lists[:c.n] {
			if len(list) > 0 && (first < 0 || list[0].order < c.lists[first][0].order) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		p := c.lists[first][0]
		c.lists[first] = c.lists[first][1:]
		if p.pins.admits(c.request) {
			return p
		}
	}
}

package policies

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// roleExt says in which language the file of a role is written.
var roleExt = map[string]string{
	"match": ".cel", "convert": ".cel", "route": ".cel", "deny": ".cel", "warn": ".cel", "mode": ".cel", "failure": ".cel",
	"request": ".jq", "response": ".jq",
}

// roleNames are the keys of roleExt in the order in which messages list them.
var roleNames = []string{"match", "convert", "route", "deny", "warn", "mode", "failure", "request", "response"}

// group is the files of one policy: those with the same directory and name.
type group struct {
	name  string
	texts map[string]*source.Text // by role
}

// roleFile takes a file called <policy>.<role>.<cel|jq>.
func (p *parser) roleFile(file File) {
	policy, role, problem := splitName(path.Base(file.Name))
	if problem != "" {
		p.errs = append(p.errs, &source.Error{Pos: source.Pos{File: file.Name, Line: 1, Col: 1}, Msg: problem})
		return
	}
	text := fileText(file)
	key := path.Join(path.Dir(file.Name), policy)
	g := p.groups[key]
	if g == nil {
		g = &group{name: policy, texts: map[string]*source.Text{}}
		p.groups[key] = g
		p.order = append(p.order, g)
	}
	g.texts[role] = text
}

// splitName takes a file name apart. The problem says what is wrong with a name
// that is not of the form.
func splitName(base string) (policy, role, problem string) {
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	role = strings.TrimPrefix(path.Ext(stem), ".")
	policy = strings.TrimSuffix(stem, path.Ext(stem))
	want, known := roleExt[role]
	switch {
	case ext != ".cel" && ext != ".jq":
		return "", "", "the file name says nothing of what it holds: policy files are called <policy>.<role>.cel, " +
			"<policy>.<role>.jq, or *.yaml, *.yml, *.json with TransformationRules"
	case role == "" || policy == "":
		return "", "", "the file name has no role: it is <policy>.<role>" + ext + ", the role one of " + strings.Join(rolesIn(ext), ", ")
	case !known:
		return "", "", "the file name has the unknown role " + source.Quote(role) + source.Suggest(role, roleNames)
	case ext != want:
		return "", "", "the role " + source.Quote(role) + " is written in " + languages[want] + ": call the file " + policy + "." + role + want
	}
	return policy, role, ""
}

var languages = map[string]string{".cel": "CEL", ".jq": "jq"}

// rolesIn returns the roles whose files end with ext.
func rolesIn(ext string) []string {
	return slices.DeleteFunc(slices.Clone(roleNames), func(role string) bool { return roleExt[role] != ext })
}

// finishGroups makes a policy of each group of role files.
func (p *parser) finishGroups() {
	for _, g := range p.order {
		p.policies = append(p.policies, p.groupPolicy(g))
	}
}

// groupPolicy makes the policy that the files of g are.
func (p *parser) groupPolicy(g *group) engine.Policy {
	policy := engine.Policy{
		Name:   g.name,
		Origin: p.origin,
		Pos:    g.pos(),
		Match:  g.texts["match"],
		Route:  g.texts["route"],
		Deny:   g.texts["deny"],
		Warn:   g.texts["warn"],
	}
	if text := g.texts["mode"]; text != nil {
		policy.Audit = p.evalMode(text)
	}
	if text := g.texts["failure"]; text != nil {
		policy.OnFailure = p.evalFailure(text)
	}
	if text := g.texts["convert"]; text != nil {
		policy.Convert, policy.When = p.evalConvert(g.name, text)
	}
	if policy.Convert != nil {
		policy.Convert.Request, policy.Convert.Response = g.texts["request"], g.texts["response"]
	}
	if !p.does(g) || g.texts["convert"] != nil && policy.Convert == nil {
		policy.Warn = cmp.Or(policy.Warn, standIn)
	}
	return policy
}

// standIn takes the place of what was not understood in a policy, and noted, so
// that the engine still looks for mistakes in the rest of it.
var standIn = &source.Text{Code: "''"}

// pos is the place that stands for the policy: the start of its first file in
// the order of the roles.
func (g *group) pos() source.Pos {
	for _, role := range roleNames {
		if text := g.texts[role]; text != nil {
			return text.Start
		}
	}
	return source.Pos{}
}

// does reports whether the files of g do anything. That they do not is a mistake:
// more likely a forgotten or misnamed file than meant.
func (p *parser) does(g *group) bool {
	if g.texts["convert"] == nil {
		for _, role := range []string{"request", "response"} {
			if text := g.texts[role]; text != nil {
				p.errs = append(p.errs, text.Error(0, "the program has no %s.convert.cel beside it, which says for which resource and versions it is", g.name))
			}
		}
	}
	for _, role := range []string{"convert", "route", "deny", "warn"} {
		if g.texts[role] != nil {
			return true
		}
	}
	if g.texts["request"] != nil || g.texts["response"] != nil {
		return false // which is noted
	}
	only := ""
	for _, role := range []string{"match", "mode", "failure"} {
		if only == "" && g.texts[role] != nil {
			only = role
		}
	}
	p.errs = append(p.errs, g.texts[only].Error(0, "the policy has a %s and nothing else, so it would do nothing: add %[2]s.convert.cel, %[2]s.route.cel, %[2]s.deny.cel or %[2]s.warn.cel", only, g.name))
	return false
}

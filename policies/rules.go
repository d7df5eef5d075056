package policies

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// The document that this package reads.
const (
	rulesAPIVersion = "mvp.k8s.io/v1"
	rulesKind       = "TransformationRules"
)

// actionJQ is the transformation that is a jq program. All other actions are the
// engine's.
const actionJQ = "jq"

// objectMeta are the fields of metadata that say nothing to us but stand in an
// object that was read from a cluster.
var objectMeta = []string{
	"namespace", "labels", "annotations", "generateName", "uid", "resourceVersion", "generation",
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences",
	"managedFields", "selfLink",
}

// documents takes a file of TransformationRules.
func (p *parser) documents(file File) {
	read := readYAML
	if path.Ext(file.Name) == ".json" {
		read = readJSON
	}
	f, docs := read(file)
	if len(docs) == 0 && len(f.errs) == 0 {
		f.failAt(source.Pos{File: f.name, Line: 1, Col: 1}, "the file holds no document: write TransformationRules or remove the file")
	}
	for _, doc := range docs {
		p.document(f, doc)
	}
	p.errs = append(p.errs, f.errs...)
}

// fieldDocument takes a TransformationRules document in JSON whose places are its
// fields.
func (p *parser) fieldDocument(file File) {
	f, docs := readJSON(file)
	for _, doc := range docs {
		f.placeByField(doc)
		p.document(f, doc)
	}
	p.errs = append(p.errs, f.errs...)
}

// document takes one TransformationRules document.
func (p *parser) document(f *yamlFile, node *yaml.Node) {
	o, ok := f.object("the document", node)
	if !ok || !isRules(o) {
		return
	}
	o.ignore("status")
	name, ok := documentName(o)
	if !ok || !p.claim(name, o.pos()) {
		name = fmt.Sprintf("%s@%v", name, o.pos()) // one mistake about the name is enough
	}
	spec := o.given("spec")
	if spec == nil {
		f.failAt(o.pos(), "the document has no spec")
	} else if s, isMap := f.object("spec", spec); isMap {
		before, onFailure := len(f.errs), s.failurePolicy(engine.Fail)
		migrations, routings := s.list("apiMigrationRules"), s.list("apiRoutingRules")
		for i, rule := range migrations {
			p.migrationRule(f, fmt.Sprintf("%s/apiMigrationRules[%d]", name, i), rule, onFailure)
		}
		for i, rule := range routings {
			p.routingRule(f, fmt.Sprintf("%s/apiRoutingRules[%d]", name, i), rule)
		}
		s.done()
		if len(migrations)+len(routings) == 0 && len(f.errs) == before {
			f.failAt(s.pos(), "the spec has no rules: give it apiMigrationRules or apiRoutingRules, or remove the document")
		}
	}
	o.done()
}

// isRules reports whether o says that it is a TransformationRules document.
func isRules(o *yamlObject) bool {
	apiVersion, ok1 := o.required("apiVersion", ": it must be "+rulesAPIVersion)
	kind, ok2 := o.required("kind", ": it must be "+rulesKind)
	if ok1 && apiVersion != rulesAPIVersion {
		o.fail("apiVersion", "apiVersion is %s: it must be %s", source.Quote(apiVersion), rulesAPIVersion)
		ok1 = false
	}
	if ok2 && kind != rulesKind {
		o.fail("kind", "kind is %s: it must be %s", source.Quote(kind), rulesKind)
		ok2 = false
	}
	if o.given("apiVersion") == nil || o.given("kind") == nil {
		o.ignore("metadata", "spec", "status")
		o.done() // a field of another name may be the one that is missing
	}
	return ok1 && ok2
}

// documentName returns metadata.name.
func documentName(o *yamlObject) (name string, ok bool) {
	node := o.given("metadata")
	if node == nil {
		o.f.failAt(o.pos(), "the document has no metadata: its name is needed")
		return "", false
	}
	meta, ok := o.f.object("metadata", node)
	if !ok {
		return "", false
	}
	meta.ignore(objectMeta...)
	name, ok = meta.required("name", ": messages and metrics name the rules by it")
	if ok && !isName(name, ".") {
		meta.fail("name", `name is %s: it must be lower-case letters, digits, "-" and "."`, source.Quote(name))
		ok = false
	}
	meta.done()
	return name, ok
}

// migrationRule takes an item of apiMigrationRules: a conversion. onFailure is what
// the document says for all of them.
func (p *parser) migrationRule(f *yamlFile, name string, node *yaml.Node, onFailure engine.FailurePolicy) {
	o, ok := f.object("the apiMigrationRule", node)
	if !ok {
		return
	}
	spec := &convert.Spec{Policy: name, Pos: o.pos()}
	policy := engine.Policy{Name: name, Origin: p.origin, Pos: o.pos(), Convert: spec}
	before, warned := len(f.errs), len(f.warnings)

	o.versions(spec)
	policy.Match = o.text("match")
	policy.When = o.when()
	policy.Audit = o.audit()
	policy.OnFailure = o.failurePolicy(onFailure)
	spec.Preserve = o.preserve()
	if len(f.errs) == before && !happens(spec, policy.When) {
		o.fail("toVersion", neverHappens)
	}
	o.transformations(spec)
	o.done()
	policy.Warnings = slices.Clone(f.warnings[warned:])

	// A rule that is not understood converts nothing, but the engine still looks
	// for mistakes in its expression, and in those of its transformations that are.
	if len(f.errs) > before {
		_, mistakes := convert.Compile(*spec)
		p.errs = append(p.errs, mistakes...)
		policy.Convert, policy.Warn = nil, standIn
	}
	p.policies = append(p.policies, policy)
}

// preserve reads the fields that the old version cannot hold. What the paths mean,
// the engine checks.
func (o *yamlObject) preserve() (fields []convert.Preserved) {
	for _, item := range o.list("preserve") {
		if path, ok := o.f.str("an item of preserve", item); ok {
			fields = append(fields, convert.Preserved{Path: path, Pos: o.f.pos(item)})
		}
	}
	return fields
}

// versions reads between which versions of what a rule converts.
func (o *yamlObject) versions(spec *convert.Spec) {
	spec.From.Group, _ = o.checked("apiGroup", checkGroup, `: "" is the core group`)
	spec.From.Resource, _ = o.checked("resource", checkResource, "")
	spec.From.Version, _ = o.checked("fromVersion", checkVersion, ": it is the version that clients speak")
	spec.To.Version, _ = o.checked("toVersion", checkVersion, ": it is the version that the servers have")
	spec.From.Kind = o.kind("kind")
	spec.To.Group, spec.To.Resource, spec.To.Kind = spec.From.Group, spec.From.Resource, spec.From.Kind
	if o.given("toGroup") != nil {
		spec.To.Group, _ = o.checked("toGroup", checkGroup, "")
	}
	if o.given("toResource") != nil {
		spec.To.Resource, _ = o.checked("toResource", checkResource, "")
	}
	if o.given("toKind") != nil {
		spec.To.Kind = o.kind("toKind")
		if spec.From.Kind == "" {
			o.fail("toKind", "toKind is given without kind: name both, or kind alone when they are the same")
		}
	}
}

// kind returns the kind in a field, "" when it is absent.
func (o *yamlObject) kind(name string) string {
	kind := o.optional(name)
	if problem := checkKind(kind); problem != "" {
		o.fail(name, "%s is %s: %s", name, source.Quote(kind), problem)
	}
	return kind
}

// checked returns the string in a required field that check finds nothing wrong
// with.
func (o *yamlObject) checked(name string, check func(string) string, hint string) (s string, ok bool) {
	s, ok = o.required(name, hint)
	if !ok {
		return "", false
	}
	if problem := check(s); problem != "" {
		o.fail(name, "%s is %s: %s", name, source.Quote(s), problem)
		return "", false
	}
	return s, true
}

func (o *yamlObject) when() engine.When {
	word, ok := o.word("when")
	if !ok {
		return engine.WhenUnserved
	}
	when, problem := parseWhen(word)
	if problem != "" {
		o.fail("when", "%s", problem)
	}
	return when
}

func (o *yamlObject) audit() bool {
	mode, ok := o.word("mode")
	if ok && mode != modeEnforce && mode != modeAudit {
		o.fail("mode", "mode is %s: it must be %q or %q", source.Quote(mode), modeEnforce, modeAudit)
	}
	return mode == modeAudit
}

func (o *yamlObject) failurePolicy(fallback engine.FailurePolicy) engine.FailurePolicy {
	word, ok := o.word("failurePolicy")
	if !ok {
		return fallback
	}
	onFailure, problem := parseFailurePolicy(word)
	if problem != "" {
		o.fail("failurePolicy", "failurePolicy is %s", problem)
	}
	return onFailure
}

// transformations reads the rules of a conversion, and its programs. A rule with a
// mistake is not among them: it would only be found again.
func (o *yamlObject) transformations(spec *convert.Spec) {
	items := o.list("transformations")
	for i, item := range items {
		t, ok := o.f.object("the transformation", item)
		if !ok {
			continue
		}
		before := len(o.f.errs)
		action, _ := t.required("action", ": it must be rename, move, modify, ensureFieldExistence, remove or jq")
		if action == actionJQ {
			t.programs(spec, i == len(items)-1)
			t.done()
			continue
		}
		rule := t.rule(convert.Action(action))
		t.done()
		if len(o.f.errs) == before {
			spec.Rules = append(spec.Rules, rule)
		}
	}
}

// rule reads a declarative transformation. Which fields its action needs, and
// what the paths mean, the engine checks.
func (o *yamlObject) rule(action convert.Action) convert.Rule {
	r := convert.Rule{
		Pos:        o.pos(),
		FieldPos:   o.fieldPos("unless"),
		Action:     action,
		Path:       o.optional("path"),
		TargetPath: o.optional("targetPath"),
		Type:       o.optional("type"),
		Unless:     o.strings("unless"),
	}
	r.MatchValue, r.HasMatch = o.value("matchValue")
	r.ReplaceValue, r.HasReplace = o.value("replaceValue")
	r.DefaultValue, r.HasDefault = o.value("defaultValue")
	for _, name := range []string{"request", "response"} {
		if o.given(name) != nil {
			o.fail(name, "%s is a program and belongs to the action %s, not to %s", name, actionJQ, source.Quote(string(action)))
		}
	}
	return r
}

// programs reads a transformation by jq. The engine runs programs after the
// rules on the way to the server and before them on the way back, so the
// document has to say it in that order.
func (o *yamlObject) programs(spec *convert.Spec, last bool) {
	request, response := o.text("request"), o.text("response")
	switch {
	case o.given("request") == nil && o.given("response") == nil:
		o.f.failAt(o.pos(), "the transformation has neither request (a program from the client's form to the server's) nor response (the way back)")
	case !last:
		o.fail("action", "a %s transformation must be the last of its rule, and the only one: its program runs after the other transformations on the way to the server", actionJQ)
	}
	spec.Request, spec.Response = request, response
	for _, name := range []string{"path", "targetPath", "type", "unless", "matchValue", "replaceValue", "defaultValue"} {
		if o.take(name) != nil {
			o.fail(name, "%s means nothing to the action %s: say it in the program", name, actionJQ)
		}
	}
}

// routingRule takes an item of apiRoutingRules: a preference for servers.
func (p *parser) routingRule(f *yamlFile, name string, node *yaml.Node) {
	o, ok := f.object("the apiRoutingRule", node)
	if !ok {
		return
	}
	before := len(f.errs)
	prefer := &engine.Preference{Pos: o.pos()}
	prefer.Group, _ = o.checked("apiGroup", checkGroup, `: "" is the core group`)
	prefer.Resource, _ = o.checked("resource", checkResource, "")
	prefer.ClientVersion, _ = o.checked("clientVersion", checkVersion, ": it is the version that clients speak")
	if pattern, ok := o.required("preferApiServerVersion", ": it is the version of the servers to prefer, such as v1.32.y"); ok {
		var err error
		if prefer.Server, err = engine.ParseVersionPattern(pattern); err != nil {
			o.fail("preferApiServerVersion", "%s", strings.TrimSpace(err.Error()))
		}
	}
	o.done()
	if len(f.errs) > before {
		return
	}
	p.policies = append(p.policies, engine.Policy{Name: name, Origin: p.origin, Pos: o.pos(), Prefer: prefer})
}

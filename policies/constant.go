package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Modes and failure policies of a policy, and the values of when, as users write them.
const (
	modeEnforce  = "enforce"
	modeAudit    = "audit"
	failFail     = "fail"
	failIgnore   = "ignore"
	whenUnserved = "unserved"
	whenAlways   = "always"
)

// evalMode returns whether the mode file says audit.
func (p *parser) evalMode(text *source.Text) (audit bool) {
	value, err := engine.EvalConstant(text)
	if err != nil {
		p.errs = append(p.errs, err)
		return false
	}
	mode, ok := value.(string)
	if !ok || mode != modeEnforce && mode != modeAudit {
		p.errs = append(p.errs, text.Error(0, "the mode is %s: it must be '%s' or '%s'", preview(value), modeEnforce, modeAudit))
		return false
	}
	return mode == modeAudit
}

// evalFailure returns what the failure file says.
func (p *parser) evalFailure(text *source.Text) engine.FailurePolicy {
	value, err := engine.EvalConstant(text)
	if err != nil {
		p.errs = append(p.errs, err)
		return engine.Fail
	}
	onFailure, problem := parseFailurePolicy(value)
	if problem != "" {
		p.errs = append(p.errs, text.Error(0, "the failure policy is %s", problem))
	}
	return onFailure
}

// parseFailurePolicy returns what a user's failure policy means.
func parseFailurePolicy(value any) (onFailure engine.FailurePolicy, problem string) {
	switch value {
	case failFail:
		return engine.Fail, ""
	case failIgnore:
		return engine.Ignore, ""
	}
	return engine.Fail, fmt.Sprintf("%s: it must be %q (a request that the policy cannot be evaluated for fails) or %q (it goes on without the policy)",
		preview(value), failFail, failIgnore)
}

// convertKeys are the keys of the map in a convert file.
var convertKeys = []string{"resource", "from", "to", "toResource", "kind", "toKind", "when", "preserve"}

// evalConvert returns the conversion that a convert file describes, or nil with
// the mistakes noted.
func (p *parser) evalConvert(policy string, text *source.Text) (*convert.Spec, engine.When) {
	value, err := engine.EvalConstant(text)
	if err != nil {
		p.errs = append(p.errs, err)
		return nil, engine.WhenUnserved
	}
	m := &constantMap{text: text}
	var isMap bool
	if m.fields, isMap = value.(map[string]any); !isMap {
		p.errs = append(p.errs, text.Error(0, "the value is %s: it must be a map such as {'resource': 'poddisruptionbudgets', 'from': 'policy/v1beta1', 'to': 'policy/v1'}", preview(value)))
		return nil, engine.WhenUnserved
	}
	m.checkKeys(convertKeys)
	spec := &convert.Spec{Policy: policy, Pos: text.Start}
	spec.From = m.version("from")
	spec.To = m.version("to")
	spec.From.Resource = m.resource("resource", "")
	spec.To.Resource = m.resource("toResource", spec.From.Resource)
	spec.From.Kind = m.kind("kind", "")
	spec.To.Kind = m.kind("toKind", spec.From.Kind)
	if spec.To.Kind != "" && spec.From.Kind == "" {
		m.fail("toKind", "toKind is given without kind: name both, or kind alone when they are the same")
	}
	spec.Preserve = m.preserve()
	when := m.when()
	if len(m.errs) == 0 && !happens(spec, when) {
		m.fail("to", neverHappens)
	}
	p.errs = append(p.errs, m.errs...)
	if len(m.errs) > 0 {
		return nil, engine.WhenUnserved
	}
	return spec, when
}

// constantMap reads the entries of a constant map and notes what is wrong.
type constantMap struct {
	text   *source.Text
	fields map[string]any
	errs   source.Errors
}

// fail notes a mistake at key, or at the start of the map when it has no such key.
func (m *constantMap) fail(key, format string, args ...any) {
	offset := 0
	for _, quoted := range []string{"'" + key + "'", `"` + key + `"`} {
		if i := strings.Index(m.text.Code, quoted); i >= 0 {
			offset = i
			break
		}
	}
	m.errs = append(m.errs, m.text.Error(offset, format, args...))
}

func (m *constantMap) checkKeys(known []string) {
	for _, key := range slices.Sorted(maps.Keys(m.fields)) {
		if !slices.Contains(known, key) {
			m.fail(key, "unknown key %s%s", source.Quote(key), source.Suggest(key, known))
		}
	}
}

// required returns the string at key.
func (m *constantMap) required(key string) (value string, ok bool) {
	if _, ok := m.fields[key]; !ok {
		m.fail(key, "the map has no %s", source.Quote(key))
		return "", false
	}
	value = m.optional(key, "")
	return value, value != ""
}

// optional returns the string at key, or fallback when there is none.
func (m *constantMap) optional(key, fallback string) string {
	value, ok := m.fields[key]
	if !ok {
		return fallback
	}
	s, ok := value.(string)
	if !ok {
		m.fail(key, "%s is %s: it must be a string", key, preview(value))
		return fallback
	}
	if s == "" {
		m.fail(key, "%s is empty", key)
		return fallback
	}
	return s
}

// version returns the group and version that the string at key names.
func (m *constantMap) version(key string) convert.Version {
	s, ok := m.required(key)
	if !ok {
		return convert.Version{}
	}
	group, version, found := strings.Cut(s, "/")
	if !found {
		group, version = "", s
	}
	if problem := checkVersion(version); found && checkGroup(group) != "" || problem != "" {
		m.fail(key, "%s is %s: it must be a group and version such as 'policy/v1', or 'v1' for the core group", key, source.Quote(s))
	}
	return convert.Version{Group: group, Version: version}
}

// resource returns the resource name at key; an empty fallback makes it required.
func (m *constantMap) resource(key, fallback string) string {
	if _, ok := m.fields[key]; !ok && fallback != "" {
		return fallback
	}
	s, ok := m.required(key)
	if !ok {
		return fallback
	}
	if problem := checkResource(s); problem != "" {
		m.fail(key, "%s %s: %s", key, source.Quote(s), problem)
	}
	return s
}

// kind returns the kind at key, or fallback when there is none.
func (m *constantMap) kind(key, fallback string) string {
	if _, ok := m.fields[key]; !ok {
		return fallback
	}
	kind := m.optional(key, fallback)
	if problem := checkKind(kind); problem != "" {
		m.fail(key, "%s is %s: %s", key, source.Quote(kind), problem)
	}
	return kind
}

// preserve returns the fields that the old version cannot hold. What the paths
// mean, the engine checks.
func (m *constantMap) preserve() (fields []convert.Preserved) {
	value, given := m.fields["preserve"]
	list, isList := value.([]any)
	if given && !isList {
		m.fail("preserve", "preserve is %s: it must be a list of paths", preview(value))
	}
	for _, item := range list {
		path, isText := item.(string)
		if !isText {
			m.fail("preserve", "an item of preserve is %s: it must be a path", preview(item))
			continue
		}
		fields = append(fields, convert.Preserved{Path: path, Pos: m.text.Start})
	}
	return fields
}

func (m *constantMap) when() engine.When {
	when, problem := parseWhen(m.optional("when", whenUnserved))
	if problem != "" {
		m.fail("when", "%s", problem)
	}
	return when
}

// parseWhen returns what a user's when means.
func parseWhen(s string) (when engine.When, problem string) {
	switch s {
	case whenUnserved:
		return engine.WhenUnserved, ""
	case whenAlways:
		return engine.WhenAlways, ""
	}
	return engine.WhenUnserved, fmt.Sprintf("when is %s: it must be %q (only while no healthy server serves the version) or %q", source.Quote(s), whenUnserved, whenAlways)
}

// happens reports whether a conversion would ever take place. One from a version
// to itself, for the sake of its programs or rules, has to take place always.
func happens(spec *convert.Spec, when engine.When) bool {
	from, to := spec.From, spec.To
	return when == engine.WhenAlways || from.Group != to.Group || from.Version != to.Version || from.Resource != to.Resource
}

const neverHappens = "both versions are the same, so the conversion would never happen: name another one, or set when to always"

// preview shows a value, cut short.
func preview(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return source.Quote(value)
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	return fmt.Sprint(value)
}

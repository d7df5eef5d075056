package engine

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	labelop "k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// Target returns the target of the request r, which c converts, in the server's version:
// the path's group, version and resource, and the fields and labels that selectors name.
//
// The error is a [*SelectorError], or says that an element cannot stand in a path.
func (c *Conversion) Target(r *Request) (string, error) {
	var refused error
	target, err := r.WithVersion(c.To.Group, c.To.Version, c.To.Resource, func(path, operator, value string) string {
		if c.RenameTarget(path) && c.FieldPath(path) == path {
			refused = &SelectorError{Conversion: c, Field: path}
		}
		return c.fieldTerm(path, operator, value)
	})
	if err != nil {
		return "", fmt.Errorf("cannot ask for %s as %s %s: %w", r, c.To.APIVersion(), c.To.Resource, err)
	}
	if refused != nil {
		return "", refused
	}
	return c.withLabels(target)
}

// fieldTerm returns the terms for the server's objects that together select as one term
// of a field selector does of the client's. A field selector cannot say "one of", so that
// of two values on the server which the client sees as the same one the policy's counts.
func (c *Conversion) fieldTerm(path, operator, value string) string {
	server := c.FieldPath(path)
	plain := server + operator + value
	text, err := fields.UnescapeValue(value)
	if err != nil {
		return plain // the server says what is wrong with it
	}
	values, maps := c.FieldValues(path, text)
	if !maps {
		return plain
	}
	if operator == "!=" {
		terms := make([]string, len(values))
		for i, v := range values {
			terms[i] = server + "!=" + fields.EscapeValue(v)
		}
		return strings.Join(terms, ",") // none: nothing has such a value for the client
	}
	if len(values) == 0 {
		return server + "=" + value + "," + server + "!=" + value
	}
	return server + operator + fields.EscapeValue(values[0])
}

// withLabels returns target with its label selectors in the server's names and values.
//
// The server never selects an object that the client's selector would not, or a delete
// of "all but these" would delete these. It leaves one out that it should select only
// where an object on the server has a label under both names.
func (c *Conversion) withLabels(target string) (string, error) {
	path, query, found := strings.Cut(target, "?")
	if !found || !strings.Contains(query, "abelSelector") {
		return target, nil
	}
	parameters := strings.Split(query, "&")
	for i, parameter := range parameters {
		rawKey, rawValue, _ := strings.Cut(parameter, "=")
		key, err := url.QueryUnescape(rawKey)
		if err != nil || key != "labelSelector" {
			continue // what cannot be read the server refuses
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			continue
		}
		mapped, err := c.mapSelector(value)
		if err != nil {
			return "", err
		}
		if mapped != value {
			parameters[i] = rawKey + "=" + url.QueryEscape(mapped)
		}
	}
	return path + "?" + strings.Join(parameters, "&"), nil
}

// mapSelector returns a label selector as it is in the server's version: itself where
// no rule touches its labels, and when it is none.
func (c *Conversion) mapSelector(selector string) (string, error) {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return selector, nil //nolint:nilerr // the server says what is wrong with it
	}
	changed := false
	var terms []string
	for i := range requirements {
		r := &requirements[i]
		label, err := c.Label(r.Key())
		if err != nil {
			return "", c.unselectable(r.Key(), err)
		}
		if !label.Changed(r.Key()) {
			terms = append(terms, r.String())
			continue
		}
		changed = true
		mapped, err := mapRequirement(r, &label)
		if err != nil {
			return "", c.unselectable(r.Key(), err)
		}
		terms = append(terms, mapped...)
	}
	if !changed {
		return selector, nil
	}
	return strings.Join(terms, ","), nil
}

// mapRequirement returns the terms for the server's objects that together select
// as r does of the client's.
func mapRequirement(r *labels.Requirement, label *convert.Label) ([]string, error) {
	values := r.ValuesUnsorted()
	switch op := r.Operator(); op {
	case labelop.DoesNotExist:
		terms := []string{"!" + label.Key}
		if label.Instead != "" {
			terms = append(terms, "!"+label.Instead)
		}
		return terms, validLabels(label)
	case labelop.NotIn, labelop.NotEquals:
		terms := notInLabel(label.Key, possibleValues(label.Values(values)))
		if label.Instead != "" {
			terms = append(terms, notInLabel(label.Instead, possibleValues(label.InsteadValues(values)))...)
		}
		return terms, validLabels(label)
	case labelop.GreaterThan, labelop.LessThan:
		if label.Maps() {
			return nil, fmt.Errorf("changes its values, which then have another order")
		}
		mapped, err := labels.NewRequirement(label.Key, op, values)
		if err != nil {
			return nil, err
		}
		return withOther(label, mapped.String()), validLabels(label)
	case labelop.Exists:
		return withOther(label, label.Key), validLabels(label)
	}
	return withOther(label, inLabel(label.Key, possibleValues(label.Values(values)))), validLabels(label)
}

// possibleValues drops what a policy may say but no label can have as its value.
func possibleValues(values []string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return len(validation.IsValidLabelValue(v)) > 0 })
}

// withOther adds to term that the other label that must be there is.
func withOther(label *convert.Label, term string) []string {
	if label.With == "" {
		return []string{term}
	}
	return []string{term, label.With}
}

func inLabel(key string, values []string) string {
	switch len(values) {
	case 0:
		return key + ",!" + key // nothing has such a value for the client
	case 1:
		return key + "=" + values[0]
	}
	return key + " in (" + strings.Join(values, ",") + ")"
}

func notInLabel(key string, values []string) []string {
	switch len(values) {
	case 0:
		return nil // nothing has such a value for the client
	case 1:
		return []string{key + "!=" + values[0]}
	}
	return []string{key + " notin (" + strings.Join(values, ",") + ")"}
}

// validLabels checks that the policy's names and values can be labels at all.
func validLabels(label *convert.Label) error {
	for _, key := range []string{label.Key, label.With, label.Instead} {
		if key == "" {
			continue
		}
		if len(validation.IsQualifiedName(key)) > 0 {
			return fmt.Errorf("takes it for %s, which is no label's name", clipText(key))
		}
	}
	return nil
}

func (c *Conversion) unselectable(key string, why error) error {
	return &SelectorError{Conversion: c, Label: key, Err: why}
}

// SelectorError is a label or field that nobody can select by in the client's version:
// the answer is 400.
type SelectorError struct {
	Conversion *Conversion
	Label      string
	Field      string // "": it is a label
	Err        error  // what the policy does with the label; it begins with a verb
}

func (e *SelectorError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("field label not supported: %s: in %s there is no such field, the policy %s puts another one there; select in %s",
			clipText(e.Field), e.Conversion.From.APIVersion(), e.Conversion.Policy, e.Conversion.To.APIVersion())
	}
	return fmt.Sprintf("cannot select by the label %s in %s: the policy %s %v; select in %s",
		clipText(e.Label), e.Conversion.From.APIVersion(), e.Conversion.Policy, e.Err, e.Conversion.To.APIVersion())
}

// Unwrap returns what the policy does with the label.
func (e *SelectorError) Unwrap() error { return e.Err }

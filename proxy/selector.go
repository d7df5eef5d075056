package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// withLabels returns target with its label selectors in the server's names and values.
//
// The server never selects an object that the client's selector would not, or a delete
// of "all but these" would delete these. It leaves one out that it should select only
// where an object on the server has a label under both names.
func (x *exchange) withLabels(target string) (string, error) {
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
		mapped, err := x.mapSelector(value)
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
func (x *exchange) mapSelector(selector string) (string, error) {
	requirements, err := labels.ParseToRequirements(selector)
	if err != nil {
		return selector, nil //nolint:nilerr // the server says what is wrong with it
	}
	changed := false
	var terms []string
	for i := range requirements {
		r := &requirements[i]
		label, err := x.conv.Label(r.Key())
		if err != nil {
			return "", x.unselectable(r.Key(), err)
		}
		if !label.Changed(r.Key()) {
			terms = append(terms, r.String())
			continue
		}
		changed = true
		mapped, err := mapRequirement(r, &label)
		if err != nil {
			return "", x.unselectable(r.Key(), err)
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
	case selection.DoesNotExist:
		terms := []string{"!" + label.Key}
		if label.Instead != "" {
			terms = append(terms, "!"+label.Instead)
		}
		return terms, validKeys(label)
	case selection.NotIn, selection.NotEquals:
		terms := notIn(label.Key, possible(label.Values(values)))
		if label.Instead != "" {
			terms = append(terms, notIn(label.Instead, possible(label.InsteadValues(values)))...)
		}
		return terms, validKeys(label)
	case selection.GreaterThan, selection.LessThan:
		if label.Maps() {
			return nil, fmt.Errorf("changes its values, which then have another order")
		}
		mapped, err := labels.NewRequirement(label.Key, op, values)
		if err != nil {
			return nil, err
		}
		return with(label, mapped.String()), validKeys(label)
	case selection.Exists:
		return with(label, label.Key), validKeys(label)
	}
	return with(label, in(label.Key, possible(label.Values(values)))), validKeys(label)
}

// possible drops what a policy may say but no label can have as its value.
func possible(values []string) []string {
	return slices.DeleteFunc(values, func(v string) bool { return len(validation.IsValidLabelValue(v)) > 0 })
}

// with adds to term that the other label that must be there is.
func with(label *convert.Label, term string) []string {
	if label.With == "" {
		return []string{term}
	}
	return []string{term, label.With}
}

func in(key string, values []string) string {
	switch len(values) {
	case 0:
		return key + ",!" + key // nothing has such a value for the client
	case 1:
		return key + "=" + values[0]
	}
	return key + " in (" + strings.Join(values, ",") + ")"
}

func notIn(key string, values []string) []string {
	switch len(values) {
	case 0:
		return nil // nothing has such a value for the client
	case 1:
		return []string{key + "!=" + values[0]}
	}
	return []string{key + " notin (" + strings.Join(values, ",") + ")"}
}

// validKeys checks that the policy's names and values can be labels at all.
func validKeys(label *convert.Label) error {
	for _, key := range []string{label.Key, label.With, label.Instead} {
		if key == "" {
			continue
		}
		if len(validation.IsQualifiedName(key)) > 0 {
			return fmt.Errorf("takes it for %s, which is no label's name", clip(key))
		}
	}
	return nil
}

func (x *exchange) unselectable(key string, why error) error {
	return &statusError{
		code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest,
		message: fmt.Sprintf("cannot select by the label %s in %s: the policy %s %v; select in %s",
			clip(key), x.conv.From.APIVersion(), x.conv.Policy, why, x.conv.To.APIVersion()),
	}
}

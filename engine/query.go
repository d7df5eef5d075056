package engine

import (
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// maxQueryParameters is how many parameters Go's parser reads. It ignores all of
// a longer query, and its older versions none of it; so such a request is
// refused.
const maxQueryParameters = 10_000

// queryParameter cuts the first parameter off query. ok is false for one that
// Go's parser, and so kube-apiserver, ignores.
func queryParameter(query string) (key, value, rest string, ok bool) {
	pair, rest, _ := strings.Cut(query, "&")
	if pair == "" || strings.Contains(pair, ";") {
		return "", "", rest, false
	}
	rawKey, rawValue, _ := strings.Cut(pair, "=")
	key, err := url.QueryUnescape(rawKey)
	if err != nil {
		return "", "", rest, false
	}
	value, err = url.QueryUnescape(rawValue)
	return key, value, rest, err == nil
}

// findQuery returns the first value of key in query.
func findQuery(query, key string) (value string, found bool) {
	for query != "" {
		k, v, rest, ok := queryParameter(query)
		if ok && k == key {
			return v, true
		}
		query = rest
	}
	return "", false
}

// queryValue returns the first value of key in query, or "".
func queryValue(query, key string) string {
	value, _ := findQuery(query, key)
	return value
}

// decodeQuery returns all parameters of query that kube-apiserver does not
// ignore.
func decodeQuery(query string) map[string][]string {
	values, _ := url.ParseQuery(query) // what it could not read is left out
	return values
}

// listOptions are what the query says about the verb of a GET without a name.
type listOptions struct {
	watch bool
	name  string // that a field selector asks for
}

// parseListOptions reads the options as kube-apiserver does. If some option
// cannot be decoded, it reads watch a little differently and ignores the field
// selector; the request then fails later, but with this verb.
func parseListOptions(query string) listOptions {
	if query == "" {
		return listOptions{}
	}
	watch, hasWatch := findQuery(query, "watch")
	selector := queryValue(query, "fieldSelector")
	options := listOptions{watch: hasWatch && watch != "0" && !strings.EqualFold(watch, "false")}
	loose := hasWatch && watch != "0" && strings.ToLower(watch) != "false"

	if options.watch == loose && !strings.Contains(selector, "metadata.name") {
		return options // decodable or not, it makes no difference
	}
	fieldSelector, ok := decodeListOptions(query, selector)
	if !ok {
		return listOptions{watch: loose}
	}
	name, exact := fieldSelector.RequiresExactMatch("metadata.name")
	if exact && len(content.IsPathSegmentName(name)) == 0 {
		options.name = name
	}
	return options
}

// decodeListOptions reports whether all options of query can be decoded.
func decodeListOptions(query, fieldSelector string) (fields.Selector, bool) {
	for _, key := range [...]string{"timeoutSeconds", "limit"} {
		if value, found := findQuery(query, key); found {
			if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				return nil, false
			}
		}
	}
	if _, err := labels.Parse(queryValue(query, "labelSelector")); err != nil {
		return nil, false
	}
	selector, err := fields.ParseSelector(fieldSelector)
	return selector, err == nil
}

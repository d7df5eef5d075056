package proxy

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// parameter is one of a query; without a value it is only taken out.
type parameter struct{ key, value string }

// withQuery puts parameters into a request target, in place of those of the same
// names. The rest of the target stays byte for byte.
func withQuery(target string, parameters ...parameter) string {
	path, query, _ := strings.Cut(target, "?")
	var kept []string
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		raw, _, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(raw)
		if err == nil && slices.ContainsFunc(parameters, func(p parameter) bool { return p.key == key }) {
			continue
		}
		kept = append(kept, pair)
	}
	for _, p := range parameters {
		if p.value != "" {
			kept = append(kept, p.key+"="+url.QueryEscape(p.value))
		}
	}
	if len(kept) == 0 {
		return path
	}
	return path + "?" + strings.Join(kept, "&")
}

// asksBookmarks reports whether bookmarks are asked for on behalf of a client that
// did not, to know the position of a watch in which nothing happens. With the
// initial events they would make another watch of it (kube-apiserver then marks
// their end, and may refuse what it would not have refused), and as a table the
// first one would take the column definitions with it.
func (o *watchOptions) asksBookmarks(resumed bool) bool {
	return !o.bookmarks && !o.table && (resumed || !o.initial)
}

// first is the target of a watch as it goes to its first server.
func (o *watchOptions) first(target string) string {
	if !o.asksBookmarks(false) {
		return target
	}
	return withQuery(target, parameter{"allowWatchBookmarks", "true"})
}

// resumed is the target of a watch that goes on after the resourceVersion rv, for
// what is left of its time; left is 0 if there is no limit.
func (o *watchOptions) resumed(target string, rv uint64, left time.Duration) string {
	parameters := []parameter{{"resourceVersion", formatRV(rv)}, {"resourceVersionMatch", ""}, {"sendInitialEvents", ""}}
	if left > 0 {
		seconds := uint64((left + time.Second - 1) / time.Second)
		parameters = append(parameters, parameter{"timeoutSeconds", formatRV(seconds)})
	}
	if o.asksBookmarks(true) {
		parameters = append(parameters, parameter{"allowWatchBookmarks", "true"})
	}
	return withQuery(target, parameters...)
}

// listing is the target that lists what a watch sees, as it was at the
// resourceVersion rv, or as it is if rv is 0. At most limit objects come.
func listing(target string, rv uint64, limit int) string {
	parameters := []parameter{
		{"watch", ""},
		{"timeoutSeconds", ""},
		{"allowWatchBookmarks", ""},
		{"sendInitialEvents", ""},
		{"continue", ""},
		{"resourceVersion", ""},
		{"resourceVersionMatch", ""},
		{"limit", formatRV(uint64(limit))},
	}
	if rv != 0 {
		parameters[5].value, parameters[6].value = formatRV(rv), "Exact"
	}
	return withQuery(target, parameters...)
}

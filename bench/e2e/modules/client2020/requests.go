package main

import (
	"mime"
	"net/http"
	"sort"
	"strings"
	"sync"
)

// requests counts what informers ask for, and in which forms answers come.
type requests struct {
	mu    sync.Mutex
	lists map[string]int // by resource
	forms map[string]bool
}

// count wraps the transport of a client.
func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		query := req.URL.Query()
		if req.Method == http.MethodGet && query.Get("limit") != "" && query.Get("watch") == "" {
			r.lists[req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]]++
		}
		// Discovery comes in its own form, and a refusal in JSON.
		if resp.StatusCode < http.StatusBadRequest && strings.Contains(req.URL.Path, "/namespaces/") {
			form, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
			r.forms[form] = true
		}
		return resp, nil
	})
}

// of returns how often the informer of the resource has listed: once, unless it lost its
// watch.
func (r *requests) of(resource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists[resource]
}

func (r *requests) answers() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var forms []string
	for form := range r.forms {
		forms = append(forms, form)
	}
	sort.Strings(forms)
	return strings.Join(forms, ", ")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Package dryrun runs policies on manifests without any server: what would be
// sent to a kube-apiserver, and what a client would be answered.
//
// It decides nothing itself: engine does, with the same code that serves
// requests.
package dryrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// Options say what a run assumes.
type Options struct {
	// Method and Target are the request that each manifest is the body of. Empty:
	// a create of the manifest's own kind, POST /apis/G/V/namespaces/N/R.
	Method, Target string

	// Served says what the servers serve. Nil: everything but what policies
	// convert.
	Served func(group, version, resource string) bool

	// Cluster is what expressions see as cluster.
	Cluster engine.Cluster
}

// Result is what the policies do to one manifest.
type Result struct {
	Manifest

	// Request is what the manifest was the body of, in words.
	Request string

	// Policies are those that matched.
	Policies []string

	// Policy converts; "" when the object is not converted. From and To are the
	// versions.
	Policy   string
	From, To convert.Version

	// Sent is the object that a server would get, Back what a client would be
	// answered if the server stored just that. Nil without a conversion.
	Sent, Back []byte

	// Audited is what policies in audit mode would do.
	Audited []engine.Audit

	// Denied is the message the request is refused with, "" when it is not.
	Denied   string
	Warnings []string

	// Err is why the policies failed on this manifest.
	Err error
}

// Run runs set on m.
func Run(set *engine.Set, m Manifest, opts Options) Result {
	result := Result{Manifest: m}
	result.Err = result.run(set, opts)
	return result
}

func (r *Result) run(set *engine.Set, opts Options) error {
	method, target := opts.Method, opts.Target
	if target == "" {
		method, target = "POST", createTarget(set, &r.Manifest)
	}
	request, err := engine.ParseRequest(method, target)
	if err != nil {
		return err
	}
	if request.Verb != "create" && request.Verb != "update" {
		return fmt.Errorf("a manifest cannot be the body of a %s: only a create (POST) or an update (PUT) has a whole object", request.Verb)
	}
	request.ContentType = "application/json"
	r.Request = request.String()
	served := opts.Served
	if served == nil {
		served = unconverted(set)
	}
	decision, err := set.Decide(&engine.Input{
		Request: &request,
		Object:  func() ([]byte, error) { return r.JSON, nil },
		Cluster: opts.Cluster,
		Served:  served,
	})
	if err != nil {
		return err
	}
	r.Policies, r.Warnings, r.Audited = decision.Policies, decision.Warnings, decision.Audited
	if decision.Denied != nil {
		r.Denied = decision.Denied.Message
		return nil
	}
	if decision.Conversion == nil || !decision.ConvertBody {
		return nil
	}
	return r.convert(decision.Conversion, &request)
}

func (r *Result) convert(c *engine.Conversion, request *engine.Request) error {
	r.Policy, r.From, r.To = c.Policy, c.From, c.To
	vars := &convert.Vars{Request: request.Vars()}
	sent, err := c.Object(nil, r.JSON, convert.ToServer, vars)
	if err != nil {
		return err
	}
	r.Sent = sent
	back, err := c.Object(nil, sent, convert.ToClient, vars)
	if err != nil {
		return fmt.Errorf("on the way back: %w", err)
	}
	r.Back = back
	return nil
}

// Touched reports whether a policy says anything about the manifest.
func (r *Result) Touched() bool { return len(r.Policies) > 0 || len(r.Audited) > 0 }

// Lossless reports whether the client would be answered what it sent.
func (r *Result) Lossless() bool {
	var sent, back any
	return decode(r.JSON, &sent) == nil && decode(r.Back, &back) == nil && equal(sent, back)
}

func decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}

// equal compares decoded documents by their one canonical encoding.
func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// unconverted takes every resource for served that no policy converts from.
func unconverted(set *engine.Set) func(group, version, resource string) bool {
	from := map[schema.GroupVersionResource]bool{}
	for _, c := range set.Conversions() {
		from[schema.GroupVersionResource{Group: c.From.Group, Version: c.From.Version, Resource: c.From.Resource}] = true
	}
	return func(group, version, resource string) bool {
		return !from[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
	}
}

// createTarget is where m would be posted.
func createTarget(set *engine.Set, m *Manifest) string {
	gv, err := schema.ParseGroupVersion(m.APIVersion)
	if err != nil {
		// Left to ParseRequest, which finds no resource in it.
		return "/apis/" + url.PathEscape(m.APIVersion)
	}
	var path strings.Builder
	if gv.Group == "" {
		path.WriteString("/api/" + url.PathEscape(gv.Version))
	} else {
		path.WriteString("/apis/" + url.PathEscape(gv.Group) + "/" + url.PathEscape(gv.Version))
	}
	if m.Namespace != "" {
		path.WriteString("/namespaces/" + url.PathEscape(m.Namespace))
	}
	path.WriteString("/" + url.PathEscape(resourceOf(set, gv, m.Kind)))
	return path.String()
}

// resourceOf finds the resource of a kind: the one a policy names with it, else
// the plural by the rules of English that kubectl knows.
func resourceOf(set *engine.Set, gv schema.GroupVersion, kind string) string {
	for _, c := range set.Conversions() {
		if c.From.Group == gv.Group && c.From.Version == gv.Version && c.From.Kind == kind {
			return c.From.Resource
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
	return plural.Resource
}

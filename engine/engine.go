// Package engine decides what happens to one request: it parses the request in
// Kubernetes' terms, runs the policies on it, and says whether it is denied,
// what the client is warned of, which conversion it takes and how well each
// upstream suits it.
//
// Compile turns policies into a [Set] and reports every mistake with its place
// in the file. A Set never changes and may be used by any number of goroutines.
//
// The package does no I/O, starts no goroutine and knows no connection: it reads
// no policy file (package policies does), converts no body itself (package
// convert does) and chooses no upstream (it only scores them). The proxy, the
// test command and the benchmarks share it as it is.
//
// # Expressions
//
// The CEL expressions of a policy see these variables:
//
//	request.method          string  as sent: "GET"
//	request.path            string  decoded, without the query
//	request.verb            string  "get", "list", "watch", "create", "update",
//	                                "patch", "delete", "deletecollection"; for a
//	                                path that is no resource the method in lower case
//	request.group           string  "" is the core group
//	request.version         string  "v1"
//	request.resource        string  "pods"; "" for a path that is no resource
//	request.subresource     string  "status"
//	request.namespace       string
//	request.name            string
//	request.query           map(string, list(string))  decoded
//	request.userAgent       string
//	request.contentType     string
//	request.fieldManager    string
//	request.dryRun          bool    dryRun=All is in the query
//	request.caller          string  opaque, the same for all requests of one client;
//	                                "" for one that shows no credential
//	user.name, user.uid     string  an evaluation error unless the user is known
//	user.groups             list(string)
//	user.extra              map(string, list(string))
//	object                  dyn     the body as sent; null without one
//	cluster.mixed           bool    the servers are of more than one version
//	cluster.minVersion      string  "1.31.14", for semver(); "" when none is known
//	cluster.maxVersion      string
//
// and in a route, which is evaluated once per upstream,
//
//	upstream.name           string
//	upstream.version        string  "1.32.13"
//	upstream.version.major, upstream.version.minor, upstream.version.patch  int
//	upstream.emulation      string  "1.31": the emulated version where the server
//	                                reports one, else its version
//	upstream.emulation.major, upstream.emulation.minor  int
//	upstream.healthy        bool
//	upstream.inflight       int     requests that it is answering now
//	upstream.latency        duration
//	upstream.serves(groupVersion, resource)  bool  upstream.serves('apps/v1', 'deployments')
//
// request, user and cluster are not values of their own: an expression names
// their fields.
//
// The functions are CEL's own, the strings, lists, sets, optional and
// two-variable-comprehension extensions, and Kubernetes' (quantity, url, ip,
// cidr, semver, format, regular expressions), as in a
// ValidatingAdmissionPolicy; and share(string), a double of [0,1) that is the same
// everywhere and always, for the first part of all clients or objects. Numbers of different types compare. What could take
// very long, or make very much of little (replace, join, indexOf, distinct and the
// functions of sets on long texts and lists), is an error instead.
//
// A number in the body is an int when it is integral and fits into 64 bits, else
// a double. A missing key is an error; write object.?spec.?replicas.orValue(1) or
// has(object.spec) to allow for it. A request without a body (GET, most DELETEs)
// has a null object; an expression that cannot be evaluated for that reason alone
// says nothing: its match does not hold, it denies nothing, warns of nothing and
// routes nowhere in particular. Any other error fails the request.
package engine

import (
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Where a policy comes from.
const (
	OriginFile    = "file"    // a policy file of the user's
	OriginObject  = "object"  // an object in the cluster
	OriginLibrary = "library" // shipped with MVP; the user's policies win over it
)

// When says when a conversion takes place.
type When int

const (
	// WhenUnserved converts only while no healthy upstream serves the version
	// that the client asks for.
	WhenUnserved When = iota

	// WhenAlways converts also what an upstream could answer itself.
	WhenAlways
)

func (w When) String() string {
	if w == WhenAlways {
		return "always"
	}
	return "unserved"
}

// FailurePolicy says what becomes of a request when a policy cannot be evaluated
// for it.
type FailurePolicy int

const (
	// Fail fails the request.
	Fail FailurePolicy = iota

	// Ignore passes the policy over, as if its match did not hold: see
	// [Decision.Ignored].
	Ignore
)

// Policy is one policy as written, before Compile.
type Policy struct {
	// Name orders the policies: they apply in the string order of their names, so
	// "10-a" is before "9-b"; those of objects come after those of files, and the
	// shipped ones after all of the user's. Only the
	// rules of one list in a document, "a/apiMigrationRules[2]", are in the list's
	// own order.
	Name string

	// Origin is one of the Origin constants.
	Origin string

	// Pos is where the policy stands, for mistakes that are not in one of its
	// texts.
	Pos source.Pos

	// Match says which requests, a bool. Nil: those for the version that Convert
	// converts from, or those that Prefer names, or all.
	Match *source.Text

	// Route says how well an upstream suits, a bool or a number; nil: no say.
	// See [Decision.Score].
	Route *source.Text

	// Deny is the message to refuse a request with, a string; nil or "": it is
	// allowed.
	Deny *source.Text

	// Warn is a warning to the client, a string; nil or "": none.
	Warn *source.Text

	// Convert is how the bodies change between two versions; nil: not at all.
	Convert *convert.Spec

	// When says when Convert takes place.
	When When

	// Prefer is the server version that requests should go to; nil: any.
	Prefer *Preference

	// Audit evaluates the policy and changes nothing: see [Decision.Audited].
	Audit bool

	// OnFailure says what becomes of a request that the policy fails on.
	OnFailure FailurePolicy

	// Warnings are what is likely not meant in how the policy is written; see
	// [Set.Warnings].
	Warnings source.Errors
}

// Preference sends requests for a resource to servers of a version, as long as
// one is there.
type Preference struct {
	// Group and Resource name the resource; the core group is "".
	Group, Resource string

	// ClientVersion is the API version that the client speaks; "" is any.
	ClientVersion string

	// Server is the version of the server to prefer.
	Server VersionPattern

	// Pos is where the preference stands.
	Pos source.Pos
}

func (p *Preference) matches(r *Request) bool {
	return r.IsResource && r.Group == p.Group && r.Resource == p.Resource &&
		(p.ClientVersion == "" || r.Version == p.ClientVersion)
}

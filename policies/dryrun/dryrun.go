// Package dryrun runs policies on requests without any server: what a
// kube-apiserver would be sent, and what a client would be answered.
//
// It decides nothing itself: engine and engine/convert do, with the code that
// serves requests. What only a running proxy does is not here: authentication, most of
// field validation, reads of the object that a server has.
package dryrun

import (
	"errors"
	"net/http"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
)

// Request is a request as a client would send it.
type Request struct {
	// Method and Target are those of the request line. Required.
	Method, Target string

	// Header are its header lines. Policies see User-Agent and Content-Type; without
	// a Content-Type the body is JSON.
	Header http.Header

	// Body is its body; nil for none. Only a create, an update and a patch may have
	// one.
	Body []byte

	// User is who sends it; nil: not known, so that an expression that names user
	// fails.
	User *engine.User
}

// Options say what a run assumes and what it finds out. The zero Options assume one
// server, which serves everything but what policies convert.
type Options struct {
	// Servers are the kube-apiservers; see Server. Empty: one of no known version.
	Servers []Server

	// Response is the body with which a server would answer: an object, a list, a
	// Status, the events of a watch. Nil: none.
	Response []byte

	// Trace fills in Result.Changes, Explain Result.Explained, Evaluate
	// Result.Evaluated.
	Trace, Explain, Evaluate bool

	// Schema fills in Result.Violations: it returns the schema of a version, nil where
	// none is known. Nil: nothing is checked.
	Schema func(convert.Version) *kindschema.Schema

	// Acted is told which parts of conversions take part in Sent and Answer; nil for
	// nobody.
	Acted convert.Acted
}

// Run runs the policies of set on request, the same way as a proxy does.
func Run(set *engine.Set, request Request, opts Options) *Result {
	r := run{set: set, in: request, opts: opts, servers: serversOf(set, opts.Servers)}
	if err := r.exchange(); err != nil {
		r.fail(err)
	}
	r.audit()
	return &r.Result
}

// run is one request on its way.
type run struct {
	Result
	set      *engine.Set
	in       Request
	opts     Options
	servers  []Server
	decision *engine.Decision
	passed   engine.PassedOver
	sent     bool // the request has gone to a server
}

// exchange takes the request through its steps, as a proxy does.
func (r *run) exchange() error {
	request, err := engine.ParseRequest(r.in.Method, r.in.Target)
	if err != nil {
		return err
	}
	request.UserAgent = r.in.Header.Get("User-Agent")
	request.ContentType = r.in.Header.Get("Content-Type")
	r.Request = request
	if len(r.in.Body) > 0 && !hasBody(&request) {
		return &bodyError{verb: request.Verb}
	}
	if r.Body, err = toJSON(&request, r.in.Body); err != nil {
		return err
	}
	if r.Response, err = responseJSON(&request, r.opts.Response); err != nil {
		return err
	}
	for {
		err := r.attempt()
		if err == nil || !r.passOver(err) {
			return err
		}
	}
}

// attempt is the way of the request from its head to its answer, without the
// policies that were passed over: at most as often as there are policies.
func (r *run) attempt() error {
	r.Changes, r.Violations, r.Upstreams, r.NeedsObject = nil, nil, nil, false
	if err := r.decide(); err != nil || r.Denied != nil {
		return err
	}
	if err := r.choose(); err != nil {
		return err
	}
	if r.Conversion != nil {
		return r.convert()
	}
	r.Outcome, r.Target, r.Sent, r.Answer = Passed, r.in.Target, r.Body, r.Response
	return nil
}

// decide asks the policies.
func (r *run) decide() error {
	input := engine.Input{
		Request: &r.Request,
		User:    func() (*engine.User, error) { return r.in.User, nil },
		Object:  func() ([]byte, error) { return r.Body, nil },
		Without: r.passed.Policies(),
		Cluster: clusterOf(r.servers),
		Served:  func(group, version, resource string) bool { return served(r.servers, group, version, resource) },
		Known:   func(group, version, resource string) bool { return known(r.servers, group, version, resource) },
	}
	if r.opts.Explain {
		r.Explained = r.set.Explain(&input)
	}
	if r.opts.Evaluate {
		r.Evaluated = r.set.Evaluated(&input, r.views())
	}
	decision, err := r.set.Decide(&input)
	if err != nil {
		return err
	}
	r.decision = decision
	r.Policies, r.Warnings, r.Audited = decision.Policies, decision.Warnings, decision.Audited
	r.Conversion, r.Ignored = decision.Conversion, slices.Concat(decision.Ignored, r.passed.Ignored())
	if decision.Denied != nil {
		r.Denied, r.Outcome, r.Code, r.Conversion = decision.Denied, Denied, http.StatusForbidden, nil
		return nil
	}
	return r.servedWithout()
}

// fail notes why the request is not answered by a server, and as what.
func (r *run) fail(err error) {
	r.Err, r.Code = err, code(err)
	r.Outcome = Refused
	if r.Code == http.StatusInternalServerError {
		r.Outcome = Failed
	}
	r.Sent, r.Target, r.Back, r.Answer = nil, "", nil, nil // nothing half converted
}

// code is the HTTP status that err is answered with.
func code(err error) int {
	var target *engine.BadTargetError
	var body *engine.BodyError
	var selector *engine.SelectorError
	var mine interface{ code() int }
	var conversion *convert.Error
	switch {
	case errors.As(err, &mine):
		return mine.code()
	case errors.As(err, &target), errors.As(err, &body), errors.As(err, &selector):
		return http.StatusBadRequest
	case errors.As(err, &conversion) && conversion.Invalid && conversion.Path != "":
		return http.StatusUnprocessableEntity
	case errors.As(err, &conversion) && conversion.Invalid:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

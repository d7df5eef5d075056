package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// What the audit of one request may cost. It happens after the answer has been
// written and never changes a byte of it; what is above a limit is not looked at.
const (
	// auditBytes is how much of the request's body, and of the answer, is looked at.
	auditBytes = smallBody

	// auditItems is how many items of a list are, from its beginning.
	auditItems = 10

	// auditTime is after how long no further object is looked at.
	auditTime = 100 * time.Millisecond

	// auditPaths is how many differing paths are told of one request, and kept of one
	// policy.
	auditPaths = 20

	// auditsAtOnce is how many requests are looked at at the same time; more are
	// counted as unexamined.
	auditsAtOnce = 2
)

// Effects that only the proxy can tell, beside those of engine.Audit.
const (
	effectMove       = "move"       // another server would answer
	effectChange     = "change"     // a body would be another one
	effectUnexamined = "unexamined" // a body that may have changed was not looked at
	effectError      = "error"
)

// auditEffects are all that a policy in audit mode may have, as metrics name them.
var auditEffects = [...]string{"deny", "warn", "route", "prefer", "convert", effectMove, effectChange, effectUnexamined, effectError}

// audit is what policies in audit mode would do to a request beside what the
// decision tells.
type audit struct {
	notes  []auditNote
	paths  int            // of all notes
	answer *auditedAnswer // nil: it is not looked at
}

// auditNote is one of them.
type auditNote struct {
	policy string
	index  int
	effect string
	server string   // that would answer
	paths  []string // that would change: "request spec.a", "answer spec.b"
}

// audits reports whether a policy in audit mode would convert the bodies.
func (x *exchange) audits() bool {
	return x.decision != nil && slices.ContainsFunc(x.decision.Audited, func(a engine.Audit) bool { return a.Conversion != nil })
}

// hearRoutes notes which policies in audit mode would send the request to another
// server than the one that was chosen.
func (x *exchange) hearRoutes(servers []*upstream.State) {
	x.audit.notes = slices.DeleteFunc(x.audit.notes, func(n auditNote) bool { return n.server != "" || n.effect == effectError }) // of an earlier attempt
	heard := x.decision.Heard()
	if len(heard) == 0 {
		return
	}
	views := routeViews(servers)
	for i, index := range heard {
		note := auditNote{policy: x.auditedName(index), index: index, effect: effectMove}
		scores, err := x.decision.ScoresWith(i, views)
		ranked := x.rank(nil, servers, scores)
		switch {
		case err != nil:
			note.effect = effectError
		case len(ranked) == 0:
			note.server = "none"
		default:
			note.server = x.pick(ranked).Name
		}
		if note.server != x.server.Name {
			x.audit.notes = append(x.audit.notes, note)
		}
	}
}

// auditedName is the name of a policy in audit mode that has something to say.
func (x *exchange) auditedName(index int) string {
	for _, a := range x.decision.Audited {
		if a.Index == index {
			return a.Policy
		}
	}
	return ""
}

// auditedAnswer keeps the beginning of an answer's body as it streams by.
type auditedAnswer struct {
	io.ReadCloser
	kept  []byte
	limit int
	more  bool // there was more than kept
	ended bool // it has been read to its end
}

func (a *auditedAnswer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.keep(p[:n])
	a.ended = a.ended || errors.Is(err, io.EOF)
	return n, err
}

func (a *auditedAnswer) keep(p []byte) {
	keep := min(len(p), a.limit-len(a.kept))
	a.kept = append(a.kept, p[:keep]...)
	a.more = a.more || keep < len(p)
}

// whole reports whether kept is all of the answer.
func (a *auditedAnswer) whole() bool { return a.ended && !a.more }

// sampleAnswer has the beginning of the answer kept where a policy in audit mode
// would convert it: plain JSON that nobody else converts.
func (x *exchange) sampleAnswer() {
	x.audit.answer = nil
	if !x.audits() || x.endless() || x.in.Method == http.MethodHead || x.answer.Status < 200 || x.answer.Status > 299 ||
		!isJSON(x.answer.Header.Get("Content-Type")) || x.answer.Header.Has("Content-Encoding") {
		return
	}
	limit := int64(auditBytes)
	if n := x.answer.ContentLength; n >= 0 {
		limit = min(limit, n)
	}
	if x.body.reserve(limit) != nil {
		return // the memory is better used for requests
	}
	a := &auditedAnswer{ReadCloser: x.answer.Body, limit: int(limit)}
	if x.held.buf != nil { // read already
		a.keep(x.held.buf[:x.held.n])
		a.ended = x.held.whole
	}
	x.audit.answer, x.answer.Body = a, a
}

// auditBodies finds out what policies in audit mode would have changed in the
// bodies. It is called when the answer has been written. Nothing that goes wrong
// here is anyone's but the audit's.
func (x *exchange) auditBodies() {
	if !x.audits() {
		return
	}
	for _, a := range x.decision.Audited {
		if a.Conversion != nil {
			x.auditConversion(a)
		}
	}
}

func (x *exchange) auditConversion(a engine.Audit) {
	note := auditNote{policy: a.Policy, index: a.Index, effect: effectUnexamined}
	defer func() {
		if p := recover(); p != nil {
			x.s.cfg.Log.Error("an audit panicked", "panic", p, "stack", string(debug.Stack()))
			note.effect = effectError
		}
		if note.effect != "" {
			x.audit.notes = append(x.audit.notes, note)
		}
	}()
	if !x.s.audits.enter() {
		return
	}
	defer x.s.audits.leave()
	c := bodyAudit{x: x, conv: a.Conversion, deadline: time.Now().Add(auditTime), room: auditPaths - x.audit.paths}
	c.request()
	c.answer()
	note.paths = c.paths
	x.audit.paths += len(c.paths)
	switch {
	case c.failed:
		note.effect = effectError
	case len(c.paths) > 0:
		note.effect = effectChange
	case !c.left:
		note.effect = ""
	}
}

// auditSlots bounds how many audits there are at once.
type auditSlots chan struct{}

func (s auditSlots) enter() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s auditSlots) leave() { <-s }

// bodyAudit is of the bodies of one request, for one policy.
type bodyAudit struct {
	x        *exchange
	conv     *engine.Conversion
	deadline time.Time
	room     int // for more paths
	paths    []string
	failed   bool // an object could not be converted
	left     bool // something was not looked at
}

// request is what would become of the request's body.
func (c *bodyAudit) request() {
	x := c.x
	switch x.req.Verb {
	case "create", "update", "patch":
	default:
		return
	}
	if !x.body.isHeld || len(x.body.held) > auditBytes {
		c.left = true
		return
	}
	doc, err := x.toJSON(x.body.held)
	if err != nil || len(doc) == 0 {
		c.left = c.left || err != nil
		return
	}
	converted, err := c.sent(doc)
	if errors.Is(err, convert.ErrNeedsObject) {
		c.left = true // what would be sent depends on what the server has
		return
	}
	c.compare("request", doc, converted, err)
}

// sent is the body as it would go to the server.
func (c *bodyAudit) sent(doc []byte) ([]byte, error) {
	vars := c.vars()
	if c.x.req.Verb != "patch" {
		return c.conv.Object(nil, doc, convert.ToServer, vars)
	}
	switch patchType(c.x.req.ContentType) {
	case mergePatch:
		return c.conv.MergePatch(nil, doc, vars)
	case strategicMergePatch:
		return c.conv.StrategicMergePatch(nil, doc, vars)
	case jsonPatch:
		return c.conv.JSONPatch(nil, doc, vars)
	}
	return c.conv.Apply(nil, doc, vars)
}

// vars is what jq programs see as $request.
func (c *bodyAudit) vars() *convert.Vars {
	if !c.conv.UsesJQ() {
		return nil
	}
	return &convert.Vars{Request: c.x.req.Vars()}
}

// answer is what would become of the answer: of an object, or of the first items of
// a list.
func (c *bodyAudit) answer() {
	a := c.x.audit.answer
	switch {
	case a == nil, c.x.conv != nil:
		c.left = true
	case c.x.req.Verb == "list":
		items, more := firstItems(a.kept, auditItems)
		c.left = c.left || more
		for _, item := range items {
			c.object(item)
		}
	case !a.whole():
		c.left = true
	default:
		c.object(a.kept)
	}
}

// object is what would become of one object of the answer. The server was not asked
// for it in its version, so that of a conversion between versions, what is told is
// what would be lost on the way there and back.
func (c *bodyAudit) object(object []byte) {
	if time.Now().After(c.deadline) {
		c.left = true
		return
	}
	vars := c.vars()
	converted, err := object, error(nil)
	if c.conv.From.APIVersion() != c.conv.To.APIVersion() {
		converted, err = c.conv.Object(nil, object, convert.ToServer, vars)
	}
	if err == nil {
		converted, err = c.conv.Object(nil, converted, convert.ToClient, vars)
	}
	c.compare("answer", object, converted, err)
}

// compare notes where a body differs from what it would be.
func (c *bodyAudit) compare(which string, before, after []byte, err error) {
	if err != nil {
		c.failed = true
		return
	}
	paths, err := convert.Differences(before, after, auditPaths)
	if err != nil {
		c.left = true
		return
	}
	for _, path := range paths {
		if path == "apiVersion" || path == "kind" { // which the policy says by itself
			continue
		}
		if told := which + " " + path; len(c.paths) < c.room && !slices.Contains(c.paths, told) {
			c.paths = append(c.paths, told)
		}
	}
}

// firstItems returns the first items of a list whose beginning is known, at most
// limit of them; more says that there may be others.
func firstItems(beginning []byte, limit int) (items []json.RawMessage, more bool) {
	decoder := json.NewDecoder(bytes.NewReader(beginning))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, true
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, true
		}
		if key != "items" {
			if err := decoder.Decode(new(json.RawMessage)); err != nil {
				return nil, true
			}
			continue
		}
		if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
			return nil, err != nil
		}
		for decoder.More() {
			var item json.RawMessage
			if len(items) == limit || decoder.Decode(&item) != nil {
				return items, true
			}
			items = append(items, item)
		}
		_, err = decoder.Token()
		return items, err != nil
	}
	return nil, false
}

// effects says what policies in audit mode would have done, "10-freeze: deny",
// "20-b: move to b", "30-c: change request spec.a". The texts of what they would
// have said may show values of the object.
func (x *exchange) effects() []string {
	list := make([]string, 0, len(x.decision.Audited)+len(x.audit.notes))
	for _, a := range x.decision.Audited {
		list = append(list, a.Policy+": "+a.Effect)
	}
	for _, n := range x.audit.notes {
		text := n.policy + ": " + n.effect
		switch n.effect {
		case effectMove:
			text += " to " + n.server
		case effectChange:
			text += " " + strings.Join(n.paths, ", ")
		}
		list = append(list, text)
	}
	return list
}

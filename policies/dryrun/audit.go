package dryrun

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// Limits of what is told of policies in audit mode, those of a proxy.
const (
	auditPaths = 20 // differing paths of one request
	auditItems = 10 // of a list that are looked at
)

// audit fills in Effects: what the policies in audit mode would do, as the access log of
// a proxy says it, but for the servers that they would choose.
func (r *run) audit() {
	for _, a := range r.Audited {
		r.Effects = append(r.Effects, a.Policy+": "+a.Effect)
	}
	room := auditPaths
	for _, a := range r.Audited {
		if a.Conversion == nil {
			continue
		}
		b := bodyAudit{run: r, conversion: a.Conversion, room: room}
		b.request()
		b.answer()
		room -= len(b.paths)
		switch {
		case b.failed:
			r.Effects = append(r.Effects, a.Policy+": error")
		case len(b.paths) > 0:
			r.Effects = append(r.Effects, a.Policy+": change "+strings.Join(b.paths, ", "))
		case b.left:
			r.Effects = append(r.Effects, a.Policy+": unexamined")
		}
	}
}

// bodyAudit is what one policy would change in the bodies of a request.
type bodyAudit struct {
	*run
	conversion *engine.Conversion
	room       int // for more paths
	paths      []string
	failed     bool // an object could not be converted
	left       bool // something depends on what a server has
}

func (b *bodyAudit) request() {
	if b.Body == nil {
		return
	}
	sent, err := b.run.request(b.conversion, b.Body)
	if errors.Is(err, convert.ErrNeedsObject) {
		b.left = true
		return
	}
	b.compare("request", b.Body, sent, err)
}

// answer looks at what nobody else converts: an object, or the first items of a list.
func (b *bodyAudit) answer() {
	switch {
	case b.Response == nil || b.Conversion != nil || b.Request.Watch || refuses(b.Response):
	case b.Request.Verb == "list":
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(b.Response, &list) != nil {
			return
		}
		for _, item := range list.Items[:min(len(list.Items), auditItems)] {
			b.object(item)
		}
	default:
		b.object(b.Response)
	}
}

// object is what would become of one object of the answer. The server was not asked for
// it in its version: what is told is what would be lost on the way there and back.
func (b *bodyAudit) object(object []byte) {
	converted, err := object, error(nil)
	if b.conversion.From.APIVersion() != b.conversion.To.APIVersion() {
		converted, err = b.conversion.Object(nil, object, convert.ToServer, b.vars())
	}
	if err == nil {
		converted, err = b.conversion.Object(nil, converted, convert.ToClient, b.vars())
	}
	b.compare("answer", object, converted, err)
}

// compare notes where a body differs from what it would be.
func (b *bodyAudit) compare(which string, before, after []byte, err error) {
	var paths []string
	if err == nil {
		paths, err = convert.Differences(before, after, auditPaths)
	}
	if err != nil {
		b.failed = true
		return
	}
	for _, path := range paths {
		told := which + " " + path
		if path != "apiVersion" && path != "kind" && len(b.paths) < b.room && !slices.Contains(b.paths, told) {
			b.paths = append(b.paths, told)
		}
	}
}

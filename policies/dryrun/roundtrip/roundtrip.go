// Package roundtrip takes objects through a conversion and back, and finds the smallest
// one that does not come back as it was.
//
// It makes no objects itself, and asks no policy whether it would convert them: their
// matches are not looked at.
package roundtrip

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

// Side is the version that an object is of.
type Side string

// The sides.
const (
	// Client is the version that is converted from: the object goes to the server and
	// is answered to the client.
	Client Side = "client"

	// Server is the version that is converted to: a client reads the object and writes
	// it back as it is.
	Server Side = "server"
)

// Failure is an object that did not come back as it was.
type Failure struct {
	Side Side

	// Object is the object, Other what it was in the other version, Back what came
	// back; nil where the conversion failed before.
	Object, Other, Back []byte

	// Changes are the differences that nothing in the policy tells of.
	Changes []dryrun.PathChange

	// Err is why a policy failed; nil when the object came back as another one.
	Err error
}

// Refused is an object that the policy refuses, and tells the client so: nothing is
// lost.
type Refused struct{ Err error }

func (e *Refused) Error() string { return e.Err.Error() }
func (e *Refused) Unwrap() error { return e.Err }

// Trip is the way of objects through one conversion. It may be used by any number of
// goroutines.
type Trip struct {
	c    *engine.Conversion
	vars *convert.Vars
	told []toldPath

	// defaults are what is written into an object that has nothing in it, by the side
	// and the path.
	defaults map[Side]map[string]string
}

// New is the way through c. With a conversion that knows the schemas of both versions,
// values have the types that they have in a proxy.
func New(c *engine.Conversion) *Trip {
	target := "/apis/" + c.From.APIVersion() + "/" + c.From.Resource
	if c.From.Group == "" {
		target = "/api/" + c.From.APIVersion() + "/" + c.From.Resource
	}
	t := &Trip{c: c, vars: &convert.Vars{}, told: toldPaths(c)}
	if request, err := engine.ParseRequest(http.MethodPost, target); err == nil {
		t.vars.Request = request.Vars()
	}
	t.findDefaults()
	return t
}

// Conversion is the one that objects go through.
func (t *Trip) Conversion() *engine.Conversion { return t.c }

// Version is the one that objects of the side are of.
func (t *Trip) Version(side Side) convert.Version {
	if side == Server {
		return t.c.To
	}
	return t.c.From
}

// Check takes object, of the side's version, there and back. told are the differences
// that the policy says that it makes: what a rule removes, or what one writes where
// there was nothing. The error is a [*Refused], for an object of which nothing can be
// said.
func (t *Trip) Check(side Side, object []byte) (failure *Failure, told []dryrun.PathChange, err error) {
	f := &Failure{Side: side, Object: object}
	there, back := convert.ToServer, convert.ToClient
	if side == Server {
		there, back = back, there
	}
	if f.Other, f.Err = t.c.Object(nil, object, there, t.vars); f.Err != nil {
		return t.failed(f)
	}
	if f.Back, f.Err = t.c.Object(nil, f.Other, back, t.vars); f.Err != nil {
		return t.failed(f)
	}
	if side == Server && t.c.Preserves() {
		if f.Back, f.Err = t.c.Keep(f.Back, object, t.vars); f.Err != nil {
			return t.failed(f)
		}
	}
	if dryrun.Equal(object, f.Back) {
		return nil, nil, nil
	}
	for _, change := range dryrun.Diff(object, f.Back) {
		if t.tells(side, change) {
			told = append(told, change)
		} else {
			f.Changes = append(f.Changes, change)
		}
	}
	if len(f.Changes) == 0 {
		return nil, told, nil
	}
	return f, told, nil
}

// failed sorts what a policy refuses from what it fails on. A server's object cannot be
// at fault.
func (t *Trip) failed(f *Failure) (*Failure, []dryrun.PathChange, error) {
	var mistake *convert.Error
	if errors.As(f.Err, &mistake) && mistake.Invalid && f.Other == nil && f.Side == Client {
		return nil, nil, &Refused{f.Err}
	}
	return f, nil, nil
}

func (f *Failure) String() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	texts := make([]string, len(f.Changes))
	for i, change := range f.Changes {
		texts[i] = change.String()
	}
	return fmt.Sprintf("it comes back as another object: %s", strings.Join(texts, "; "))
}

package engine

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The variables of a request, in the order of requestVariables.
const (
	varMethod = iota
	varPath
	varVerb
	varGroup
	varVersion
	varResource
	varSubresource
	varNamespace
	varName
	varUserAgent
	varContentType
	varFieldManager
	numTexts // the variables before are texts of the request
	varQuery = iota - 1
	varDryRun
	varCaller
	varUserName
	varUserUID
	varUserGroups
	varUserExtra
	varObject
	varClusterMixed
	varClusterMin
	varClusterMax
	numVars
)

// vars are the variables of one request while expressions run on it. A variable
// is made when an expression first reads it, and kept.
//
// It implements cel.Activation with qualified names, so that reading
// request.verb is one look-up and no allocation.
type vars struct {
	in    *Input
	value [numVars]ref.Val

	user    *User // who asks, once userErr or this is set
	userErr error // why user cannot be read

	objectRead bool       // once, into value or objectErr
	objectErr  error      // why object cannot be read
	noObject   bool       // object was read and there is none
	standIn    objectForm // what object is then
}

// objectForm is what the variable object is for a request without a body. The
// forms other than null are there to find out why an expression failed.
type objectForm int

const (
	objectNull  objectForm = iota
	objectError            // an error to read
	objectOther            // something that is not null and has nothing in it
)

var varsPool = sync.Pool{New: func() any { return new(vars) }}

func newVars(in *Input) *vars {
	v := varsPool.Get().(*vars)
	v.in = in
	return v
}

// release gives v back. Nothing that came out of an evaluation may refer to it.
func (v *vars) release() {
	*v = vars{}
	varsPool.Put(v)
}

// Parent implements cel.Activation.
func (v *vars) Parent() cel.Activation { return nil }

// ResolveName implements cel.Activation. An error is a new one each time, since
// CEL notes in it where it was met.
func (v *vars) ResolveName(name string) (any, bool) {
	i := variableIndex(name)
	switch {
	case i < 0:
		return nil, false
	case i == varObject:
		return v.object(), true
	case v.value[i] != nil:
		return v.value[i], true
	case varUserName <= i && i <= varUserExtra && v.findUser() != nil:
		return types.WrapErr(v.userErr), true
	}
	v.value[i] = v.read(i)
	return v.value[i], true
}

// object returns the body, or what stands in for it.
func (v *vars) object() ref.Val {
	if !v.objectRead {
		v.objectRead = true
		v.value[varObject], v.objectErr = v.readObject()
	}
	switch {
	case v.objectErr != nil:
		return types.WrapErr(v.objectErr)
	case v.noObject && v.standIn == objectError:
		return types.WrapErr(errNoBody)
	case v.noObject && v.standIn == objectOther:
		return types.NullType
	}
	return v.value[varObject]
}

// variableIndex returns the index of a variable, or -1. The compiler makes a
// binary search of it, faster than a map.
func variableIndex(name string) int {
	switch name {
	case "request.method":
		return varMethod
	case "request.path":
		return varPath
	case "request.verb":
		return varVerb
	case "request.group":
		return varGroup
	case "request.version":
		return varVersion
	case "request.resource":
		return varResource
	case "request.subresource":
		return varSubresource
	case "request.namespace":
		return varNamespace
	case "request.name":
		return varName
	case "request.query":
		return varQuery
	case "request.userAgent":
		return varUserAgent
	case "request.contentType":
		return varContentType
	case "request.fieldManager":
		return varFieldManager
	case "request.dryRun":
		return varDryRun
	case "request.caller":
		return varCaller
	case "user.name":
		return varUserName
	case "user.uid":
		return varUserUID
	case "user.groups":
		return varUserGroups
	case "user.extra":
		return varUserExtra
	case "object":
		return varObject
	case "cluster.mixed":
		return varClusterMixed
	case "cluster.minVersion":
		return varClusterMin
	case "cluster.maxVersion":
		return varClusterMax
	}
	return -1
}

// read makes the value of a variable.
func (v *vars) read(i int) ref.Val {
	r := v.in.Request
	if text, ok := r.text(i); ok {
		return types.String(text)
	}
	switch i {
	case varQuery:
		return types.DefaultTypeAdapter.NativeToValue(decodeQuery(r.Query))
	case varDryRun:
		return types.Bool(r.DryRun)
	case varCaller:
		if v.in.Caller == nil {
			return types.String("")
		}
		return types.String(v.in.Caller())
	case varClusterMixed:
		return types.Bool(v.in.Cluster.Mixed)
	case varClusterMin:
		return types.String(v.in.Cluster.Min.String())
	case varClusterMax:
		return types.String(v.in.Cluster.Max.String())
	}
	return readUser(v.user, i)
}

// text returns a variable that is a text of the request, which reading can neither
// fail nor cost; ok is false for every other variable.
func (r *Request) text(variable int) (value string, ok bool) {
	switch variable {
	case varMethod:
		return r.Method, true
	case varPath:
		return r.DecodedPath, true
	case varVerb:
		return r.Verb, true
	case varGroup:
		return r.Group, true
	case varVersion:
		return r.Version, true
	case varResource:
		return r.Resource, true
	case varSubresource:
		return r.Subresource, true
	case varNamespace:
		return r.Namespace, true
	case varName:
		return r.Name, true
	case varUserAgent:
		return r.UserAgent, true
	case varContentType:
		return r.ContentType, true
	case varFieldManager:
		return r.FieldManager, true
	}
	return "", false
}

// findUser asks who the user is, once, and returns why that is not known.
func (v *vars) findUser() error {
	if v.user == nil && v.userErr == nil && v.in.User != nil {
		if v.user, v.userErr = v.in.User(); v.userErr != nil {
			v.userErr = fmt.Errorf("cannot find out who the user is: %w", v.userErr)
		}
	}
	if v.user == nil && v.userErr == nil {
		v.userErr = errUserUnknown
	}
	return v.userErr
}

func readUser(user *User, i int) ref.Val {
	switch i {
	case varUserName:
		return types.String(user.Name)
	case varUserUID:
		return types.String(user.UID)
	case varUserGroups:
		return types.NewStringList(types.DefaultTypeAdapter, user.Groups)
	}
	return types.DefaultTypeAdapter.NativeToValue(user.Extra)
}

// readObject reads and decodes the body.
func (v *vars) readObject() (ref.Val, error) {
	var body []byte
	if v.in.Object != nil {
		var err error
		if body, err = v.in.Object(); err != nil {
			return nil, fmt.Errorf("cannot read the body: %w", err)
		}
	}
	if body == nil {
		v.noObject = true
		return types.NullValue, nil
	}
	object, err := decodeObject(body)
	if err != nil {
		return nil, &BodyError{Err: err}
	}
	return types.DefaultTypeAdapter.NativeToValue(object), nil
}

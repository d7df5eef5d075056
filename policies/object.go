package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Bounds of what objects may hold together, beside those of one file.
const (
	// maxObjects is how many objects there may be. To find out how a thousand of them
	// go together takes some 10 ms, beside the time to compile what is new.
	maxObjects = 1_000

	// maxObjectsBytes is the size of all of them together.
	maxObjectsBytes = 64 << 20
)

// Object is policies that stand in one object of a cluster. One of Document and Files is
// set.
type Object struct {
	// Name is how messages call the object, and what the names of its policies begin
	// with, so that they never meet those of files: "transformationrules/NAME".
	Name string

	// Document is a TransformationRules document, in JSON. Mistakes are told at its
	// fields, "NAME: spec.apiMigrationRules[0].match", since it has no lines.
	Document []byte

	// Files are policy files, called Name and "/" and the file's own name.
	Files []File
}

// What a Store makes of an object: why it is, or is not, accepted.
const (
	ObjectAccepted = "Accepted" // it is live as it is
	ObjectInvalid  = "Invalid"  // it has mistakes
	ObjectConflict = "Conflict" // it converts what a file, or an object before it, does
	ObjectTooMany  = "TooMany"  // there are more objects than there may be, or larger ones
)

// ObjectStatus says what a Store made of an object.
type ObjectStatus struct {
	// Name is the object's.
	Name string

	// Reason is one of the Object constants.
	Reason string

	// Err is why the object is not accepted; nil when it is.
	Err source.Errors

	// Policies counts its policies that are live. Of an object that is not accepted,
	// they are those of what was last accepted of it.
	Policies int
}

// Accepted reports whether the object is live as it is.
func (s *ObjectStatus) Accepted() bool { return s.Reason == ObjectAccepted }

// version is one content of an object. It never changes.
type version struct {
	hash     string
	policies []engine.Policy
	reason   string
	errs     source.Errors // why it cannot be live, whatever else is there
}

// newVersion reads and compiles an object by itself.
func newVersion(o Object, hash string, limits engine.Limits) *version {
	policies, errs := parseObject(o)
	_, err := compileAll(policies, limits)
	errs = append(errs, asErrors(err)...)
	showLines(errs, o.Files)
	v := &version{hash: hash, policies: policies, errs: errs}
	if len(errs) > 0 {
		errs.Sort()
		v.policies, v.reason = nil, ObjectInvalid
	}
	return v
}

// parseObject parses an object. The names of its policies begin with its own.
func parseObject(o Object) ([]engine.Policy, source.Errors) {
	p := parser{origin: engine.OriginObject, groups: map[string]*group{}, named: map[string]source.Pos{}}
	prefix := o.Name + "/"
	if o.Document != nil {
		prefix = path.Dir(o.Name) + "/" // the rules of a document begin with its name
		p.fieldDocument(File{Name: o.Name, Data: o.Document})
	}
	for _, file := range o.Files {
		if !ignored(path.Base(file.Name)) {
			p.file(file)
		}
	}
	p.finishGroups()
	showLines(p.errs, o.Files)
	p.errs.Sort()
	for i := range p.policies {
		p.policies[i].Name = prefix + p.policies[i].Name
		if c := p.policies[i].Convert; c != nil {
			c.Policy = p.policies[i].Name
		}
	}
	return p.policies, p.errs
}

// hash is of all that an object says.
func (o *Object) hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d\n", o.Name, len(o.Document))
	h.Write(o.Document)
	for _, file := range o.Files {
		fmt.Fprintf(h, "%q %d\n", file.Name, len(file.Data))
		h.Write(file.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (o *Object) size() int {
	size := len(o.Document)
	for _, file := range o.Files {
		size += len(file.Data)
	}
	return size
}

package convert

import (
	"cmp"
	"time"
)

// Limits are those that an operator may set. The zero value of a field is its
// default.
type Limits struct {
	// ObjectBytes is the size of one body on the way to the server. Default
	// MaxObjectBytes.
	ObjectBytes int

	// JQTime is the wall time of one run of a jq program on one object. Default
	// MaxJQTime.
	JQTime time.Duration

	// JQOutputBytes is the size of what a jq program may make of one object. Default
	// MaxJQOutputBytes.
	JQOutputBytes int

	// UnboundedJQ allows jq programs to loop, to recurse and to use regular
	// expressions. Only JQTime then ends them, between two of gojq's operations, and
	// they may take as much memory as they fill until then.
	UnboundedJQ bool
}

func (l Limits) withDefaults() Limits {
	return Limits{
		ObjectBytes:   cmp.Or(l.ObjectBytes, MaxObjectBytes),
		JQTime:        cmp.Or(l.JQTime, MaxJQTime),
		JQOutputBytes: cmp.Or(l.JQOutputBytes, MaxJQOutputBytes),
		UnboundedJQ:   l.UnboundedJQ,
	}
}

// What one body may cost.
const (
	// MaxObjectBytes is the size of one body on the way to the server: 3 MiB, as
	// in the apiserver, so that nothing it accepts is refused.
	MaxObjectBytes = 3 << 20

	// MaxAnswerObjectBytes is the size of one object in a server's answer: a single
	// object, a list's item, a watch event. etcd holds at most 1.5 MiB of protobuf
	// for one object, which as JSON, with every key spelled out, is several times
	// as long; ten times leaves room.
	MaxAnswerObjectBytes = 16 << 20

	// MaxDepth is how deep objects and arrays may nest: as deep as encoding/json, and so
	// kube-apiserver, reads them. A field without a schema may hold that.
	MaxDepth = 10_000

	// MaxPathElements is how many elements the path of a rule may have.
	MaxPathElements = 64

	// MaxJSONPatchOperations is the apiserver's own limit for one JSON patch.
	MaxJSONPatchOperations = 10_000

	// MaxJQTime is the wall time of one run of a jq program on one object. Programs
	// take well under a millisecond on common objects; the rest is for a machine
	// that is busy.
	MaxJQTime = 250 * time.Millisecond

	// MaxJQOutputBytes is the size of what a jq program may make of one object. A
	// few operators can make a small object a vast one, so it is counted while
	// encoding.
	MaxJQOutputBytes = MaxAnswerObjectBytes

	// MaxJQProgramBytes is the length of a jq program, checked before parsing.
	MaxJQProgramBytes = 64 << 10

	// MaxJQIndex is the highest array index a jq program may compute: writing to
	// index n of an array makes n elements, and n may come from a client.
	MaxJQIndex = 10_000

	// MaxJQCompared is how many values jq's operations of quadratic cost (array
	// subtraction, contains, inside) take on one side: 16 million comparisons, about
	// a third of a second.
	MaxJQCompared = 4096

	// MaxJQSorted is how many values jq's sorting functions take: a tenth of a
	// second.
	MaxJQSorted = 50_000

	// MaxJQDigits is the length of a number in a jq multiplication.
	MaxJQDigits = 1000

	// writeChunk is how much of a converted answer is collected before it is
	// written: one TLS record is at most 16 KiB, two make a good write.
	writeChunk = 32 << 10

	// maxEmptyReads is how many times in a row a reader may return nothing at all.
	maxEmptyReads = 100
)

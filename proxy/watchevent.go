package proxy

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventKind is the type of a watch event.
type eventKind byte

const (
	unknownEvent eventKind = iota
	blankEvent             // white space between two events
	addedEvent
	changedEvent // MODIFIED or DELETED
	bookmarkEvent
	errorEvent
)

// event is what a watch must know of one event to be able to go on after it.
type event struct {
	kind eventKind
	rv   uint64 // resourceVersion of its object; 0: it has none that is a number
}

func kindOf(name []byte) eventKind {
	switch string(name) {
	case "ADDED":
		return addedEvent
	case "MODIFIED", "DELETED":
		return changedEvent
	case "BOOKMARK":
		return bookmarkEvent
	case "ERROR":
		return errorEvent
	}
	return unknownEvent
}

// parseRV reads a resourceVersion as kube-apiserver writes it, a decimal number
// that is the revision of etcd. Of another form nothing is known, not even which
// of two is later: 0.
func parseRV(s []byte) uint64 {
	if len(s) == 0 || s[0] == '0' {
		return 0
	}
	var n uint64
	for _, c := range s {
		if c < '0' || c > '9' || n > math.MaxUint64/10-1 {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

func formatRV(rv uint64) string { return strconv.FormatUint(rv, 10) }

// scanJSON reads an event in JSON up to its type and the resourceVersion of its
// object: {"type":…,"object":{"metadata":{"resourceVersion":…}}}, whatever else
// stands there and in whatever order. It looks no further and does not check the
// rest. ok is false for what is no event.
func scanJSON(b []byte) (e event, ok bool) {
	typed, versioned := false, false
	s := jsonScan{b: b}
	for key := range s.members() {
		switch string(key) {
		case "type":
			e.kind, typed = kindOf(s.text()), true
		case "object":
			inner := s // leaves the object for the loop to skip, if it must go on
			e.rv, versioned = inner.objectRV()
		}
		if typed && (versioned || e.kind == errorEvent) {
			return e, true
		}
	}
	return e, typed && !s.bad
}

// objectRV finds metadata.resourceVersion in the object at s, and stops there.
func (s *jsonScan) objectRV() (rv uint64, found bool) {
	for key := range s.members() {
		if string(key) != "metadata" {
			continue
		}
		for key := range s.members() {
			if string(key) == "resourceVersion" {
				return parseRV(s.text()), true
			}
		}
	}
	return 0, false
}

// wireEvent is an event as encoding/json sees it, for the rare ones that are read
// whole.
type wireEvent struct {
	Object struct {
		metav1.Status
		Metadata metav1.ObjectMeta `json:"metadata"`
	} `json:"object"`
}

// eventJSON is an event that may be in CBOR in JSON; nil of what is no CBOR.
func eventJSON(raw []byte, f form) []byte {
	if f != formCBOR {
		return raw
	}
	doc, err := transcodeCBOR(raw, maxHeldEvent)
	if err != nil {
		return nil
	}
	return doc
}

// endsInitial reports whether a bookmark says that the initial events have ended.
func endsInitial(raw []byte, f form) bool {
	if f == formProtobuf {
		return protoEndsInitial(raw)
	}
	var e wireEvent
	return json.Unmarshal(eventJSON(raw, f), &e) == nil && e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// gone reports whether an ERROR event or an answer says that a server's history
// does not reach back to the position asked for. oldest is the position that it
// does reach back to, 0 if the server does not say.
func gone(status *metav1.Status) (oldest uint64, yes bool) {
	if status.Code != 410 && status.Reason != metav1.StatusReasonExpired && status.Reason != metav1.StatusReasonGone {
		return 0, false
	}
	if m := tooOld.FindStringSubmatch(status.Message); m != nil {
		oldest = parseRV([]byte(m[1]))
	}
	return oldest, true
}

// tooOld is how the watch cache of kube-apiserver says it (GetIntervalLocked in
// k8s.io/apiserver/pkg/storage/cacher): the second number is the resourceVersion
// after which it has every event.
var tooOld = regexp.MustCompile(`too old resource version: [0-9]+ \(([0-9]+)\)`)

// statusOf reads the Status of an ERROR event; an empty one where there is none.
func statusOf(raw []byte, f form) *metav1.Status {
	if f == formProtobuf {
		return protoStatus(raw)
	}
	var e wireEvent
	if json.Unmarshal(bytes.TrimSpace(eventJSON(raw, f)), &e) != nil {
		return &metav1.Status{}
	}
	return &e.Object.Status
}

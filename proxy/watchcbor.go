package proxy

import cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

// cborItem is a data item as it stands in the bytes that were decoded.
type cborItem []byte

// UnmarshalCBOR keeps b, which stays the caller's.
func (i *cborItem) UnmarshalCBOR(b []byte) error {
	*i = b
	return nil
}

// cborMembers are the members of a map; none of what is no map.
func cborMembers(b []byte) map[string]cborItem {
	var members map[string]cborItem
	if cbor.Unmarshal(b, &members) != nil {
		return nil
	}
	return members
}

// scanCBOR reads an event in CBOR. ok is false for what is no event.
func scanCBOR(b []byte) (e event, ok bool) {
	members := cborMembers(b)
	var kind, rv string
	if cbor.Unmarshal(members["type"], &kind) != nil {
		return e, false
	}
	e.kind = kindOf([]byte(kind))
	if e.kind == errorEvent {
		return e, true
	}
	metadata := cborMembers(cborMembers(members["object"])["metadata"])
	if cbor.Unmarshal(metadata["resourceVersion"], &rv) == nil {
		e.rv = parseRV([]byte(rv))
	}
	return e, true
}

package proxy

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Whatever a server writes, what is taken for a message is that of a Status in it.
func FuzzStatusMessage(f *testing.F) {
	for _, contentType := range []string{"application/json", "application/yaml", "application/cbor", mediaProtobuf, "text/plain"} {
		for _, body := range []string{
			"", "{", `{"kind":"Status","message":"apiserver is shutting down"}`, `{"kind":"Pod","message":"apiserver is shutting down"}`,
			"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x04\x12\x02no", "\xd9\xd9\xf7\xa1DkindFStatus", "kind: Status\nmessage: x\n",
		} {
			f.Add(contentType, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		message, ok := statusMessage(contentType, body)
		if !ok {
			return
		}
		switch patchType(contentType) {
		case "application/json":
			var want struct{ Kind, Message string }
			if err := json.Unmarshal(body, &want); err != nil || want.Kind != "Status" || want.Message != message {
				t.Errorf("%q has the message %q, want a Status with %q (%v)", body, message, want.Message, err)
			}
		case mediaProtobuf:
			if !bytes.Contains(body, []byte(message)) {
				t.Errorf("%q has the message %q, which is not in it", body, message)
			}
		case "application/yaml", "application/cbor":
		default:
			t.Errorf("%q is a Status with the message %q", contentType, message)
		}
	})
}

package proxy

import "testing"

func TestFrames(t *testing.T) {
	f := func(contentType, stream string, want bool) {
		t.Helper()
		whole, single := newFrames(contentType), newFrames(contentType)
		whole.pass([]byte(stream))
		for i := range len(stream) {
			single.pass([]byte{stream[i]})
		}
		if whole.whole() != want || single.whole() != want {
			t.Errorf("%s %q ends an event: %t at once, %t byte by byte, want %t", contentType, stream, whole.whole(), single.whole(), want)
		}
	}

	const json, protobuf = "application/json", "application/vnd.kubernetes.protobuf;stream=watch"
	f(json, "", true)
	f(json, "{\"type\":\"ADDED\"}\n", true)
	f(json, "{\"type\":\"ADDED\"}\n{\"ty", false)
	f(protobuf, "", true)
	f(protobuf, "\x00\x00\x00", false)
	f(protobuf, "\x00\x00\x00\x02", false)
	f(protobuf, "\x00\x00\x00\x02a", false)
	f(protobuf, "\x00\x00\x00\x02\n\n", true)
	f(protobuf, "\x00\x00\x00\x02ab\x00\x00\x00\x01c", true)
	f(protobuf, "\x00\x00\x00\x02ab\x00\x00\x00\x01", false)
	f(protobuf, "\x00\x00\x00\x00\x00\x00\x00\x00", true)
	f(protobuf, "\xff\xff\xff\xffabc", false)
	f("application/cbor-seq", "abc\n", true)
}

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestScanJSON(t *testing.T) {
	f := func(text string, kind eventKind, rv uint64, ok bool) {
		t.Helper()
		e, gotOK := scanJSON([]byte(text))
		if gotOK != ok || ok && e != (event{kind, rv}) {
			t.Errorf("%s: got %v, %t, want %v, %t", text, e, gotOK, event{kind, rv}, ok)
		}
	}

	f(`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p","resourceVersion":"12"}}}`, addedEvent, 12, true)
	f(`{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"12"}}}`, changedEvent, 12, true)
	f(`{"type":"DELETED","object":{"metadata":{"resourceVersion":"12"}}}`, changedEvent, 12, true)
	f(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}`, bookmarkEvent, 12, true)
	f(`{"type":"ERROR","object":{"kind":"Status","metadata":{"resourceVersion":"12"}}}`, errorEvent, 0, true)
	f(`{"type":"CHANGED","object":{"metadata":{"resourceVersion":"12"}}}`, unknownEvent, 12, true)
	f(` { "object" : { "metadata" : { "resourceVersion" : "12" , "a":1} , "x":[{"resourceVersion":"3"}]} , "type" : "ADDED" } `, addedEvent, 12, true)

	// Only the object's own resourceVersion counts, however its name is written.
	f(`{"type":"ADDED","resourceVersion":"1","object":{"resourceVersion":"2","spec":{"metadata":{"resourceVersion":"3"}},`+
		`"metadata":{"labels":{"resourceVersion":"4"},"managedFields":[{"resourceVersion":"5"}],"resourceVersion":"12"}}}`, addedEvent, 12, true)
	f(`{"type":"ADDED","object":{"metadata":{"annotations":{"x":"}},\"resourceVersion\":\"4\",{{\\"},"resourceVersion":"12"}}}`, addedEvent, 12, true)
	f(`{"\u0074ype":"ADD\u0045D","obj\u0065ct":{"met\u0061data":{"resource\u0056ersion":"1\u0032"}}}`, addedEvent, 12, true)
	f(`{"type":"ADDED","object":{"metadata":{"resource\\u0056ersion":"12"}}}`, addedEvent, 0, true)
	f(`{"type":"ADDED","object":{"metadata":{"ResourceVersion":"12"}}}`, addedEvent, 0, true)

	// What is no resourceVersion of etcd is none.
	for _, rv := range []string{`"0"`, `""`, `"012"`, `"-1"`, `"1e3"`, `"0x1"`, `"18446744073709551616"`, `12`, `null`, `{}`, `["12"]`} {
		f(`{"type":"ADDED","object":{"metadata":{"resourceVersion":`+rv+`}}}`, addedEvent, 0, true)
	}
	f(`{"type":"ADDED","object":{"metadata":[]}}`, addedEvent, 0, true)
	f(`{"type":"ADDED","object":null}`, addedEvent, 0, true)
	f(`{"type":"ADDED"}`, addedEvent, 0, true)

	for _, text := range []string{"", "{", "{}", "[]", `"type"`, "1", `{"kind":"Status"}`, `{"type":"ADDED"`, `{"type":"ADDED","object":{"metadata":`, `{"type":"ADDED",}`, `{"type":}`, `{"a"}`} {
		f(text, 0, 0, false)
	}
}

// oracle reads an event with encoding/json, the first of each name.
func oracle(text []byte) (e event, ok bool) {
	top, ok := firstMembers(text)
	var kind string
	if raw := top["type"]; !ok || raw == nil {
		return e, false
	} else if json.Unmarshal(raw, &kind) != nil {
		kind = ""
	}
	e.kind = kindOf([]byte(kind))
	if e.kind == errorEvent {
		return e, true
	}
	object, _ := firstMembers(top["object"])
	metadata, _ := firstMembers(object["metadata"])
	var rv string
	if json.Unmarshal(metadata["resourceVersion"], &rv) == nil {
		e.rv = parseRV([]byte(rv))
	}
	return e, true
}

// firstMembers are the members of an object; ok is false if some name comes twice.
func firstMembers(text []byte) (map[string]json.RawMessage, bool) {
	members, in := map[string]json.RawMessage{}, json.NewDecoder(bytes.NewReader(text))
	if token, err := in.Token(); err != nil || token != json.Delim('{') {
		return nil, false
	}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if in.Decode(&value) != nil {
			return nil, false
		}
		key := token.(string)
		if _, twice := members[key]; !twice {
			members[key] = value
		}
	}
	return members, true
}

func FuzzScanJSON(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p","resourceVersion":"12"}}}`,
		`{"object":{"metadata":{"a":"\"","resourceVersion":"12"},"b":[1,-2.5e3,true,null,"\\"]},"type":"MODIFIED"}`,
		`{"t\u0079pe":"BOOKMARK","object":{"metadata":{"resourceV\u0065rsion":"9"}}}`,
		`{"type":"ERROR","object":{"code":410}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, ok := scanJSON(text)
		if !json.Valid(text) {
			return // it is the server's, and passes as it comes; only that nothing panicked
		}
		if bytes.Contains(bytes.ToValidUTF8(text, []byte("?")), []byte("?")) && !bytes.Contains(text, []byte("?")) {
			return // encoding/json replaces what is no UTF-8
		}
		want, wantOK := oracle(text)
		if ok != wantOK || ok && e != want {
			t.Errorf("%q: got %v, %t, want %v, %t", text, e, ok, want, wantOK)
		}
	})
}

// cutAll cuts a stream that comes in pieces of the given size, and says what it found.
func cutAll(form form, stream []byte, piece int) string {
	c, found, held := cutter{form: form}, "", []byte(nil)
	for len(stream) > 0 {
		n := min(piece, len(stream))
		held, stream = append(held, stream[:n]...), stream[n:]
		for {
			n, e, ok := c.cut(held)
			if !ok {
				return found + "!"
			}
			if n == 0 {
				break
			}
			if e.kind != blankEvent {
				found += fmt.Sprintf("%d:%d ", e.kind, e.rv)
			}
			held = append([]byte(nil), held[n:]...)
		}
	}
	return found + fmt.Sprint(len(held))
}

func TestCutter(t *testing.T) {
	f := func(stream, want string) {
		t.Helper()
		for piece := 1; piece <= len(stream); piece++ {
			if got := cutAll(formJSON, []byte(stream), piece); got != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", stream, piece, got, want)
			}
		}
	}

	one := `{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}`
	f(one+"\n", "2:1 0")
	f(one+"\r\n"+one+"\r\n", "2:1 2:1 0")
	f(one+"\n"+one[:30], "2:1 30")
	f(one, "2:1 0")
	f("\n \t"+one+"\n\n", "2:1 0")
	f(strings.ReplaceAll(one, ":", " :\n"), "2:1 0")
	f(`{"type":"ADDED","object":{"x":"}\n{","metadata":{"resourceVersion":"1"}}}`+"\n", "2:1 0")
	f("["+one+"]", "!")
	f(`{"kind":"Status"}`+"\n", "!")
	f("{}", "!")
	f("event: x\n", "!")
}

func TestCutProto(t *testing.T) {
	framed := func(size, message string) []byte { return []byte(size + message) }
	message := "\n\x05ADDED"
	for piece := 1; piece < 12; piece++ {
		if got := cutAll(formProtobuf, append(framed("\x00\x00\x00\x07", message), "\x00\x00\x00\x09\n"...), piece); got != "2:0 5" {
			t.Errorf("in pieces of %d: got %q", piece, got)
		}
	}
	for _, bad := range [][]byte{framed("\xff\xff\xff\xff", "abc"), framed("\x00\x00\x00\x02", "\n\n"), framed("\x00\x00\x00\x00", "")} {
		if got := cutAll(formProtobuf, bad, len(bad)); got != "!" {
			t.Errorf("%q: got %q, want that it is no event", bad, got)
		}
	}
}

func TestCutCBOR(t *testing.T) {
	f := func(stream, want string) {
		t.Helper()
		for piece := 1; piece <= len(stream); piece++ {
			if got := cutAll(formCBOR, []byte(stream), piece); got != want {
				t.Errorf("%x in pieces of %d: got %q, want %q", stream, piece, got, want)
			}
		}
	}

	one := "\xd9\xd9\xf7\xa2\x44type\x45ADDED\x46object\xd9\xd9\xf7\xa1\x48metadata\xa1\x4fresourceVersion\x41\x31"
	f(one, "2:1 0")
	f(one+one+one[:30], "2:1 2:1 30")
	f("\xbf\x66object\xbf\x68metadata\xbf\x6fresourceVersion\x7f\x61\x31\x61\x32\xff\xff\xff\x64type\x65ADDED\xff", "2:12 0")
	f("\xa2\x44type\x45ADDED\x46object\x80", "2:0 0")
	f("\xa1\x44type\x45ERROR", "5:0 0")
	f("\xa1\x44type\x45ADD", "10")
	f("\xa1\x44kind\x46Status", "!")
	f("\xa1\x44type\x01", "!")
	f("\xa0", "!")
	f("\x01", "!")
	f("\xff", "!")
	f("\x82\xff", "!")
	f("\x1c", "!")
	f("\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "!")
	f(strings.Repeat("\x9f", maxCBORDepth+1), "!")
}

func FuzzCutter(f *testing.F) {
	forms := []form{formJSON, formProtobuf, formCBOR}
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}`+"\n"), uint8(3), uint8(0))
	f.Add([]byte("\x00\x00\x00\x07\n\x05ADDED"), uint8(2), uint8(1))
	f.Add([]byte("\xbf\x44type\x45ADDED\x46object\x9f\xa0\xff\xff"), uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, piece, which uint8) {
		form := forms[int(which)%len(forms)]
		got := cutAll(form, stream, int(piece)+1)
		// How a stream comes may matter only to what is no JSON, or has no newlines.
		if want := cutAll(form, stream, len(stream)+1); got != want && (form != formJSON || validStream(stream)) {
			t.Errorf("%q in pieces of %d: got %q, want %q", stream, int(piece)+1, got, want)
		}
	})
}

// validStream reports whether a stream is JSON to its end, with a newline behind each
// value.
func validStream(stream []byte) bool {
	for in := json.NewDecoder(bytes.NewReader(stream)); ; {
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return errors.Is(err, io.EOF)
		}
		if end := in.InputOffset(); end == int64(len(stream)) || stream[end] != '\n' {
			return false
		}
	}
}

func FuzzScanProto(f *testing.F) {
	raw := append([]byte("k8s\x00"), "\x12\x06\n\x042\x0212"...)
	seed, err := (&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: raw}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	if e, ok := scanProto(seed); !ok || e != (event{changedEvent, 12}) {
		f.Fatalf("%q: got %v, %t", seed, e, ok)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, text []byte) {
		e, ok := scanProto(text)
		_ = protoEndsInitial(text)
		_ = protoStatus(text)
		var want metav1.WatchEvent
		if want.Unmarshal(text) == nil && want.Type != "" && (!ok || e.kind != kindOf([]byte(want.Type))) {
			t.Errorf("%q: got %v, %t, want %s", text, e, ok, want.Type)
		}
	})
}

func TestPosition(t *testing.T) {
	f := func(query, events string, want uint64) {
		t.Helper()
		options, ok := parseWatchOptions(query, nil)
		if !ok {
			t.Fatalf("%s: no position", query)
		}
		p := newPosition(options)
		for _, e := range strings.Fields(events) {
			kinds := map[byte]eventKind{'A': addedEvent, 'M': changedEvent, 'B': bookmarkEvent, 'I': bookmarkEvent, 'E': errorEvent, '?': unknownEvent}
			p.pass(event{kinds[e[0]], parseRV([]byte(e[1:]))}, func() bool { return e[0] == 'I' })
		}
		if got := p.certain(); got != want {
			t.Errorf("%s, %s: certain is %d, want %d", query, events, got, want)
		}
	}

	f("resourceVersion=7", "", 7)
	f("resourceVersion=7", "A9 M10 B20", 20)
	f("resourceVersion=7", "A9 M9", 9)
	f("resourceVersion=7", "A9 E", 9)
	f("resourceVersion=7", "A9 A8 A10", 0)
	f("resourceVersion=7", "A6", 0)
	f("resourceVersion=7", "A9 A", 0)
	f("resourceVersion=7", "A9 A A10", 10)
	f("resourceVersion=7", "A9 A A8 A11", 0)
	f("resourceVersion=7", "A9 ?10", 0)
	f("resourceVersion=7&sendInitialEvents=false", "A9", 9)
	f("sendInitialEvents=false", "", 0)
	f("sendInitialEvents=false", "A9", 9)
	f("", "", 0)
	f("", "A9 A4", 0)
	f("", "A9 A4 M10", 10)
	f("resourceVersion=0", "A9 A4 B10 A11", 11)
	f("resourceVersion=0&allowWatchBookmarks=true", "A9 A4 B10", 10)
	const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	f(initial, "A9 A4 M10", 10)
	f(initial+"&resourceVersion=3&allowWatchBookmarks=true", "A9 A4 M10 B11", 0)
	f(initial+"&allowWatchBookmarks=true", "A9 A4 M10 I11", 11)
	f(initial+"&allowWatchBookmarks=true", "A9 A4 I11 A12", 12)

	for _, query := range []string{"resourceVersion=x", "resourceVersion=-1", "resourceVersion=07", "resourceVersion=99999999999999999999"} {
		if _, ok := parseWatchOptions(query, nil); ok {
			t.Errorf("%s has a position", query)
		}
	}
}

func TestGone(t *testing.T) {
	f := func(status metav1.Status, oldest uint64, yes bool) {
		t.Helper()
		if gotOldest, got := gone(&status); got != yes || gotOldest != oldest {
			t.Errorf("%v: got %d, %t, want %d, %t", status, gotOldest, got, oldest, yes)
		}
	}

	f(metav1.Status{Code: 410, Reason: "Expired", Message: "too old resource version: 1 (25)"}, 25, true)
	f(metav1.Status{Code: 410, Message: "The provided resourceVersion is too old"}, 0, true)
	f(metav1.Status{Reason: "Gone"}, 0, true)
	f(metav1.Status{Code: 500, Message: "too old resource version: 1 (25)"}, 0, false)
	f(metav1.Status{}, 0, false)
}

// podEvent is an event of about 3 KiB, as kube-apiserver writes it.
func podEvent() []byte {
	fields := `"managedFields":[` + strings.Repeat(`{"manager":"kubelet","operation":"Update","fieldsV1":{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}},`, 8) + `{}]`
	return []byte(`{"type":"MODIFIED","object":{"apiVersion":"acme.io/v1","kind":"Thing","metadata":{"annotations":{"a":"b"},"creationTimestamp":"2025-01-01T00:00:00Z",` +
		fields + `,"name":"t","namespace":"d","resourceVersion":"123456789","uid":"0"},"spec":{"x":"` + strings.Repeat("y", 1500) + `"}}}` + "\n")
}

// BenchmarkWatchEvent is what following a watch costs for each event: finding its
// end and its position.
func BenchmarkWatchEvent(b *testing.B) {
	text := podEvent()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var c cutter
	for b.Loop() {
		if n, e, ok := c.cut(text); n != len(text) || !ok || e.rv != 123456789 {
			b.Fatal(n, e, ok)
		}
	}
}

// An event costs no allocation.
func TestWatchEventAllocations(t *testing.T) {
	text := podEvent()
	var c cutter
	if n := testing.AllocsPerRun(100, func() { _, _, _ = c.cut(text) }); n > 0 {
		t.Errorf("%v allocations an event", n)
	}
}

func TestReadMetadataList(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := readMetadataList(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}

	const kind = `"kind":"PartialObjectMetadataList"`
	f(`{`+kind+`,"metadata":{"resourceVersion":"5"},"items":[]}`, "")
	f(`{`+kind+`,"metadata":{"resourceVersion":"5"},"items":null}`, "")
	f(`{`+kind+`,"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"uid":"u","resourceVersion":"1"}}],"more":{}}`, "")
	f(`{`+kind+`,"metadata":{"resourceVersion":"5","continue":"x"}}`, "more than 10000 objects")
	f(`{`+kind+`,"items":[]}`, "no resourceVersion")
	f(`{"kind":"List","metadata":{"resourceVersion":"5"}}`, `came as "List"`)
	f(`{`+kind+`,"items":[{"metadata":{"uid":"u"}}]}`, "no uid or no resourceVersion")
	f(`{`+kind+`,"items":[{"metadata":`, io.ErrUnexpectedEOF.Error())
	f(`[]`, "[ where {")
	f(`{`+kind+`,"items":{}}`, "{ where [")
	f(``, "EOF")
}

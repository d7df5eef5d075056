package proxy

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// testGrowth is a limit that no test comes near by accident.
const testGrowth = 1 << 20

func TestTranscodeCBOR(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		got, err := transcodeCBOR([]byte(raw), testGrowth)
		if err != nil || string(got) != want {
			t.Errorf("%x became %s, %v; want %s", raw, got, err, want)
		}
	}

	f("\xd9\xd9\xf7\xa0", `{}`)
	f("\xbf\x41a\x9f\x01\x20\xff\x61b\x80\xff", `{"a":[1,-1],"b":[]}`)
	f("\x1b\x7f\xff\xff\xff\xff\xff\xff\xff", `9223372036854775807`)
	f("\x3b\x7f\xff\xff\xff\xff\xff\xff\xff", `-9223372036854775808`)
	f("\x83\xf4\xf5\xf6", `[false,true,null]`)

	// Floats stay floats, whatever their width.
	f("\xf9\x3c\x00", `1.0`)
	f("\xf9\x80\x00", `-0.0`)
	f("\xfa\x47\xc3\x50\x00", `100000.0`)
	f("\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", `1.1`)
	f("\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c", `1e+300`)

	// Byte strings are strings; tagged, they are what the tag says.
	f("\x42\xc3\xbc", `"ü"`)
	f("\x7f\x62ab\x61c\xff", `"abc"`)
	f("\x5f\x42ab\x41c\xff", `"abc"`)
	f("\xd6\x43\x00\x01\xff", `"AAH/"`)
	f("\xd5\x43\xff\xff\xff", `"____"`)
	f("\xd7\x43\x00\x01\xff", `"0001ff"`)
	f("\xd6\xa1\x41a\x82\x61b\x41\xff", `{"YQ==":["b","/w=="]}`)
	f("\xd6\x82\xd7\x41\xff\x41\xff", `["ff","/w=="]`)

	// Times are strings, other tags nothing.
	f("\xc0\x74\x32\x30\x31\x33-03-21T20:04:00Z", `"2013-03-21T20:04:00Z"`)
	f("\xc1\x1a\x51\x4b\x67\xb0", `"2013-03-21T20:04:00Z"`)
	f("\xd8\x20\x61a", `"a"`)
	f("\xd8\x20\xa1\x61a\x01", `{"a":1}`)
}

func TestTranscodeCBORRefuses(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		got, err := transcodeCBOR([]byte(raw), testGrowth)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40x became %.100s, %v; want %s", raw, got, err, want)
		}
	}

	f("", "EOF")
	f("\xa1\x61a", "unexpected EOF")
	f("\xa0\xa0", "1 bytes of extraneous data")
	f("\xff", `unexpected "break" code`)
	f("\xa2\x61a\x01\x41a\x02", `the key "a" stands twice`)
	f("\xa1\x01\x02", "cannot unmarshal positive integer")
	f("\x61\xff", "UTF-8")
	f("\x41\xff", "a string that is not UTF-8")
	f("\x5f\x41\xff\xff", "a string that is not UTF-8")
	f("\xd8\x20\x41\xff", "a string that is not UTF-8")
	f("\xa1\x41\xff\x01", "a string that is not UTF-8")
	f("\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "overflows")
	f("\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "overflows")
	f("\xc2\x41\x01", "bignum")
	f("\xf9\x7e\x00", "NaN")
	f("\xf9\x7c\x00", "infinity")
	f("\xf7", "simple value 23")
	f("\xe0", "simple value 0")
	f("\xc0\x01", "tag number 0 must be followed by text string")
	f("\x81\xc1\x80", "a collection is tagged as a time")
	f("\xc0\x61x", "cannot set x for time.Time")
	f(strings.Repeat("\x81", 10001)+"\x01", "exceeded max nested level 10000")

	// What a few bytes announce is not believed.
	f("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", "exceeded max number of elements")
	f("\x9a\x7f\xff\xff\xff", "unexpected EOF")
	f("\xbb\x00\x00\x00\x00\x00\x1f\xff\xff", "unexpected EOF")
	f("\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "unexpected EOF")

	if _, err := transcodeCBOR([]byte("\x98\xff"+strings.Repeat("\xc1\x00", 255)), 1000); !errors.Is(err, errCBORGrowth) {
		t.Errorf("times that grow beyond the limit gave %v", err)
	}
}

// A body is refused exactly when apimachinery refuses it, and else is what apimachinery
// makes of it, but for strings that JSON cannot hold.
func FuzzTranscodeCBOR(f *testing.F) {
	for _, seed := range []string{
		"\xd9\xd9\xf7\xa2\x44kind\x45Thing\x44spec\xa2\x41a\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x41b\xf9\x3c\x00",
		"\xbf\x61a\x9f\x01\xff\xff", "\xd6\xa1\x41a\x82\x61b\x41\xff", "\xd6\x82\xd7\x41\xff\x5f\x41\x01\xff", "\xc1\x1a\x51\x4b\x67\xb0",
		"\xa1\xf6\x01", "\xa1\xd6\x41a\x01", "\xa1\xd9\xd9\xf7\x41a\x01", "\xa2\x61a\x01\x41a\x02", "\xd6\xa2\xd7\x41a\x01\x41a\x02",
		"\xc0\x74\x32\x30\x31\x33-03-21T20:04:00Z", "\xd8\x20\xc1\x01", "\xc1\xd8\x20\x01", "\x7f\x61a\xff", "\xa1\x7f\xff\x01", "\xfb\x43\xe0\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want any
		refused := cbor.Unmarshal(raw, &want)
		doc, err := transcodeCBOR(raw, 100*len(raw)+testGrowth)
		switch {
		case err != nil && refused == nil && errors.Is(err, errNotUTF8):
			if allUTF8(want) {
				t.Errorf("%x has only strings in UTF-8, and was refused: %v", raw, err)
			}
			return
		case (err == nil) != (refused == nil):
			t.Fatalf("%x gave %s, %v; apimachinery says %v", raw, doc, err, refused)
		case err != nil:
			return
		}
		var got any
		if err := utiljson.Unmarshal(doc, &got); err != nil || !json.Valid(doc) {
			t.Fatalf("%x became %s: %v", raw, doc, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%x became %s, which is %#v; apimachinery has %#v", raw, doc, got, want)
		}
		encoded, err := appendCBOR(nil, doc)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", doc, err)
		}
		if canonical, err := cbor.Marshal(want); err != nil || string(canonical) != string(encoded) {
			t.Errorf("%s was written %x; apimachinery writes %x, %v", doc, encoded, canonical, err)
		}
	})
}

func allUTF8(v any) bool {
	switch v := v.(type) {
	case string:
		return utf8.ValidString(v)
	case []any:
		for _, item := range v {
			if !allUTF8(item) {
				return false
			}
		}
	case map[string]any:
		for key, member := range v {
			if !utf8.ValidString(key) || !allUTF8(member) {
				return false
			}
		}
	}
	return true
}

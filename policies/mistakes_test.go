package policies

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestEncodings reads files that an editor has written in its own way: what is right
// in them is read, and what is wrong is shown at its line and column.
func TestEncodings(t *testing.T) {
	const document = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: a}
spec:
  apiMigrationRules:
    - apiGroup: a.io
      resource: things
      fromVersion: v1
      toVersion: v2
      match: |
        request.name == 'ä' &&
          request.nme == 'b'
      colour: red
`
	const mistakes = `a.yaml:12:11: undeclared reference to "request.nme"; did you mean "request.name"?
    request.nme == 'b'
    ^
a.yaml:13:7: the apiMigrationRule has an unknown field "colour"; known are apiGroup, resource, fromVersion, toVersion, kind, toGroup, toResource, toKind, match, when, mode, failurePolicy, preserve, transformations
        colour: red
        ^`
	crlf := strings.ReplaceAll(document, "\n", "\r\n")
	utf16Text := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(document)) {
		utf16Text = append(utf16Text, byte(unit), byte(unit>>8))
	}
	tests := []struct{ name, file, data, want string }{
		{"as it should be", "a.yaml", document, mistakes},
		{"lines end as on Windows", "a.yaml", crlf, mistakes},
		{"a byte order mark", "a.yaml", "\ufeff" + document, mistakes},
		{"both", "a.yaml", "\ufeff" + crlf, mistakes},
		{"a mark and a mistake in the first line", "a.yaml", "\ufeffapiVersion: v1\nkind: TransformationRules\n", `a.yaml:1:13: apiVersion is "v1": it must be mvp.k8s.io/v1
  apiVersion: v1
              ^`},
		{"an expression with a mark", "a.deny.cel", "\ufeffrequest.nme == '' ? '' : ''\r\n", `a.deny.cel:1:1: undeclared reference to "request.nme"; did you mean "request.name"?
  request.nme == '' ? '' : ''
  ^`},
		{"an expression in lines as on Windows", "a.deny.cel", "request.name == '' ?\r\n\trequest.nme :\r\n\t''\r\n", `a.deny.cel:2:2: undeclared reference to "request.nme"; did you mean "request.name"?
  	request.nme :
  	^`},
		{"UTF-16", "a.yaml", string(utf16Text), "a.yaml: the file is in UTF-16: save it in UTF-8"},
		{"UTF-16, the other way round", "a.deny.cel", "\xfe\xff\x00'\x00'", "a.deny.cel: the file is in UTF-16: save it in UTF-8"},
		{"Latin-1", "a.deny.cel", "'a' +\n'gr\xfcn'", "a.deny.cel:2:4: byte 0xfc is not text: policy files are in UTF-8\n  'gr\xfcn'\n     ^"},
		{"a null byte", "a.yaml", "kind: a\x00b", "a.yaml:1:8: byte 0x00 is not text: policy files are in UTF-8\n  kind: a\x00b\n         ^"},
		{"only a byte order mark", "a.yaml", "\ufeff", "a.yaml:1:1: the file is empty: write the policy or remove the file"},
		{"only white space", "a.deny.cel", " \r\n\t", "a.deny.cel:1:1: the file is empty: write the policy or remove the file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := compile([]File{{Name: tt.file, Data: []byte(tt.data)}}, Options{}, nil)
			if errs.Error() != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", errs.Error(), tt.want)
			}
		})
	}
}

// TestAllFilesAtOnce has a mistake in each of a hundred files, handed over in the
// wrong order: all of them are told, in the order of their places.
func TestAllFilesAtOnce(t *testing.T) {
	var files []File
	var want bytes.Buffer
	for i := range 100 {
		name := string([]byte{'a' + byte(i/10), '0' + byte(i%10)}) + ".deny.cel"
		files = append([]File{{Name: name, Data: []byte("request.nme")}}, files...)
		want.WriteString(name + ":1:1: undeclared reference to \"request.nme\"; did you mean \"request.name\"?\n  request.nme\n  ^\n")
	}
	_, errs := compile(files, Options{}, nil)
	if got := errs.Error() + "\n"; got != want.String() {
		t.Errorf("got:\n%s\nwant:\n%s", got, want.String())
	}
}

package discovery

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// An OpenAPIV2Document is a document as clients get it, in JSON and in protobuf. It
// never changes and may be used by any number of goroutines.
type OpenAPIV2Document struct {
	etag  string
	forms [formsV2]writtenV2
}

type writtenV2 struct {
	plain []byte // nil: the document cannot be written so

	zipOnce sync.Once
	zipped  []byte
}

const (
	jsonV2Form = iota
	protobufV2Form
	formsV2 // how many there are
)

// The types that a document is asked for by and answered with, in kube-apiserver's
// order. kubectl asks for protobuf by the deprecated name, which a media type may
// not have; the answer has the right one.
var typesV2 = []struct {
	subtype string
	form    int
}{
	{"json", jsonV2Form},
	{"com.github.proto-openapi.spec.v2@v1.0+protobuf", protobufV2Form},
	{"com.github.proto-openapi.spec.v2.v1.0+protobuf", protobufV2Form},
}

var contentTypesV2 = [formsV2]string{"application/json", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}

// Write writes the document. An error says that there is no protobuf of it; the
// result answers JSON then, and leaves protobuf to a server.
func (d *OpenAPIV2) Write() (*OpenAPIV2Document, error) {
	out := &OpenAPIV2Document{}
	text := d.JSON()
	out.forms[jsonV2Form].plain = text
	out.etag = quotedHash(text)
	parsed, err := openapiv2.ParseDocument(text)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // there is a line for each place
		return out, fmt.Errorf("cannot write the OpenAPI v2 document as protobuf: %s", first)
	}
	out.forms[protobufV2Form].plain, err = proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	if err != nil {
		return out, fmt.Errorf("cannot write the OpenAPI v2 document as protobuf: %w", err)
	}
	return out, nil
}

// Answer answers GET and HEAD of /openapi/v2 as kube-apiserver does, given the
// values of Accept, Accept-Encoding and If-None-Match. ok is false where a server
// answers better.
func (d *OpenAPIV2Document) Answer(accept, acceptEncoding, ifNoneMatch string) (a *Answer, ok bool) {
	a = &Answer{Status: http.StatusOK, ETag: d.etag, Vary: "Accept-Encoding, Accept", CacheControl: "no-cache, private"}
	form, ok := negotiateV2(accept)
	if !ok {
		a.Status, a.ETag = http.StatusNotAcceptable, ""
		return a, true
	}
	written := &d.forms[form]
	if written.plain == nil {
		return nil, false
	}
	if matchesETag(ifNoneMatch, d.etag) {
		a.Status = http.StatusNotModified
		return a, true
	}
	a.ContentType, a.Body = contentTypesV2[form], written.plain
	if acceptsGzip(acceptEncoding) {
		a.Encoding, a.Body = "gzip", written.gzip()
	}
	return a, true
}

// negotiateV2 chooses the form as kube-openapi does: the first that the clauses, in
// their order, allow.
func negotiateV2(accept string) (form int, ok bool) {
	if accept == "" {
		return jsonV2Form, true
	}
	clauses := parseAccept(accept)
	for _, c := range clauses {
		for _, t := range typesV2 {
			if (c.Type == "application" || c.Type == "*") && (c.SubType == t.subtype || c.SubType == "*") {
				return t.form, true
			}
		}
	}
	return 0, false
}

// acceptsGzip reports whether an Accept-Encoding header (RFC 9110, section 12.5.3)
// names gzip, other than to forbid it.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		quality, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameters)), "q=")
		if !ok {
			return true
		}
		q, err := strconv.ParseFloat(quality, 64)
		return err == nil && q > 0
	}
	return false
}

// gzip compresses on first use: a client that takes gzip nearly always comes, and
// what is kept is a tenth of the document.
func (w *writtenV2) gzip() []byte {
	w.zipOnce.Do(func() {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(w.plain) // into memory
		_ = z.Close()
		w.zipped = out.Bytes()
	})
	return w.zipped
}

package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/munnerz/goautoneg"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// form is how the answer to a converted request is written for the client. Its
// server is always asked for JSON, the one form that is converted as it streams by.
type form string

const (
	formNone     form = "" // none that the client takes
	formJSON     form = "application/json"
	formYAML     form = "application/yaml"
	formProtobuf form = mediaProtobuf
	formCBOR     form = form(mediaCBOR)
)

// forms are kube-apiserver's, in its order: where a client takes anything, it gets
// the first. CBOR is among them whether or not the servers have it: what is converted is
// the proxy's own to write, and a client sees the same before servers that differ.
var forms = []form{formJSON, formYAML, formProtobuf, formCBOR}

// form is the form of the answer that kube-apiserver would choose by the client's
// Accept line.
func (x *exchange) form() form {
	accept := acceptLine(x.in.Header)
	if accept == "" {
		return formJSON
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, f := range forms {
			if f.in(clause) && x.gives(f, clause.Params) {
				return f
			}
		}
	}
	return formNone
}

// in reports whether the media range of a clause admits the form.
func (f form) in(clause goautoneg.Accept) bool {
	main, sub, _ := strings.Cut(string(f), "/")
	switch {
	case clause.Type == "*":
		return clause.SubType == "*"
	case clause.Type != main:
		return false
	}
	return clause.SubType == sub || clause.SubType == "*"
}

// gives reports whether the request can be answered in the form with the parameters
// of a media range. As with kube-apiserver, there are no tables in protobuf, of
// custom resources only metadata, and no watches in YAML.
func (x *exchange) gives(f form, params map[string]string) bool {
	stream := params["stream"]
	if stream != "" && stream != "watch" || f == formYAML && (stream != "" || x.req.Verb == "watch") {
		return false
	}
	as, group, version := params["as"], params["g"], params["v"]
	if as == "" && group == "" && version == "" {
		return f != formProtobuf || x.goType() != nil
	}
	if group != metav1.GroupName || version != "v1" && version != "v1beta1" {
		return false
	}
	switch as {
	case "Table":
		return f != formProtobuf
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	}
	return false
}

// notAcceptable is the answer to a client that takes no form that there is.
func (x *exchange) notAcceptable(accept string) error {
	given := []string{"application/json", "application/yaml"}
	if x.goType() != nil {
		given = append(given, mediaProtobuf)
	}
	given = append(given, mediaCBOR)
	if x.req.Verb == "watch" {
		given = []string{"application/json;stream=watch"}
		if x.goType() != nil {
			given = append(given, mediaProtobuf+";stream=watch")
		}
		given = append(given, mediaCBORSeq)
	}
	return &statusError{
		code: http.StatusNotAcceptable, reason: metav1.StatusReasonNotAcceptable,
		message: fmt.Sprintf("only the following media types are accepted: %s (%s %s is converted between versions), but Accept is %s",
			strings.Join(given, ", "), x.conv.From.APIVersion(), x.conv.From.Resource, clip(accept)),
	}
}

// written makes a document, in JSON in the client's version, the body of the answer
// in the client's form. What has no such form is answered in JSON, and so is a refusal
// that cannot be read.
func (x *exchange) written(resp *front.Response, doc []byte) (*front.Response, error) {
	f := x.form()
	body, err := f.write(doc)
	if err != nil && resp.Status >= 300 {
		body, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	resp.Stream, resp.Bytes = nil, doc
	if body != nil {
		resp.Bytes = body
		resp.Header.Set("Content-Type", string(f))
	}
	return resp, nil
}

// write gives a document in JSON in the form; nil where it has none, or stays as it is.
func (f form) write(doc []byte) ([]byte, error) {
	switch f {
	case formProtobuf:
		return protobufOf(doc)
	case formCBOR:
		return cborOf(doc)
	case formYAML:
		var body bytes.Buffer
		err := writeYAML(&body, bytes.NewReader(doc))
		return body.Bytes(), err
	}
	return nil, nil
}

// streamed makes convert, which writes a document that is too large to be held in
// JSON, the body of the answer in the client's form.
func (x *exchange) streamed(resp *front.Response, convert func(w io.Writer) error) (*front.Response, error) {
	switch x.form() {
	case formProtobuf:
		list := protobufList{reserve: x.body.reserve}
		r, stop := pulled(convert)
		defer stop()
		if err := list.read(r); err != nil {
			return nil, err
		}
		resp.Stream = list.writeTo
		resp.Header.Set("Content-Type", mediaProtobuf)
	case formYAML:
		resp.Stream = writtenBy(writeYAML, convert)
		resp.Header.Set("Content-Type", string(formYAML))
	case formCBOR:
		resp.Stream = writtenBy(writeCBORList, convert)
		resp.Header.Set("Content-Type", string(formCBOR))
	default:
		resp.Stream = convert
	}
	return resp, nil
}

// writtenBy streams what convert writes, in another form.
func writtenBy(write func(w io.Writer, r io.Reader) error, convert func(w io.Writer) error) func(w io.Writer) error {
	return func(w io.Writer) error {
		r, stop := pulled(convert)
		defer stop()
		return write(w, r)
	}
}

// watched makes the events that the answer streams, in JSON, events in the client's
// form. A watch that is followed sees to that itself: its next answer may come in the
// client's form.
func (x *exchange) watched(resp *front.Response) *front.Response {
	contentType := x.eventsType()
	if contentType == "" {
		return resp
	}
	resp.Header.Set("Content-Type", contentType)
	if stream := resp.Stream; !x.watch.follows(x.answer) {
		resp.Stream = func(w io.Writer) error { return stream(x.events(w)) }
	}
	return resp
}

// eventsType is the Content-Type of the events of a converted watch in the client's form;
// "" where they come as they are converted.
func (x *exchange) eventsType() string {
	switch x.form() {
	case formProtobuf:
		return mediaProtobuf + ";stream=watch"
	case formCBOR:
		return mediaCBORSeq
	}
	return ""
}

// events takes converted events in JSON and writes them to w in the client's form.
func (x *exchange) events(w io.Writer) io.Writer {
	if x.eventsType() == "" {
		return w
	}
	return &formEvents{x: x, w: w, form: x.form()}
}

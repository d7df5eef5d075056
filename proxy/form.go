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
)

// forms are kube-apiserver's, in its order: where a client takes anything, it gets
// the first.
var forms = []form{formJSON, formYAML, formProtobuf}

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
	given := "application/json, application/yaml"
	switch {
	case x.req.Verb == "watch" && x.goType() != nil:
		given = "application/json;stream=watch, " + mediaProtobuf + ";stream=watch"
	case x.req.Verb == "watch":
		given = "application/json;stream=watch"
	case x.goType() != nil:
		given += ", " + mediaProtobuf
	}
	return &statusError{
		code: http.StatusNotAcceptable, reason: metav1.StatusReasonNotAcceptable,
		message: fmt.Sprintf("only the following media types are accepted: %s (%s %s is converted between versions), but Accept is %s",
			given, x.conv.From.APIVersion(), x.conv.From.Resource, clip(accept)),
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
		resp.Stream = func(w io.Writer) error {
			r, stop := pulled(convert)
			defer stop()
			return writeYAML(w, r)
		}
		resp.Header.Set("Content-Type", string(formYAML))
	default:
		resp.Stream = convert
	}
	return resp, nil
}

// watched makes the events that the answer streams, in JSON, events in the client's
// form.
func (x *exchange) watched(resp *front.Response) *front.Response {
	if x.form() != formProtobuf {
		return resp
	}
	stream := resp.Stream
	resp.Stream = func(w io.Writer) error { return stream(&protobufEvents{x: x, w: w}) }
	resp.Header.Set("Content-Type", mediaProtobuf+";stream=watch")
	return resp
}

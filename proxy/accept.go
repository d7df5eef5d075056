package proxy

import (
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// maxMediaRanges bounds how many alternatives of an Accept header are looked at;
// client-go sends at most four.
const maxMediaRanges = 64

// acceptJSON narrows the Accept lines to what a converted answer can be: JSON,
// with its parameters (as=Table keeps its meaning). An answer in protobuf, CBOR
// or YAML could not be converted, so the server must not be asked for one.
func acceptJSON(h *wire.Header) error {
	values := h.Values("Accept")
	if strings.Trim(strings.Join(values, ""), ", \t") == "" { // none, or an empty one: anything will do
		h.Set("Accept", "application/json")
		return nil
	}
	var kept []string
	seen := 0
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			if seen++; seen > maxMediaRanges {
				break
			}
			if r := jsonRange(strings.TrimSpace(element)); r != "" {
				kept = append(kept, r)
			}
		}
	}
	if len(kept) == 0 {
		return &statusError{
			code:   http.StatusNotAcceptable,
			reason: metav1.StatusReasonNotAcceptable,
			message: "only application/json can be answered for a resource that is converted between versions, " +
				"but Accept is " + clip(strings.Join(values, ", ")),
		}
	}
	h.Set("Accept", strings.Join(kept, ","))
	return nil
}

// jsonRange returns a media range as it goes upstream, or "" when it admits no
// JSON.
func jsonRange(element string) string {
	if element == "*" { // Java's HttpURLConnection and others that mean */*
		return "application/json"
	}
	mediaType, params, err := mime.ParseMediaType(element)
	if err != nil {
		return ""
	}
	switch mediaType {
	case "application/json":
		return element
	case "*/*", "application/*":
		if q := params["q"]; q != "" {
			return "application/json;q=" + q
		}
		return "application/json"
	}
	return ""
}

// isJSON reports whether a Content-Type is JSON. No Content-Type counts as JSON
// where the apiserver's default applies, so the caller says.
func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json"
}

// clip cuts a client's text for a message.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

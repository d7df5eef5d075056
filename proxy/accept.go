package proxy

import (
	"mime"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// maxMediaRanges bounds how many alternatives of an Accept header are looked at;
// client-go sends at most four.
const maxMediaRanges = 64

// acceptLine joins the Accept lines, without what is more than maxMediaRanges; ""
// when there is none, or an empty one: anything will do.
func acceptLine(h wire.Header) string {
	line := strings.Join(h.Values("Accept"), ",")
	if strings.Trim(line, ", \t") == "" {
		return ""
	}
	elements := strings.SplitN(line, ",", maxMediaRanges+1)
	return strings.Join(elements[:min(len(elements), maxMediaRanges)], ",")
}

// narrowAccept makes the Accept lines ask the server for JSON, with the parameters
// (as=Table keeps its meaning) of what the client takes in the form that it will be
// answered in: an answer in another form could not be converted.
func (x *exchange) narrowAccept() error {
	accept := acceptLine(x.in.Header)
	if accept == "" {
		x.header.Set("Accept", "application/json")
		return nil
	}
	asJSON := jsonRange
	if f := x.form(); f != formNone && f != formJSON {
		asJSON = func(element string) string { return rangeOf(element, f) }
	}
	var kept []string
	for element := range strings.SplitSeq(accept, ",") {
		if r := asJSON(strings.TrimSpace(element)); r != "" {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return x.notAcceptable(accept)
	}
	x.header.Set("Accept", strings.Join(kept, ","))
	return nil
}

// rangeOf returns a media range of the form f with JSON in its place, or "" when it
// is of another.
func rangeOf(element string, f form) string {
	mediaType, params, found := strings.Cut(element, ";")
	if strings.TrimSpace(mediaType) != string(f) {
		return ""
	}
	if !found {
		return string(formJSON)
	}
	return string(formJSON) + ";" + params
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

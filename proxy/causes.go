package proxy

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/proxy/front"
)

// maxStatus is up to which size a server's refusal is held, so that it can be told in
// the client's names. One with a thousand causes has 200 KiB; a larger one passes.
const maxStatus = 1 << 20

// convertRefusal hands on what the server says against the request, with the fields and
// kinds that it names called as the client's version calls them.
func (x *exchange) convertRefusal(resp *front.Response) (*front.Response, error) {
	head, err := io.ReadAll(io.LimitReader(x.answer.Body, maxStatus+1))
	if err != nil {
		return nil, err
	}
	if len(head) > maxStatus {
		resp.Stream = func(w io.Writer) error {
			return x.copyFrom(w, io.MultiReader(bytes.NewReader(head), x.answer.Body))
		}
		return resp, nil
	}
	return x.written(resp, x.conv.Status(nil, head))
}

// convertWarnings calls the fields that the server's warnings name as the client's version
// calls them, and takes back those of the proxy's own that the server gives, too.
func (x *exchange) convertWarnings() {
	const name = "Warning"
	lines := x.answer.Header.Values(name)
	if len(lines) == 0 {
		return
	}
	x.answer.Header.DelName(name)
	told := make([]string, 0, len(lines))
	for _, line := range lines {
		if text, ok := warningText(line); ok {
			if mapped := x.conv.ClientText(text); mapped != text {
				line = warning(mapped)
			}
		}
		if !slices.Contains(told, line) {
			told = append(told, line)
			x.answer.Header.Add(name, line)
		}
	}
	x.warnings = slices.DeleteFunc(x.warnings, func(w string) bool { return slices.Contains(told, warning(w)) })
}

// warningText is what a Warning line says, as kube-apiserver writes it; false for
// another agent's, a date, or several warnings in one line.
func warningText(line string) (string, bool) {
	quoted, ok := strings.CutPrefix(line, `299 - "`)
	if !ok || len(quoted) == 0 || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	quoted = quoted[:len(quoted)-1]
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch quoted[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(quoted) {
				return "", false
			}
		}
		b.WriteByte(quoted[i])
	}
	return b.String(), true
}

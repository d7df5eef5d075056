package proxy

import "strings"

// maxWarning is how much of a warning's text a client is sent, in bytes;
// kube-apiserver cuts its own at 256 where there are many.
const maxWarning = 1024

// warning writes text as a Warning header value (RFC 7234 section 5.5) the way
// kube-apiserver does, so that kubectl shows it.
func warning(text string) string {
	if len(text) > maxWarning {
		text = text[:maxWarning]
	}
	var b strings.Builder
	b.WriteString(`299 - "`)
	for _, r := range strings.ToValidUTF8(text, "") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

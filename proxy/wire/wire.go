// Package wire holds what the client's side and the upstream's side of the proxy
// have in common: the header lines of an HTTP/1.1 message as they were sent.
//
// It parses nothing and knows no connection.
package wire

import "strings"

// Field is one header line: the name in the case it was sent in, and the value
// without surrounding white space.
type Field struct {
	Name, Value string
}

// Header is the header lines of a message in their order, repetitions kept.
// Names compare without regard to case (RFC 9110 section 5.1). A Header is not
// safe for concurrent use while one goroutine changes it.
type Header []Field

// Get returns the value of the first line called name, or "".
func (h Header) Get(name string) string {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return h[i].Value
		}
	}
	return ""
}

// Has reports whether there is a line called name.
func (h Header) Has(name string) bool {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return true
		}
	}
	return false
}

// Values returns the values of all lines called name, in order.
func (h Header) Values(name string) []string {
	var values []string
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			values = append(values, h[i].Value)
		}
	}
	return values
}

// HasToken reports whether a line called name lists token, as Connection and
// Upgrade do: elements separated by commas, compared without regard to case.
func (h Header) HasToken(name, token string) bool {
	for i := range h {
		if !strings.EqualFold(h[i].Name, name) {
			continue
		}
		for element := range strings.SplitSeq(h[i].Value, ",") {
			if strings.EqualFold(strings.Trim(element, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// Add appends a line.
func (h *Header) Add(name, value string) {
	*h = append(*h, Field{name, value})
}

// Set makes name: value the only line called name. It takes the place of the
// first one, or the end.
func (h *Header) Set(name, value string) {
	kept := (*h)[:0]
	done := false
	for _, field := range *h {
		if strings.EqualFold(field.Name, name) {
			if done {
				continue
			}
			done = true
			field = Field{name, value}
		}
		kept = append(kept, field)
	}
	if !done {
		kept = append(kept, Field{name, value})
	}
	*h = kept
}

// Del removes every line whose name drop accepts.
func (h *Header) Del(drop func(name string) bool) {
	kept := (*h)[:0]
	for _, field := range *h {
		if !drop(field.Name) {
			kept = append(kept, field)
		}
	}
	*h = kept
}

// DelName removes every line called name.
func (h *Header) DelName(name string) {
	h.Del(func(n string) bool { return strings.EqualFold(n, name) })
}

// Clone returns a copy that shares no lines with h, with room for extra more.
func (h Header) Clone(extra int) Header {
	c := make(Header, len(h), len(h)+extra)
	copy(c, h)
	return c
}

// hopByHop are the names of RFC 9110 section 7.6.1 and the older ones that
// proxies remove all the same.
var hopByHop = [...]string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
}

// EndToEnd removes the lines that belong to one connection only: the fixed
// hop-by-hop names and those that Connection lists. Names for which keep returns
// true survive a listing in Connection, so that a client cannot make the proxy
// drop, say, its own Authorization. A nil keep protects nothing.
func (h *Header) EndToEnd(keep func(name string) bool) {
	var listed []string
	for _, value := range h.Values("Connection") {
		for element := range strings.SplitSeq(value, ",") {
			if element = strings.Trim(element, " \t"); element != "" {
				listed = append(listed, element)
			}
		}
	}
	h.Del(func(name string) bool {
		for _, hop := range hopByHop {
			if strings.EqualFold(name, hop) {
				return true
			}
		}
		for _, l := range listed {
			if strings.EqualFold(name, l) && (keep == nil || !keep(name)) {
				return true
			}
		}
		return false
	})
}

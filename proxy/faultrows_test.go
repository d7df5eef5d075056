package proxy_test

import (
	"io"
	"net/http"
	"strings"
)

// fault is what a server does instead of answering a request as it should.
type fault struct {
	name string
	do   func(q request, echo string) string // what it writes, if it has not itself
	code int                                 // that clients get where nobody else may answer
	cut  bool                                // the answer has begun, and breaks off
	get  int                                 // that those get who only read; 0: code
}

// echoed is a body that tells whose answer it is.
func echoed(q request) string { return "<" + q.target + ">" }

const head200 = "HTTP/1.1 200 OK\r\n"

// says writes text and leaves the connection open.
func says(text string) func(request, string) string {
	return func(_ request, echo string) string { return strings.ReplaceAll(text, "ECHO", echo) }
}

// hangsUp writes text and closes the connection.
func hangsUp(text string) func(request, string) string {
	return func(q request, echo string) string {
		_, _ = io.WriteString(q.conn, strings.ReplaceAll(text, "ECHO", echo))
		_ = q.conn.Close()
		return ""
	}
}

// resets writes text and resets the connection.
func resets(text string) func(request, string) string {
	return func(q request, echo string) string {
		_, _ = io.WriteString(q.conn, strings.ReplaceAll(text, "ECHO", echo))
		reset(q.conn)
		return ""
	}
}

// below writes text over TLS, and bytes below it.
func below(text, bytes string) func(request, string) string {
	return func(q request, echo string) string {
		_, _ = io.WriteString(q.conn, strings.ReplaceAll(text, "ECHO", echo))
		_, _ = io.WriteString(socket(q.conn), bytes)
		return ""
	}
}

const (
	readElsewhere = http.StatusOK
	brokeOff      = http.StatusBadGateway
	tooLate       = http.StatusGatewayTimeout

	tlsAlert = "\x15\x03\x03\x00\x02\x02\x50" // internal_error
)

var faults = []fault{
	// Before the answer.
	{"closes before the answer", hangsUp(""), brokeOff, false, readElsewhere},
	{"resets before the answer", resets(""), brokeOff, false, readElsewhere},
	{"closes in the status line", hangsUp("HTTP/1.1 20"), brokeOff, false, readElsewhere},
	{"closes in the head", hangsUp(head200 + "X: ECHO\r\nContent-Le"), brokeOff, false, readElsewhere},
	{"resets in the head", resets(head200 + "X: ECHO\r\n"), brokeOff, false, readElsewhere},
	// Answers that are none.
	{"garbage", says("\x00\x01\xffECHO\r\n\r\n"), brokeOff, false, readElsewhere},
	{"another protocol", hangsUp("SSH-2.0-OpenSSH_9.6\r\n"), brokeOff, false, readElsewhere},
	{"HTTP/0.9", hangsUp("<html>ECHO</html>"), brokeOff, false, readElsewhere},
	{"HTTP/2", says("HTTP/2.0 200 OK\r\n\r\n"), brokeOff, false, readElsewhere},
	{"no status", says("HTTP/1.1 two hundred\r\n\r\n"), brokeOff, false, readElsewhere},
	{"bare LF", says("HTTP/1.1 200 OK\nX: ECHO\n\r\n"), brokeOff, false, readElsewhere},
	{"NUL in a line", says(head200 + "X: a\x00ECHO\r\n\r\n"), brokeOff, false, readElsewhere},
	{"a folded line", says(head200 + "X: a\r\n ECHO\r\n\r\n"), brokeOff, false, readElsewhere},
	{"no colon", says(head200 + "ECHO\r\n\r\n"), brokeOff, false, readElsewhere},
	{"a head beyond the limit", hangsUp(head200 + "X: " + strings.Repeat("x", 300<<10) + "\r\n\r\n"), brokeOff, false, readElsewhere},
	{"a negative length", says(head200 + "Content-Length: -1\r\n\r\nECHO"), brokeOff, false, readElsewhere},
	{"two lengths", says(head200 + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nECHO"), brokeOff, false, readElsewhere},
	{"length and chunked", says(head200 + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), brokeOff, false, readElsewhere},
	{"an unknown coding", says(head200 + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), brokeOff, false, readElsewhere},
	{"1xx without an end", says(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100)), brokeOff, false, readElsewhere},
	{"an upgrade that nobody asked for", says("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nECHO"), brokeOff, false, readElsewhere},
	// In the body.
	{"closes in the body", hangsUp(head200 + "Content-Length: 100000\r\n\r\nECHO"), 200, true, readElsewhere},
	{"resets in the body", resets(head200 + "Content-Length: 100000\r\n\r\nECHO"), 200, true, readElsewhere},
	{"closes in a chunk", hangsUp(head200 + "Transfer-Encoding: chunked\r\n\r\n64\r\nECHO"), 200, true, readElsewhere},
	{"closes before the last chunk", hangsUp(head200 + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"), 200, true, readElsewhere},
	{"closes in the last chunk", hangsUp(head200 + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"), 200, true, readElsewhere},
	{"resets in a chunk", resets(head200 + "Transfer-Encoding: chunked\r\n\r\n64\r\nECHO"), 200, true, readElsewhere},
	{"a chunk size that is none", says(head200 + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\nECHO\r\n"), 200, true, readElsewhere},
	{"a chunk that is longer", says(head200 + "Transfer-Encoding: chunked\r\n\r\n1\r\nxECHO\r\n0\r\n\r\n"), 200, true, readElsewhere},
	{"a trailer that is none", says(head200 + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nECHO\r\n\r\n"), 200, true, readElsewhere},
	{"a body until it resets", resets(head200 + "\r\nECHO"), 200, true, readElsewhere},
	// More than the answer.
	{"a body that is longer", says(head200 + "Content-Length: 1\r\n\r\nxECHO"), 200, false, 0},
	{"two answers", says(head200 + "Content-Length: 1\r\n\r\nx" + head200 + "Content-Length: 1\r\n\r\nECHO"), 200, false, 0},
	{"a body where there is none", says("HTTP/1.1 204 No Content\r\n\r\n" + head200 + "X: ECHO\r\n\r\n"), 204, false, 0},
}

// stalls end with the time that a server has for a head.
var stalls = []fault{
	{"stalls before the answer", says(""), tooLate, false, 0},
	{"stalls in the head", says(head200 + "X: ECHO\r\n"), tooLate, false, 0},
	{"stalls after a 100", says("HTTP/1.1 100 Continue\r\n\r\n"), tooLate, false, 0},
}

var tlsFaults = []fault{
	{"an alert before the answer", below("", tlsAlert), brokeOff, false, readElsewhere},
	{"an alert in the body", below(head200+"Content-Length: 100000\r\n\r\nECHO", tlsAlert), 200, true, readElsewhere},
	{"a record that is none", below("", "HTTP/1.1 200 OK\r\n\r\n"), brokeOff, false, readElsewhere},
}

// Package front is the client's side of the proxy: it accepts connections, ends
// TLS, refuses what no well-behaved client sends, and hands every request to one
// [Handler] as a [Request], whose answer it writes.
//
// fasthttp reads the requests. It stops here: no type of it crosses the exported
// API, so that another protocol can join as a second adapter, and so that its
// rule of not using anything after the handler returned binds nobody else. The
// connections are the package's own from accept to close, because fasthttp does
// not tell when a client leaves, bounds no handshake, and counts no connection
// that became a tunnel. The answers are written by the package too, line by line
// as given: fasthttp reorders header lines, joins some and drops Date.
//
// The package knows nothing of Kubernetes but the form of its errors: what it
// refuses it answers with a metav1.Status. It decides nothing about a request
// that is well formed: authentication, limits on bodies and routing are the
// handler's. It speaks HTTP/1.1 only, adds no header line of its own, and writes
// no log line per request.
package front

// Package upstream knows the kube-apiservers behind the proxy: it keeps
// connections to them, sends requests and streams answers over these, and watches
// what each server is (its health, its version) and what it serves (its API
// resources, OpenAPI paths and CustomResourceDefinitions).
//
// A [Pool] holds the servers and probes them. Its [View] is an immutable picture
// of all of them; one [State] is one server in it. A [Server] makes HTTP/1.1 round
// trips, also for the client-go reflectors that follow CustomResourceDefinitions and
// APIServices.
//
// The package does not choose a server for a request, does not know policies,
// and does not convert anything: bytes of a request target, of header lines and of
// bodies pass as they are. It never retries what may have been executed; whether a
// request may be sent to another server is its caller's decision, and [Error] says
// what is known for it. It speaks no HTTP/2, follows no redirect, keeps no cookie,
// decodes no gzip and uses no forward proxy from the environment.
package upstream

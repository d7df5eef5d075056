// Package discovery merges what several kube-apiservers say about their APIs
// into what clients of the proxy see: the discovery documents of /api and /apis
// in every form that kube-apiserver has, and the OpenAPI v3 index. It adds the
// versions that the proxy serves by conversion, with an OpenAPI v3 document
// derived from that of the version that they are converted to.
//
// The package is pure: it asks no server, keeps no state between calls and
// decides nothing about a request but which discovery document answers it. A
// [Merged] and an [OpenAPIIndex] never change once made.
//
// It does not merge the OpenAPI documents of one group version: a document comes
// whole from one server. It does not touch OpenAPI v2, which goes to one server
// as it is; kubectl skips the validation of kinds that it does not find there.
package discovery

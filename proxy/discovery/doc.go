// Package discovery merges what several kube-apiservers say about their APIs
// into what clients of the proxy see: the discovery documents of /api and /apis
// in every form that kube-apiserver has, the OpenAPI v3 index, and the OpenAPI v2
// document. It adds the versions that the proxy serves by conversion, with OpenAPI
// documents derived from those of the version that they are converted to.
//
// The package is pure: it asks no server, keeps no state between calls and
// decides nothing about a request but which document answers it. A [Merged], an
// [OpenAPIIndex] and an [OpenAPIV2] never change once made.
//
// It does not merge the OpenAPI v3 documents of one group version: a document comes
// whole from one server.
package discovery

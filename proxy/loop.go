package proxy

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/proxy/front"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// maxHops bounds how many proxies a request has passed, by its X-Forwarded-For, to
// which each adds one: more than load balancers, kubectl proxies and MVPs in a row
// come to. It ends what upstream.InstanceHeader does not see, such as a way back
// through a kube-apiserver's aggregation.
const maxHops = 16

// statusLoop is the reason of an answer to a request that goes in circles.
const statusLoop metav1.StatusReason = "LoopDetected"

// ring answers what a request means for other proxies: a probe of one, which asks who
// is behind this one, or a request that has come round too often. Nil, nil: it is a
// client's.
func (x *exchange) ring() (*front.Response, error) {
	if x.req.Path == "/readyz" && x.in.Header.Has(upstream.InstanceHeader) {
		return x.introduce(), nil
	}
	if hops := x.hops(); hops > maxHops {
		return nil, &statusError{
			code: http.StatusLoopDetected, reason: statusLoop,
			message: "the request has passed too many proxies (X-Forwarded-For): one of this proxy's servers seems to send it back",
		}
	}
	return nil, nil
}

func (x *exchange) hops() (n int) {
	for i := range x.in.Header {
		if strings.EqualFold(x.in.Header[i].Name, "X-Forwarded-For") {
			n += 1 + strings.Count(x.in.Header[i].Value, ",")
		}
	}
	return n
}

// introduce tells another proxy whether this one is ready, and which it is.
func (x *exchange) introduce() *front.Response {
	resp := &front.Response{
		Status: http.StatusOK, Bytes: []byte("ok"), NoBody: x.in.Method == http.MethodHead,
		Header: wire.Header{
			{Name: "Content-Type", Value: "text/plain; charset=utf-8"},
			{Name: "Cache-Control", Value: "no-cache, private"},
			{Name: upstream.InstanceHeader, Value: strings.Join(x.s.cfg.Upstreams.Instances(), ", ")},
		},
	}
	if x.s.Ready() != nil {
		resp.Status, resp.Bytes = http.StatusServiceUnavailable, []byte("[-]mvp not ready\n")
	}
	return resp
}

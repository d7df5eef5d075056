package proxy

import (
	"slices"

	"github.com/mixed-version-proxy/mvp/engine"
)

// passOver reports whether the request takes its steps again without the policy that
// failed with err. What a server may have seen stays as it is.
func (x *exchange) passOver(err error) bool {
	return !x.sent && x.passed.Add(err, x.conv)
}

// servedWithout returns the failure of the policy that was passed over where
// nothing is won by that: no other policy converts the request, and no server
// serves it as it is.
func (x *exchange) servedWithout() error {
	if len(x.passed.Policies()) == 0 || x.conv != nil || x.served(x.req.Group, x.req.Version, x.req.Resource) {
		return nil
	}
	conv, err := x.passed.InVain()
	if err != nil {
		x.conv = conv
	}
	return err
}

// ignored are the policies that failed on the request and were passed over.
func (x *exchange) ignored() []engine.Ignored {
	if x.decision == nil {
		return x.passed.Ignored()
	}
	return slices.Concat(x.decision.Ignored, x.passed.Ignored())
}

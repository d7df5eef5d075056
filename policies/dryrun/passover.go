package dryrun

import "slices"

// passOver reports whether the request takes its steps again without the policy that
// failed with err, as in a proxy. What a server has seen stays as it is.
func (r *run) passOver(err error) bool {
	return !r.sent && r.passed.Add(err, r.Conversion)
}

// servedWithout returns the failure of the policy that was passed over where
// nothing is won by that: no other policy converts the request, and no server
// serves it as it is.
func (r *run) servedWithout() error {
	if len(r.passed.Policies()) == 0 || r.Conversion != nil || served(r.servers, r.Request.Group, r.Request.Version, r.Request.Resource) {
		return nil
	}
	conversion, err := r.passed.InVain()
	if err != nil {
		r.Conversion = conversion
		r.Ignored = slices.Concat(r.decision.Ignored, r.passed.Ignored())
	}
	return err
}

package convert

import (
	"sigs.k8s.io/yaml"
)

// Apply appends to dst the client's apply configuration src (the body of a
// server-side apply), which is JSON or YAML, as JSON for the server. It is
// converted as an object is, except that [EnsureFieldExistence] does not apply:
// the client must not come to own fields that it did not name.
//
// The error is an [*Error]; dst is then returned unchanged.
func (c *Converter) Apply(dst, src []byte, vars *Vars) ([]byte, error) {
	if len(src) > c.limits.ObjectBytes {
		return dst, c.badBody(ToServer, "cannot convert an apply configuration of %d bytes: the limit is %d", len(src), c.limits.ObjectBytes)
	}
	if i := skipSpace(src, 0); i < len(src) && src[i] == '{' {
		if end, f := checkValue(src, i, 0); f == noFault && skipSpace(src, end) == len(src) {
			return c.object(dst, src, ToServer, applied, vars)
		}
		// A flow mapping of YAML, or a mistake that the YAML parser explains better.
	}
	// The YAML package itself refuses documents that aliases blow up.
	text, err := yaml.YAMLToJSON(src)
	if err != nil {
		return dst, &Error{Policy: c.spec.Policy, Msg: "error decoding YAML: " + err.Error(), Invalid: true, Err: err}
	}
	return c.object(dst, text, ToServer, applied, vars)
}

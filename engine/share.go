package engine

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Share returns where in [0,1) a text falls: the first 13 hexadecimal digits of its
// SHA-256 as a fraction of 16^13. So it is the same in every process and release,
// anyone can work it out, and texts that are nearly alike fall far apart.
func Share(text string) float64 {
	const bits = 52 // which a float64 holds exactly
	sum := sha256.Sum256([]byte(text))
	return float64(binary.BigEndian.Uint64(sum[:])>>(64-bits)) / (1 << bits)
}

// shareFunction declares share(string).
func shareFunction() cel.EnvOption {
	return cel.Function("share", cel.Overload("share_string", []*cel.Type{cel.StringType}, cel.DoubleType,
		cel.UnaryBinding(func(arg ref.Val) ref.Val {
			text, ok := arg.(types.String)
			if !ok {
				return types.NoSuchOverloadErr()
			}
			return types.Double(Share(string(text)))
		})))
}

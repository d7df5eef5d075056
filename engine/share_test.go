package engine

import (
	"fmt"
	"math"
	"testing"
)

// TestShare holds the function to values of another program: the first 13 digits that
// sha256sum prints, as a fraction of 16^13.
func TestShare(t *testing.T) {
	for text, digits := range map[string]uint64{
		"":                    0xe3b0c44298fc1,
		"a":                   0xca978112ca1bb,
		"kubectl/v1.20.4":     0x89e1d0b2e45d1,
		"system:kube-proxy":   0xcf67d40e291aa,
		"alice2026-rollout-a": 0x73cd17d6008bc,
		"ü":                   0x607474ca475a9,
	} {
		want := float64(digits) / (1 << 52)
		if got := Share(text); got != want {
			t.Errorf("Share(%q) = %v, want %v", text, got, want)
		}
		set := mustCompile(t, Policy{Name: "a", Deny: textOf(fmt.Sprintf("share(%q) == %.17f ? 'yes' : 'no'", text, want))})
		d, err := set.Decide(&Input{Request: mustParse(t, "GET", "/api/v1/pods")})
		if err != nil || d.Denied == nil || d.Denied.Message != "yes" {
			t.Errorf("share(%q) in an expression: %+v, %v", text, d.Denied, err)
		}
	}
}

// TestShareIsEven checks that names that are nearly alike fall into a share as often
// as the share is large.
func TestShareIsEven(t *testing.T) {
	const names = 20_000
	for _, share := range []float64{0.01, 0.1, 0.5} {
		in := 0
		for i := range names {
			if Share(fmt.Sprintf("system:serviceaccount:shop:agent-%d", i)) < share {
				in++
			}
		}
		// Six standard deviations; the names are always the same, so it never fails by chance.
		if off := math.Abs(float64(in) - share*names); off > 6*math.Sqrt(names*share*(1-share)) {
			t.Errorf("of %d names %d are in a share of %v", names, in, share)
		}
	}
}

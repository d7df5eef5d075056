package engine

import "testing"

func TestParseVersion(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		v, err := ParseVersion(s)
		got := v.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("ParseVersion(%q)\n got %s\nwant %s", s, got, want)
		}
	}
	f("v1.32.4", "1.32.4")
	f("1.32.4", "1.32.4")
	f("v1.31.14-gke.100", "1.31.14")
	f("v1.35.0-alpha.1.2+4f2e", "1.35.0")
	f("v1.30.1+k3s1", "1.30.1")

	const want = `: want one such as "v1.32.4"`
	f("", `cannot read server version ""`+want)
	f("v1.32", `cannot read server version "v1.32"`+want)
	f("v1.32.4.5", `cannot read server version "v1.32.4.5"`+want)
	f("v1.-2.4", `cannot read server version "v1.-2.4"`+want)
	f("v1..4", `cannot read server version "v1..4"`+want)
	f("v1.1234567890.4", `cannot read server version "v1.1234567890.4"`+want)
}

func TestVersionCompare(t *testing.T) {
	ordered := []Version{{}, {1, 31, 14}, {1, 32, 0}, {1, 32, 13}, {2, 0, 0}}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("(%v).Compare(%v) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestVersionPattern(t *testing.T) {
	f := func(pattern, version string, want bool) {
		t.Helper()
		p, err := ParseVersionPattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Matches(v); got != want {
			t.Errorf("%s matches %s: got %v, want %v", pattern, version, got, want)
		}
		again, err := ParseVersionPattern(p.String())
		if err != nil || again != p {
			t.Errorf("%s is written %s, which is %v (%v)", pattern, p, again, err)
		}
	}
	f("v1.32.y", "v1.32.13", true)
	f("v1.32", "v1.32.0", true)
	f("1.32", "v1.32.0", true)
	f("v1.32.4", "v1.32.4", true)
	f("v1.32.4", "v1.32.5", false)
	f("v1.32.y", "v1.3.2", false)
	f("v1.32.0", "v1.32.1", false)

	for _, s := range []string{"", "v1", "v1.y", "v1.32.x", "v1.32.4.5", "v1.32.", "latest"} {
		_, err := ParseVersionPattern(s)
		want := `cannot read server version "` + s + `": want "v1.32.y", "v1.32" or "v1.32.4"`
		if err == nil || err.Error() != want {
			t.Errorf("ParseVersionPattern(%q)\n got %v\nwant %s", s, err, want)
		}
	}
}

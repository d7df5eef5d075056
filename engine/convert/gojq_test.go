package convert

import (
	"strings"
	"testing"

	"github.com/itchyny/gojq"
)

// decodedRename is the rename of the first path to the second in jq, for a field
// whose parent does not change.
func decodedRename(t testing.TB, from, to path) *gojq.Code {
	t.Helper()
	parent := "."
	for _, e := range from[:len(from)-1] {
		parent += "[" + string(appendQuoted(nil, e.key)) + "]?"
	}
	old := string(appendQuoted(nil, from[len(from)-1].key))
	name := string(appendQuoted(nil, to[len(to)-1].key))
	query, err := gojq.Parse(`(` + parent + ` | select(type == "object" and has(` + old + `))) |=
		(.[` + old + `] as $v | del(.[` + old + `]) | .[` + name + `] = $v)`)
	if err != nil {
		t.Fatal(err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// FuzzRenameAsJQ compares a declarative rename with the same in jq on the decoded
// object.
func FuzzRenameAsJQ(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := newDice(seed)
		spec := articleSpec()
		spec.Rules = []Rule{{Action: Rename, Path: r.fieldPath(false)}}
		from, err := parsePath(spec.Rules[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		to := append(from[:len(from)-1:len(from)-1], elem{key: pick(r, "a", "b", "c", "d")})
		spec.Rules[0].TargetPath = to.String()
		c, errs := Compile(spec)
		if errs != nil {
			return // from and to are the same
		}
		x := text(t, r.object(false))
		got, err := c.Object(nil, x, ToServer, nil)
		if err != nil && strings.HasSuffix(err.Error(), "must not have both") {
			return // jq would lose one of the two
		}
		if err != nil {
			t.Fatal(err)
		}
		v, ok := decodedRename(t, from, to).Run(parsed(t, x)).Next()
		if err, failed := v.(error); !ok || failed {
			t.Fatalf("jq on %s: %v", x, err)
		}
		if want := text(t, v); !sameJSON(t, got, want) {
			t.Fatalf("rename %s to %s of %s\n got %s\nwant %s", from, to, x, got, want)
		}
	})
}

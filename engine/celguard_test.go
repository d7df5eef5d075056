package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestGuards evaluates the functions that can make gigabytes, or minutes, of a
// small body. None may begin.
func TestGuards(t *testing.T) {
	const length = 64 << 10
	body := fmt.Sprintf(`{"text": %q, "other": %q, "list": [%s0]}`,
		strings.Repeat("a", length), strings.Repeat("a", length-1)+"b", strings.Repeat("0,", length))
	in := &Input{Request: mustParse(t, "POST", "/api/v1/pods"), Object: func() ([]byte, error) { return []byte(body), nil }}
	const tooLong = "a text of 65536 bytes is too long to search for one of 65536"
	const tooMany = "lists of 65537 and 65537 values are too long to compare each with each"
	tests := []struct{ code, want string }{
		{"object.text.replace('a', object.other) == ''", "replace would make a text of more than 4 MiB"},
		{"object.text.replace('', object.other) == ''", "replace would make a text of more than 4 MiB"},
		{"object.text.replace('a', object.other, 100) == ''", "replace would make a text of more than 4 MiB"},
		{"object.text.replace('a', object.other, -1) == ''", "replace would make a text of more than 4 MiB"},
		{"object.text.split('').join(object.other) == ''", "join would make a text of more than 4 MiB"},
		{"object.text.indexOf(object.other) < 0", tooLong},
		{"object.text.indexOf(object.other, 1) < 0", tooLong},
		{"object.text.lastIndexOf(object.other) < 0", tooLong},
		{"object.text.lastIndexOf(object.other, 1) < 0", tooLong},
		{"object.list.distinct() == []", tooMany},
		{"sets.contains(object.list, object.list)", tooMany},
		{"sets.intersects(object.list, object.list)", tooMany},
		{"sets.equivalent(object.list, object.list)", tooMany},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			set := mustCompile(t, Policy{Name: "a", Match: textOf(tt.code), Warn: textOf("'a'")})
			_, err := set.Decide(in)
			var failed *EvalError
			if !errors.As(err, &failed) || failed.Err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestGuardedFunctions checks that a guard changes nothing for what it lets pass.
func TestGuardedFunctions(t *testing.T) {
	f := func(code string) {
		t.Helper()
		got, err := EvalConstant(textOf(code))
		if err != nil || got != true {
			t.Errorf("%s is %v, %v", code, got, err)
		}
	}
	f("'banana'.replace('a', 'oo') == 'boonoonoo'")
	f("'banana'.replace('a', 'oo', 1) == 'boonana'")
	f("'banana'.replace('a', 'oo', 0) == 'banana'")
	f("'ab'.replace('', '-') == '-a-b-'")
	f("['a', 'b'].join() == 'ab' && ['a', 'b'].join(', ') == 'a, b' && [].join('-') == ''")
	f("'banana'.indexOf('an') == 1 && 'banana'.indexOf('an', 2) == 3 && 'banana'.lastIndexOf('an') == 3 && 'banana'.lastIndexOf('an', 2) == 1")
	f("['a', 'b', 'a'].indexOf('a') == 0 && ['a', 'b', 'a'].lastIndexOf('a') == 2 && [1, 2].indexOf(2) == 1")
	f("[1, 2, 1].distinct() == [1, 2]")
	f("sets.contains([1, 2], [1]) && sets.intersects([1], [2, 1]) && sets.equivalent([1, 1], [1])")
	f("[dyn('a')].indexOf(dyn('a')) == 0 && dyn('ab').indexOf(dyn('b')) == 1")
}

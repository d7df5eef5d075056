package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
	"github.com/mixed-version-proxy/mvp/policies"
)

func TestTimes(t *testing.T) {
	took, base := times{30, 10, 20, 40}, times{10, 10, 40, 10}
	f := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	f("the median", int(took.median()), 30)
	f("the p99", int(took.quantile(.99)), 40)
	f("the fastest", int(took.quantile(0)), 10)
	f("the median of none", int(times(nil).median()), 0)
	f("the ratio", took.ratio(base), 3.0)
	f("the median difference", int(took.minus(base).median()), 20)
}

func TestUsage(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q ended with %d and said %q, want 2 and %q", args, code, &stderr, want)
		}
	}
	f("flag provided but not defined: -nothing", "-nothing")
	f("takes flags only", "lists")
	f("at least one object", "-objects", "0")
}

// TestPolicies loads the policies that MVP is measured with.
func TestPolicies(t *testing.T) {
	for name, conversion := range map[string]map[string]string{"rules": webhook.Rules(gone), "jq": webhook.Programs(gone)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := otherPolicies(99)
			maps.Copy(files, conversion)
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			set, err := policies.Load(policies.Options{Dirs: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(set.Policies()); n != 100 {
				t.Errorf("%d policies, want 100", n)
			}
		})
	}
}

// TestRepeated checks that a repeated list is one list with the items of all.
func TestRepeated(t *testing.T) {
	list, err := repeated([]byte(`{"apiVersion":"v1","items":[{"a":1},{"a":2}],"kind":"List"}`), 40)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	list.writeTo(&out)
	if int64(out.Len()) != list.size() {
		t.Errorf("it has %d bytes and says %d", out.Len(), list.size())
	}
	const want = `{"apiVersion":"v1","items":[{"a":1},{"a":2},{"a":1},{"a":2},{"a":1},{"a":2}],"kind":"List"}`
	if out.String() != want || !json.Valid(out.Bytes()) {
		t.Errorf("got %s, want %s", &out, want)
	}
	if _, err := repeated([]byte(`{"items":[],"kind":"List"}`), 40); err == nil || !strings.Contains(err.Error(), "does not look like one") {
		t.Errorf("a list without items: %v", err)
	}
}

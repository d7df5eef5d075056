package proxy_test

import (
	"encoding/base64"
	"strings"
	"testing"
)

// request.caller is one for all tokens of a subject, others differ, and no credential
// has none. It is the same in every process: the values are worked out elsewhere.
func TestCaller(t *testing.T) {
	u := record(t, "a", "1.32.13", pods, nil)
	r := start(t, map[string]string{"a.warn.cel": `request.caller == '' ? 'nobody' : request.caller`}, nil, u)
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	caller := func(token string) string {
		t.Helper()
		var header []string
		if token != "" {
			header = []string{"Authorization", "Bearer " + token}
		}
		_, text, _ := strings.Cut(r.do("GET", "/api/v1/namespaces/d/pods", "", "", header...).header.Get("Warning"), `"`)
		return strings.TrimSuffix(text, `"`)
	}
	const agent = `"iss":"https://k","sub":"system:serviceaccount:d:agent"`
	for credential, want := range map[string]string{
		"":                               "nobody",
		"opaque":                         "d5574859ac791d120c4a43ba1fb53dca", // printf 'token\0opaque' | sha256sum, the first 32 digits
		"a.b.c":                          "9cd7f24dfeb141e718967c80d15a19a1",
		"a.!!!.c":                        "4f537b4e862c917c5b6e15c32aaaf364",
		token(`{"exp":1,` + agent + `}`): "8db3e27849492bbf3573ba327757bf7c", // printf 'subject\0https://k\0system:serviceaccount:d:agent'
		token(`{"exp":2,` + agent + `}`): "8db3e27849492bbf3573ba327757bf7c",
		token(`{"iss":"https://k"}`):     "9e3eafb1b131a7a002513440e28542f1",
		token(`{"iss":"https://k","sub":["agent"]}`): "969d10bd1f545f4b804c25358a0bb522",
		token(`{"iss":"","sub":"a"}`):                "b19e59220a248d8da1843ba826639055",
	} {
		if got := caller(credential); got != want {
			t.Errorf("of %q: %q, want %q", credential, got, want)
		}
	}
}

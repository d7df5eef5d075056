package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// A file that stays empty, or wrong, changes nothing, and everything that tells of MVP
// says what is wrong with it, until it is right again.
func TestReloadMistakeThatStays(t *testing.T) {
	plane, err := demo.Start(demo.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, plane.Close()) })
	dir := t.TempDir()
	file := filepath.Join(dir, "10-deny.deny.cel")
	write(t, filepath.Join(dir, "10-deny.match.cel"), `request.resource == 'secrets'`)
	write(t, file, `'number 0'`)
	r := startServing(t, plane, dir)
	denies := func(text string) {
		t.Helper()
		if code, body, _, err := r.get(deniedPath); err != nil || code != http.StatusForbidden || !strings.Contains(body, text) {
			t.Errorf("GET secrets: %d %s %v, want 403 with %q", code, body, err, text)
		}
	}
	failures := uint64(0)
	for _, tt := range []struct{ name, text, place, message, shown string }{
		{"empty", "", ":1:1", "the file is empty: write the policy or remove the file", ""},
		{"wrong", "1", ":1:1", "deny must be a string; this is int", "\n  1\n  ^"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, file, tt.text)
			failures++
			r.waitFor("the mistake is told", func() bool { return r.policies.Status().Failures == failures })
			denies("number 0")
			var report policyReport
			must(t, json.Unmarshal([]byte(r.adminGet("/policies")), &report))
			if report.Generation != 1 || report.LastReload == nil ||
				report.LastReload.Mistakes[0].Text != file+tt.place+": "+tt.message+tt.shown {
				t.Errorf("/policies says %+v", report.LastReload)
			}
			note := fmt.Sprintf("ok\npolicies: the files are not reloaded, generation 1 stays; mistakes: %d, see /policies\n", len(report.LastReload.Mistakes))
			if got := r.adminGet("/readyz"); got != note {
				t.Errorf("/readyz says %q, want %q", got, note)
			}
			metric := `mvp_policy_mistake{message="` + tt.message + `",position="` + file + tt.place + `"} 1` + "\n"
			if got := r.adminGet("/metrics"); !strings.Contains(got, metric) {
				t.Errorf("/metrics lacks %s", metric)
			}
			logged := `level=ERROR msg="cannot reload policies, the last good ones stay" at=` + file + tt.place + ` error="` + tt.message + `"` + "\n"
			if !strings.Contains(r.logs.String(), logged) {
				t.Errorf("the log lacks %s:\n%s", logged, r.logs)
			}
		})
	}
	beside := filepath.Join(t.TempDir(), "whole")
	write(t, beside, `'number 1'`)
	must(t, os.Rename(beside, file))
	r.waitFor("the right file is live", func() bool {
		return r.policies.Status().Generation == 2 && r.proxy.Uses(r.policies.Current())
	})
	denies("number 1")
	if got := r.adminGet("/readyz"); got != "ok\n" {
		t.Errorf("/readyz still says %q", got)
	}
	if got := r.adminGet("/metrics"); strings.Contains(got, "mvp_policy_mistake{") {
		t.Error("/metrics still has a mistake")
	}
}

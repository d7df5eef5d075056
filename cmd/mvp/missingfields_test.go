package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// A field that there is not is known when the servers' definitions are: what serves then
// goes on serving, and says so.
func TestMissingFieldsWhileServing(t *testing.T) {
	plane, err := startPlane()
	must(t, err)
	t.Cleanup(func() { must(t, plane.Close()) })
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	const document = `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: r}
spec:
  apiMigrationRules:
    - apiGroup: myapps.example.com
      resource: customresources
      fromVersion: v1alpha1
      toVersion: v1beta1
      transformations:
        - {path: spec.config.legacyTimeot, action: rename, targetPath: spec.config.requestTimeoutSeconds}
`
	write(t, file, document)
	r := startServing(t, plane, dir)
	const message = "path: myapps.example.com/v1alpha1 customresources has no field spec.config.legacyTimeot; did you mean spec.config.legacyTimeout?"
	r.waitFor("the field is missed", func() bool { return len(r.proxy.MissingFields()) == 1 })
	var report policyReport
	must(t, json.Unmarshal([]byte(r.adminGet("/policies")), &report))
	want := mistake{File: file, Line: 11, Column: 18, Message: message, Text: file + ":11:18: " + message + `
          - {path: spec.config.legacyTimeot, action: rename, targetPath: spec.config.requestTimeoutSeconds}
                   ^`}
	if report.Generation != 1 || report.LastReload != nil || len(report.Warnings) != 1 || report.Warnings[0] != want {
		t.Errorf("/policies says %+v, want %+v", report.Warnings, want)
	}
	if got, want := r.adminGet("/readyz"), "ok\npolicies: rules name fields that there are not: 1, see /policies\n"; got != want {
		t.Errorf("/readyz says %q, want %q", got, want)
	}
	logged := `level=WARN msg="a rule names a field that there is not" at=` + file + `:11:18 error="` + message + `"` + "\n"
	if n := strings.Count(r.logs.String(), logged); n != 1 {
		t.Errorf("the log has %d times %s:\n%s", n, logged, r.logs)
	}
	if code, body, _, err := r.get("/apis/myapps.example.com/v1alpha1/customresources"); err != nil || code != 200 {
		t.Errorf("the conversion is not live: %d %s %v", code, body, err)
	}

	write(t, file, strings.Replace(document, "legacyTimeot", "legacyTimeout", 1))
	r.waitFor("nothing is missed any more", func() bool {
		return r.policies.Status().Generation == 2 && len(r.proxy.MissingFields()) == 0
	})
	if got := r.adminGet("/policies"); strings.Contains(got, `"warnings"`) {
		t.Errorf("/policies still warns: %s", got)
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// TestValidation holds what MVP says of an object in a version that the servers do not
// serve to what a server says of the same mistake in the version that it serves, in the
// names of the client's version: through kubectl of every age, and over HTTP.
func TestValidation(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	m := l.serve(t, map[string]string{"mvp-rules.yaml": read(t, demo.Manifests, "mvp-rules.yaml")})
	// The first document takes servers that have just started long, and until it is there
	// an old kubectl checks nothing.
	m.eventually("the schemas that old kubectls read have the converted version", func() bool {
		_, document := m.getAs(m.url + "/openapi/v2")
		return strings.Contains(string(document), "com.example.myapps.v1alpha1.CustomResource")
	})
	for _, version := range clients.KubectlVersions() {
		t.Run("kubectl "+version, func(t *testing.T) { testKubectlValidates(t, l, m, version) })
	}
	t.Run("http", func(t *testing.T) { testFieldValidation(t, l, m) })
}

// asOld is text about the new version in the words of the old one.
var asOld = strings.NewReplacer("v1beta1", "v1alpha1", "requestTimeoutSeconds", "legacyTimeout")

// testKubectlValidates applies an object with a mistake, in the new version to the server
// and in the old one to MVP.
func testKubectlValidates(t *testing.T, l *lab, m *mvp, version string) {
	directives := []string{"true", "false"}
	if !slices.Contains([]string{"1.20", "1.24"}, version) { // which know no others
		directives = append(directives, "strict", "warn", "ignore")
	}
	direct, through := l.direct(t, "b"), m.kubectl(version).in(t)
	direct.version = version
	for _, directive := range directives {
		const object = "apiVersion: myapps.example.com/%s\nkind: CustomResource\nmetadata: {name: %s}\nspec: {config: {%s, bad: 1}}\n"
		file := write(t, "object.yaml", fmt.Sprintf(object, "v1beta1", "new", "requestTimeoutSeconds: 30"))
		want, wantErr := direct.run("create", "--validate="+directive, "-f", file)
		old := write(t, "object.yaml", fmt.Sprintf(object, "v1alpha1", "new", `legacyTimeout: "30"`))
		direct.ok("delete", newCR, "new", "--ignore-not-found")
		got, err := through.run("create", "--validate="+directive, "-f", old)
		direct.ok("delete", newCR, "new", "--ignore-not-found")
		want = strings.ReplaceAll(asOld.Replace(want), file, old)
		if got = withoutConversion(got); got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("kubectl %s create --validate=%s says\n%s%v\nof a server it says\n%s%v", version, directive, got, err, want, wantErr)
		}
	}
}

// withoutConversion leaves out the line that warns of the conversion itself.
func withoutConversion(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !strings.Contains(line, "is answered from") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// testFieldValidation compares status, message, causes and warnings over HTTP, which
// passes on what kubectl would not send.
func testFieldValidation(t *testing.T, l *lab, m *mvp) {
	const object = `{"apiVersion":"myapps.example.com/%s","kind":"CustomResource","metadata":{"name":"x"%s},"spec":%s}`
	tests := []struct{ name, metadata, spec, newSpec string }{
		{"right", "", `{"config":{"legacyTimeout":"30"}}`, `{"config":{"requestTimeoutSeconds":30}}`},
		{"unknown", "", `{"config":{"legacyTimeout":"30","bad":1},"worse":{}}`, `{"config":{"requestTimeoutSeconds":30,"bad":1},"worse":{}}`},
		{"unknown in metadata", `,"bad":1`, `{}`, `{}`},
		{"twice", "", `{"config":{"legacyTimeout":"30","legacyTimeout":"31"}}`, `{"config":{"requestTimeoutSeconds":30,"requestTimeoutSeconds":31}}`},
		{"twice and unknown", "", `{"config":{"b":1,"b":2},"a":1}`, `{"config":{"b":1,"b":2},"a":1}`},
		{"of another type", "", `{"config":7}`, `{"config":7}`},
	}
	for _, tt := range tests {
		for _, directive := range []string{"Strict", "Warn", "Ignore", "Wrong", ""} {
			query := "/namespaces/default/customresources?dryRun=All"
			if directive != "" {
				query += "&fieldValidation=" + directive
			}
			want := post(t, m.client(), l.URL("b")+"/apis/myapps.example.com/v1beta1"+query, fmt.Sprintf(object, "v1beta1", tt.metadata, tt.newSpec))
			got := post(t, m.client(), m.url+"/apis/myapps.example.com/v1alpha1"+query, fmt.Sprintf(object, "v1alpha1", tt.metadata, tt.spec))
			if want = asOld.Replace(want); withoutConversion(got) != want {
				t.Errorf("%s, fieldValidation=%s: through mvp\n%s\na server says\n%s", tt.name, directive, got, want)
			}
		}
	}
}

// post sends an object and returns what the answer says of it, line by line.
func post(t *testing.T, client *http.Client, url, body string) string {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{resp.Status}
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if status.Kind == "Status" {
		lines = append(lines, string(status.Reason), status.Message)
		if status.Details != nil {
			lines = append(lines, fmt.Sprintf("%+v", *status.Details))
		}
	}
	lines = append(lines, resp.Header.Values("Warning")...)
	return strings.Join(lines, "\n") + "\n"
}

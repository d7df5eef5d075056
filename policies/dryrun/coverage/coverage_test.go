package coverage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
)

var covered = map[string]string{
	"10.convert.cel": `{'resource': 'things', 'kind': 'Thing', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`,
	"10.request.jq":  `rename(.spec.old; .spec.new)`,
	"20.match.cel":   `request.resource == 'pods' && !(request.verb == 'get' || request.name == 'x') && true`,
	"20.deny.cel":    `request.namespace == 'shop' ? 'frozen' : ''`,
	"30.match.cel":   `request.resource == 'jobs'`,
	"30.route.cel":   `upstream.name == 'a' ? 2 : 1`,
	"40.match.cel":   `request.resource == 'nodes'`,
	"40.warn.cel":    `'nodes'`,
	"40.mode.cel":    `'audit'`,
	"rules.yaml": `
apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: rules}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: wheels
      fromVersion: v1alpha1
      toVersion: v1beta1
      transformations:
        - {path: spec.a, action: rename, targetPath: spec.b}
        - {path: spec.x, action: remove}
    - {apiGroup: acme.io, resource: wheels, fromVersion: v1beta1, toVersion: v1, transformations: [{path: spec.b, action: rename, targetPath: spec.c}]}
`,
}

func TestCoverage(t *testing.T) {
	dir := t.TempDir()
	for name, content := range covered {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policies.Load(policies.Options{Dirs: []string{dir}, Library: []string{"kubernetes-all"}})
	if err != nil {
		t.Fatal(err)
	}
	var c Coverage
	run := func(method, target, body, response string) {
		t.Helper()
		options := dryrun.Options{Servers: []dryrun.Server{{Name: "a"}, {Name: "b", Down: true}}}
		if response != "" {
			options.Response = []byte(response)
		}
		template := dryrun.Template{Method: method, Target: target}
		note := c.Watch(set, Texts{}, &options)
		request := template.Request(nil)
		if body != "" {
			request = template.Request([]byte(body))
		}
		note([]*dryrun.Result{dryrun.Run(set, request, options)})
	}
	missing := func() string {
		lines := []string{fmt.Sprintf("%.0f%%", c.Percent())}
		for _, item := range c.Items() {
			if !item.Reached {
				lines = append(lines, fmt.Sprintf("%s:%d:%d: %s: %s", filepath.Base(item.Pos.File), item.Pos.Line, item.Pos.Col, item.Kind, item.Missing))
			}
		}
		return strings.Join(lines, "\n")
	}
	f := func(want string) {
		t.Helper()
		if got := missing(); got != strings.TrimSpace(want) {
			t.Errorf("got\n%s\nwant\n%s", got, strings.TrimSpace(want))
		}
	}

	run("GET", "/api/v1/services", "", "")
	if first := missing(); strings.Contains(first, "request.resource == 'pods' is never false") || !strings.Contains(first, "request.resource == 'pods' is never true") ||
		!strings.Contains(first, "20.match.cel:1:1: policy: the policy 20 never acts") {
		t.Errorf("a request for something else leaves out\n%s", first)
	}

	// What stands after a part that settles the whole is not reached by that.
	run("GET", "/api/v1/namespaces/d/pods/p", "", "")
	before := missing()
	for _, want := range []string{"request.verb == 'get' is never false", "request.name == 'x' is never true", "request.name == 'x' is never false"} {
		if !strings.Contains(before, want) {
			t.Errorf("a get does not leave out that %s:\n%s", want, before)
		}
	}
	if strings.Contains(before, "request.resource == 'pods'") || strings.Contains(before, "request.verb == 'get' is never true") {
		t.Errorf("a get leaves out\n%s", before)
	}

	run("DELETE", "/api/v1/namespaces/shop/pods/p", "", "")
	run("DELETE", "/api/v1/namespaces/d/pods/x", "", "")
	run("DELETE", "/api/v1/namespaces/d/pods/p", "", "")
	run("GET", "/apis/batch/v1/jobs", "", "")
	run("GET", "/api/v1/nodes", "", "")
	run("POST", "/apis/acme.io/v1alpha1/wheels", `{"spec":{"a":1}}`, "")
	f(`
76%
10.convert.cel:1:1: policy: the policy 10 never acts
10.convert.cel:1:1: direction: nothing is converted from acme.io/v1beta1 to acme.io/v1
10.convert.cel:1:1: direction: nothing is converted back from acme.io/v1 to acme.io/v1beta1: give a case a response
30.route.cel:1:1: branch: upstream.name == 'a' is never false
30.route.cel:1:28: branch: 1 is never chosen
rules.yaml:7:7: direction: nothing is converted back from acme.io/v1beta1 to acme.io/v1alpha1: give a case a response
rules.yaml:13:11: rule: the rule remove spec.x never changes anything
rules.yaml:14:7: direction: nothing is converted back from acme.io/v1 to acme.io/v1beta1: give a case a response`)

	run("POST", "/apis/acme.io/v1beta1/things", `{"spec":{"old":1}}`, `{"apiVersion":"acme.io/v1","kind":"Thing"}`)
	run("GET", "/apis/acme.io/v1alpha1/wheels", "", `{"apiVersion":"acme.io/v1","kind":"WheelList","items":[{"spec":{"c":1}}]}`)
	run("PATCH", "/apis/acme.io/v1alpha1/wheels/w", `[{"op":"add","path":"/spec/x","value":1}]`, "")
	f(`
94%
30.route.cel:1:1: branch: upstream.name == 'a' is never false
30.route.cel:1:28: branch: 1 is never chosen`)
	if got := (&Coverage{}).Percent(); got != 100 {
		t.Errorf("of nothing %v%% is covered", got)
	}
}

// What the client would be answered if the server stored what it is sent is nothing that
// a case has asked for.
func TestCoverageOfTheWayBack(t *testing.T) {
	files := []policies.File{{Name: "rules.yaml", Data: []byte(`
apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: rules}
spec:
  apiMigrationRules:
    - {apiGroup: acme.io, resource: wheels, fromVersion: v1beta1, toVersion: v1, transformations: [{path: spec.mode, action: modify, matchValue: a, replaceValue: b}]}
`)}}
	set, err := policies.LoadFiles(files, policies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(response string, want int) {
		t.Helper()
		var c Coverage
		options := dryrun.Options{Response: []byte(response)}
		if response == "" {
			options.Response = nil
		}
		note := c.Watch(set, Texts{}, &options)
		template := dryrun.Template{Method: "POST", Target: "/apis/acme.io/v1beta1/wheels"}
		r := dryrun.Run(set, template.Request([]byte(`{"apiVersion":"acme.io/v1beta1","kind":"Wheel","spec":{"mode":"b"}}`)), options)
		note([]*dryrun.Result{r})
		reached := 0
		for _, item := range c.Items() {
			if item.Reached {
				reached++
			}
		}
		if reached != want || r.Back == nil {
			t.Errorf("with the response %q, %d are reached, want %d", response, reached, want)
		}
	}
	f("", 2) // the policy, and the way to the server
	f(`{"apiVersion":"acme.io/v1","kind":"Wheel","spec":{"mode":"b"}}`, 4)
}

// The policies of an archive stand in it.
func TestCoverageOfArchives(t *testing.T) {
	files := []policies.File{{Name: "10.match.cel", Data: []byte("request.verb == 'get'\n")}, {Name: "10.warn.cel", Data: []byte("'x'")}}
	set, err := policies.LoadFiles(files, policies.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var c Coverage
	c.Watch(set, Texts{Archive: "x_test.txtar", Files: map[string]string{"10.match.cel": string(files[0].Data)}}, &dryrun.Options{})
	items := c.Items()
	if got := fmt.Sprintf("%v %s", items[len(items)-1].Pos, items[len(items)-1].Line); got != "x_test.txtar:10.match.cel:1:1 request.verb == 'get'" {
		t.Errorf("the place is %s", got)
	}
}

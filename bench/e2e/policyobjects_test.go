package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// TestPolicyObjects applies the article's document, and others, to the cluster, with
// the rights and the definition that users install.
func TestPolicyObjects(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	admin := l.direct(t, "a")
	admin.ok("apply", "-f", "../../examples/kubernetes/rbac-policy-objects.yaml")
	user := "--user=" + controlplane.Discovery
	admin.ok("create", "clusterrolebinding", "mvp-lab-objects", "--clusterrole=mvp-policy-objects", user)
	admin.ok("-n", "kube-system", "create", "rolebinding", "mvp-lab-objects", "--role=mvp-policy-objects", user)
	admin.ok("-n", "default", "create", "rolebinding", "mvp-lab-events", "--role=mvp-policy-events", user)

	flags := []string{"--policy-objects", "--policy-configmaps", "kube-system/mvp.k8s.io/policies=true", "--lease-namespace", "kube-system"}
	var second *mvp
	t.Run("first replica", func(inner *testing.T) {
		first := l.serveWith(inner, nil, flags...)
		o := &objectsTest{t: inner, m: first, admin: admin.in(inner), client: first.client()}
		o.waitFor("the log says that there is no definition", func() bool {
			return strings.Contains(first.log.String(), "install its CustomResourceDefinition")
		})
		o.admin.ok("apply", "-f", "../../examples/kubernetes/crd.yaml")
		o.admin.ok("wait", "--for=condition=Established", "crd/transformationrules.mvp.k8s.io", "--timeout=60s")
		o.waitFor("the replica writes", func() bool { return first.log.find(leads) != nil })
		second = l.serveWith(t, nil, flags...)
		inner.Run("article", o.article)
		inner.Run("mistakes", o.mistakes)
		inner.Run("config maps", o.configMaps)
		inner.Run("definition", o.definition)
		if second.log.find(leads) != nil {
			inner.Error("two replicas write at once")
		}
	})
	o := &objectsTest{t: t, m: second, admin: admin, client: second.client()}
	took := o.waitFor("the second replica writes", func() bool { return second.log.find(leads) != nil })
	t.Logf("the second replica writes %v after the first has ended", took.Round(time.Millisecond))
	o.admin.ok("apply", "-f", manifest(t, "mvp-rules.yaml"))
	o.accepted("upgrade-v1.31-to-v1.32", "True")
	o.waitFor("the second replica serves v1alpha1", o.serves(true))
}

// leads is what a replica logs that writes.
const leads = "this replica tells what became of the policy objects"

// objectsTest changes objects and looks at MVP.
type objectsTest struct {
	t      *testing.T
	m      *mvp
	admin  kubectl
	client *http.Client
}

func (o *objectsTest) in(t *testing.T) *objectsTest {
	return &objectsTest{t: t, m: o.m, admin: o.admin.in(t), client: o.client}
}

func (o *objectsTest) waitFor(what string, ok func() bool) time.Duration {
	o.t.Helper()
	took, held := polled(patience, 20*time.Millisecond, ok)
	if !held {
		o.t.Fatalf("not within %v: %s", patience, what)
	}
	return took
}

// serves reports whether MVP serves the article's old version, or does not.
func (o *objectsTest) serves(want bool) func() bool {
	return func() bool {
		code := o.get("/apis/myapps.example.com/v1alpha1/customresources")
		return want && code == http.StatusOK || !want && code == http.StatusNotFound
	}
}

func (o *objectsTest) get(path string) int {
	o.t.Helper()
	resp, err := o.client.Get(o.m.url + path)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// accepted waits until an object's condition says status of its present generation, and
// returns its message.
func (o *objectsTest) accepted(name, status string) string {
	o.t.Helper()
	var message string
	o.waitFor(fmt.Sprintf("%s has the condition Accepted=%s", name, status), func() bool {
		object := o.admin.object("transformationrules", name)
		conditions, _ := object["status"].(map[string]any)
		list, _ := conditions["conditions"].([]any)
		for _, item := range list {
			c := item.(map[string]any)
			if c["type"] == "Accepted" && c["status"] == status && c["observedGeneration"] == object["metadata"].(map[string]any)["generation"] {
				message, _ = c["message"].(string)
				return true
			}
		}
		return false
	})
	return message
}

func (o *objectsTest) article(t *testing.T) {
	o = o.in(t)
	if !o.serves(false)() {
		t.Fatal("v1alpha1 is served before there are rules")
	}
	o.admin.ok("apply", "-f", manifest(t, "mvp-rules.yaml"))
	took := o.waitFor("v1alpha1 is served", o.serves(true))
	t.Logf("v1alpha1 is served %v after `kubectl apply` has ended", took.Round(time.Millisecond))
	if got := o.accepted("upgrade-v1.31-to-v1.32", "True"); got != "4 policies are live" {
		t.Errorf("the condition says %q", got)
	}
	columns := strings.Fields(o.admin.ok("get", "trules", "--no-headers"))
	if len(columns) != 5 || strings.Join(columns[:4], " ") != "upgrade-v1.31-to-v1.32 True Accepted 4" {
		t.Errorf("kubectl get prints %q", columns)
	}

	// A write of the status must not be the cause of another one.
	version := func() string {
		return field(o.admin.object("trules", "upgrade-v1.31-to-v1.32"), "metadata.resourceVersion")
	}
	before := version()
	o.configMap(`'not today'`) // something else that has to be loaded and told
	o.waitFor("the ConfigMap denies", o.denies(true))
	if after := version(); after != before {
		t.Errorf("the object was written again: %s, then %s", before, after)
	}
	o.admin.ok("-n", "kube-system", "delete", "configmap", "mvp-deny")
	o.waitFor("nothing denies", o.denies(false))
}

// other is a document whose only rule has a program.
func other(program string) string {
	return fmt.Sprintf(`apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: other}
spec:
  apiMigrationRules:
    - apiGroup: myapps.example.com
      resource: others
      fromVersion: v1
      toVersion: v2
      transformations:
        - action: jq
          request: %q
`, program)
}

func (o *objectsTest) mistakes(t *testing.T) {
	o = o.in(t)
	const article = "upgrade-v1.31-to-v1.32"
	o.admin.ok("apply", "-f", write(t, "other.yaml", other(".spec |")))
	got := o.accepted("other", "False")
	if !strings.HasPrefix(got, "spec.apiMigrationRules[0].transformations[0].request:1:8: unexpected end of ") ||
		!strings.HasSuffix(got, "\n  .spec |\n         ^\nUntil that is mended, nothing of the object is live.") {
		t.Errorf("the condition says\n%s", got)
	}
	if !o.serves(true)() {
		t.Error("an object with a mistake took another one away")
	}
	o.waitFor("an event tells", func() bool {
		return strings.Contains(o.admin.ok("describe", "trules", "other"), "Warning  Invalid")
	})
	if _, body := o.m.get(o.m.admin + "/readyz"); !strings.Contains(body, "transformationrules/other is not accepted (Invalid)") {
		t.Errorf("/readyz says %q", body)
	}
	o.admin.ok("apply", "-f", write(t, "other.yaml", other(".spec.a = 1")))
	o.accepted("other", "True")

	// What was accepted stays when an object gets worse, and goes with it.
	o.admin.ok("patch", "trules", article, "--type=json", "-p", `[{"op":"replace","path":"/spec/apiMigrationRules/0/transformations/0/path","value":"spec[x"}]`)
	if got := o.accepted(article, "False"); !strings.Contains(got, "spec.apiMigrationRules[0].transformations[0].path: path: bad path") ||
		!strings.HasSuffix(got, "what was accepted before stays: 4 policies are live.") {
		t.Errorf("the condition says\n%s", got)
	}
	if !o.serves(true)() {
		t.Error("what was accepted before is gone")
	}
	o.admin.ok("delete", "trules", article, "other")
	took := o.waitFor("v1alpha1 is gone", o.serves(false))
	t.Logf("v1alpha1 is gone %v after `kubectl delete` has ended", took.Round(time.Millisecond))
}

func (o *objectsTest) configMap(deny string) {
	o.t.Helper()
	o.admin.ok("apply", "-f", write(o.t, "configmap.yaml", fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: mvp-deny, namespace: kube-system, labels: {mvp.k8s.io/policies: "true"}}
data:
  10-deny.match.cel: request.resource == 'secrets' && request.namespace == 'default'
  10-deny.deny.cel: %q
  README.md: What these are for.
`, deny)))
}

func (o *objectsTest) denies(want bool) func() bool {
	return func() bool {
		return (o.get("/api/v1/namespaces/default/secrets") == http.StatusForbidden) == want
	}
}

func (o *objectsTest) configMaps(t *testing.T) {
	o = o.in(t)
	o.configMap(`'not today'`)
	took := o.waitFor("the ConfigMap denies", o.denies(true))
	t.Logf("a deny is in force %v after `kubectl apply` has ended", took.Round(time.Millisecond))
	o.configMap(`'not today`)
	o.waitFor("an event tells", func() bool {
		out := o.admin.ok("-n", "kube-system", "describe", "configmap", "mvp-deny")
		return strings.Contains(out, "10-deny.deny.cel:1:1: ") && strings.Contains(out, "Warning  Invalid")
	})
	if !o.denies(true)() {
		t.Error("a mistake lifts a deny")
	}
	o.configMap(`''`)
	o.waitFor("nothing denies", o.denies(false))
	o.admin.ok("-n", "kube-system", "delete", "configmap", "mvp-deny")
}

// definition holds what the definition says of documents to what servers of both
// versions say.
func (o *objectsTest) definition(t *testing.T) {
	archive, err := txtar.ParseFile("../../policies/objects/testdata/crd.txtar")
	if err != nil || len(archive.Files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, file := range archive.Files {
		path := write(t, file.Name, string(file.Data))
		for _, server := range o.m.lab.Names() {
			out, err := o.m.lab.direct(t, server).run("create", "--dry-run=server", "-f", path)
			if want := !strings.HasPrefix(file.Name, "none-"); (err == nil) != want {
				t.Errorf("server %s on %s: %v %s", server, file.Name, err, out)
			}
		}
	}
}

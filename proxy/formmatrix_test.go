package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1beta1 "k8s.io/api/batch/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Two forms of one policy on a kind of Kubernetes: its clients say @old where its
// servers say @new.
var cronPolicies = map[string]map[string]string{
	"rules": {"cron.yaml": `apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: cron}
spec:
  apiMigrationRules:
    - apiGroup: batch
      resource: cronjobs
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {path: spec.schedule, action: modify, matchValue: "@old", replaceValue: "@new"}
`},
	"programs": {
		"cron.convert.cel": `{'resource': 'cronjobs', 'from': 'batch/v1beta1', 'to': 'batch/v1'}`,
		"cron.request.jq":  `mapvalue(.spec.schedule; "@old"; "@new")`,
		"cron.response.jq": `mapvalue(.spec.schedule; "@new"; "@old")`,
	},
}

// cronDoc is one CronJob in the version of its clients or of its servers.
func cronDoc(version string) string {
	schedule := map[string]string{"v1beta1": "@old", "v1": "@new"}[version]
	return fmt.Sprintf(`{"kind":"CronJob","apiVersion":"batch/%s","metadata":{"name":"c","namespace":"d","resourceVersion":"7"},`+
		`"spec":{"schedule":%q,"startingDeadlineSeconds":9007199254740993,"jobTemplate":{"metadata":{"labels":{"a":"b"}},"spec":{"template":{"spec":{"containers":[{"name":"x","image":"y"}]}}}}}}`,
		version, schedule)
}

func cronList(version string) string {
	return fmt.Sprintf(`{"kind":"CronJobList","apiVersion":"batch/%s","metadata":{"resourceVersion":"9"},"items":[%s,%s]}`, version, cronDoc(version), cronDoc(version))
}

// typedCron is what the client's Go type makes of the document.
func typedCron(t *testing.T, doc string) runtime.Object {
	t.Helper()
	var object runtime.Object = &batchv1beta1.CronJob{}
	if strings.Contains(doc, "CronJobList") {
		object = &batchv1beta1.CronJobList{}
	}
	if err := json.Unmarshal([]byte(doc), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// bodyIn is the client's object in a form, and what of it a server is to get.
func bodyIn(t *testing.T, mediaType string) (body, sent string) {
	t.Helper()
	switch mediaType {
	case "application/yaml":
		text, err := yaml.JSONToYAML([]byte(cronDoc("v1beta1")))
		if err != nil {
			t.Fatal(err)
		}
		return string(text), cronDoc("v1")
	case "application/cbor":
		return inCBOR(t, cronDoc("v1beta1")), cronDoc("v1")
	case protobufType:
		// The Go type writes its empty fields, too.
		whole, err := json.Marshal(typedCron(t, cronDoc("v1beta1")))
		if err != nil {
			t.Fatal(err)
		}
		return encodeProtobuf(t, typedCron(t, cronDoc("v1beta1"))), strings.NewReplacer("batch/v1beta1", "batch/v1", "@old", "@new").Replace(string(whole))
	}
	return cronDoc("v1beta1"), cronDoc("v1")
}

// checkForm checks that an answer is the document want in the form asked for.
func checkForm(t *testing.T, got answer, mediaType, want string) {
	t.Helper()
	if got.code != 200 || got.header.Get("Content-Type") != mediaType || got.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
		t.Errorf("answered %d in %q with %d bytes of %q: %q", got.code, got.header.Get("Content-Type"), len(got.body), got.header.Get("Content-Length"), got.body)
	}
	same := false
	switch mediaType {
	case "application/yaml":
		text, err := yaml.YAMLToJSON([]byte(got.body))
		same = err == nil && sameJSON(string(text), want)
	case "application/cbor":
		same = got.body == inCBOR(t, want)
	case protobufType:
		same = got.body == encodeProtobuf(t, typedCron(t, want))
	default:
		same = sameJSON(got.body, want)
	}
	if !same {
		t.Errorf("answered %q, want %s", got.body, want)
	}
}

// sentForm is in which form a server gets a body.
var sentForm = map[string]string{
	"application/json":             "application/json",
	"application/yaml":             "application/json",
	protobufType:                   "application/json",
	"application/cbor":             "application/json",
	"application/apply-patch+yaml": "application/apply-patch+yaml",
	"application/apply-patch+cbor": "application/apply-patch+yaml",
}

// Every verb with every form of its body, by both forms of a policy, in every form
// that the client may want the answer in.
func TestFormMatrix(t *testing.T) {
	const path = "/apis/batch/v1beta1/namespaces/d/cronjobs"
	forms := []string{"application/json", "application/yaml", protobufType, "application/cbor"}
	const deleteOptions = `{"kind":"DeleteOptions","apiVersion":"batch/%s","gracePeriodSeconds":5}`
	verbs := []struct {
		name, method, target string
		bodies               []string // forms
		body, sent           string   // of one with a form of its own
		worked               string   // sent, where programs work it out from the object
		list                 bool
	}{
		{name: "get", method: "GET", target: "/c"},
		{name: "list", method: "GET", list: true},
		{name: "create", method: "POST", bodies: forms},
		{name: "update", method: "PUT", target: "/c", bodies: forms},
		{name: "update of status", method: "PUT", target: "/c/status", bodies: forms},
		{
			name: "merge patch", method: "PATCH", target: "/c", bodies: []string{"application/merge-patch+json"},
			body: `{"spec":{"schedule":"@old","suspend":true}}`, sent: `{"spec":{"schedule":"@new","suspend":true}}`,
			worked: `{"metadata":{"resourceVersion":"7"},"spec":{"suspend":true}}`,
		},
		{
			name: "apply", method: "PATCH", target: "/c?fieldManager=m", bodies: []string{"application/apply-patch+yaml", "application/apply-patch+cbor"},
			body: "{apiVersion: batch/v1beta1, kind: CronJob, spec: {schedule: '@old'}}", sent: `{"apiVersion":"batch/v1","kind":"CronJob","spec":{"schedule":"@new"}}`,
		},
		{
			name: "delete", method: "DELETE", target: "/c", bodies: []string{"application/json", "application/cbor"},
			body: fmt.Sprintf(deleteOptions, "v1beta1"), sent: fmt.Sprintf(deleteOptions, "v1"),
		},
		{name: "delete of many", method: "DELETE", list: true},
	}
	for policy, files := range cronPolicies {
		reply := func(request) string { return "" }
		u := record(t, "a", "1.32.13", []served{{"batch", "v1", "cronjobs", "CronJob"}}, func(q request) string { return reply(q) })
		r := start(t, files, nil, u)
		for _, verb := range verbs {
			bodies := verb.bodies
			if bodies == nil {
				bodies = []string{""}
			}
			for _, bodyForm := range bodies {
				for _, accept := range forms {
					t.Run(strings.Join([]string{policy, verb.name, bodyForm, accept}, "|"), func(t *testing.T) {
						u.forget()
						answered, want := cronDoc("v1"), cronDoc("v1beta1")
						if verb.list {
							answered, want = cronList("v1"), cronList("v1beta1")
						}
						reply = func(request) string { return ok(answered) }
						body, sent := verb.body, verb.sent
						if policy == "programs" && verb.worked != "" {
							sent = verb.worked
						}
						switch {
						case bodyForm != "" && body == "":
							body, sent = bodyIn(t, bodyForm)
						case strings.HasSuffix(bodyForm, "cbor"):
							body = inCBOR(t, body)
						}
						checkForm(t, r.do(verb.method, path+verb.target, bodyForm, body, "Accept", accept), accept, want)
						got := u.got()
						last := got[len(got)-1]
						if !sameJSON(last.body, sent) || last.target != strings.Replace(path, "v1beta1", "v1", 1)+verb.target {
							t.Errorf("sent %s %s\n%s, want\n%s", last.method, last.target, last.body, sent)
						}
						if !strings.Contains(last.raw, "\r\nAccept: application/json\r\n") {
							t.Errorf("sent %q", last.raw)
						}
						if mediaType := sentForm[bodyForm]; !strings.Contains(last.raw, "\r\nContent-Type: "+mediaType+"\r\n") && mediaType != "" {
							t.Errorf("the body was sent as %q", last.raw)
						}
					})
				}
			}
		}
	}
}

// The media types of bodies that nobody takes are refused, and nothing is sent.
func TestBodyFormsThatAreNone(t *testing.T) {
	u := record(t, "a", "1.32.13", []served{{"batch", "v1", "cronjobs", "CronJob"}}, nil)
	r := start(t, cronPolicies["rules"], nil, u)
	f := func(method, mediaType, body string, code int, want string) {
		t.Helper()
		got := r.do(method, "/apis/batch/v1beta1/namespaces/d/cronjobs/c", mediaType, body)
		var status metav1.Status
		if err := json.Unmarshal([]byte(got.body), &status); err != nil || got.code != code || int(status.Code) != code || !strings.Contains(status.Message, want) {
			t.Errorf("%s of %s was answered %d %s, %v; want %d %s", method, mediaType, got.code, got.body, err, code, want)
		}
		if sent := u.got(); len(sent) > 0 {
			t.Errorf("%s of %s was sent: %q", method, mediaType, sent)
		}
	}

	f("PUT", "application/cbor", "\xd9\xd9\xf7\xa1", http.StatusBadRequest, "cannot read the body as application/cbor: unexpected EOF")
	f("PUT", "application/cbor", "{}", http.StatusBadRequest, "cannot read the body as application/cbor")
	f("PUT", "application/cbor", "\xa2\x41a\x01\x61a\x01", http.StatusBadRequest, `the key "a" stands twice`)
	f("PUT", "application/cbor", "\x9a\x00\x0f\xff\xff"+strings.Repeat("\xc1\x00", 1<<20-1), http.StatusRequestEntityTooLarge, "when it is written in JSON")
	f("PATCH", "application/apply-patch+cbor", "\xa0\x00", http.StatusBadRequest, "1 bytes of extraneous data")
	f("DELETE", "application/cbor", "\xf7", http.StatusBadRequest, "simple value 23")
	f("PATCH", "application/cbor", "\xa0", http.StatusUnsupportedMediaType, "application/apply-patch+cbor")
	f("PUT", "application/apply-patch+cbor", "\xa0", http.StatusUnsupportedMediaType, "application/json, application/yaml, "+protobufType+", application/cbor")
	f("PUT", protobufType, "{}", http.StatusBadRequest, "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	f("PUT", protobufType, "k8s\x00\xff", http.StatusBadRequest, "cannot read the body as "+protobufType)
	f("PUT", "application/yaml", "a: [", http.StatusBadRequest, "cannot read the body as YAML")
	f("PUT", "text/plain", "{}", http.StatusUnsupportedMediaType, "text/plain")
}

package webhook_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/proxy/discovery"
)

const group = "g.example.com"

// gadgets are objects, in both versions, without their apiVersion and kind.
var gadgets = []struct{ name, old, new string }{
	{
		"everything",
		`"metadata":{"name":"a","labels":{"stage":"prod","team":"x"}},"spec":{"timeout":"30","mode":"ephemeral","owner":"o","replicas":2,"endpoints":[{"name":"w","number":80},{"name":"v","number":443}],"settings":{"timeout":"1"}},"status":{"state":"Up","replicas":2}`,
		`"metadata":{"name":"a","labels":{"stage":"production","team":"x"}},"spec":{"requestTimeoutSeconds":30,"mode":"stateless","contact":{"owner":"o"},"scaling":{"replicas":2},"endpoints":[{"name":"w","port":80},{"name":"v","port":443}],"settings":{"timeout":"1"}},"status":{"phase":"Up","replicas":2}`,
	},
	{"nothing", `"metadata":{"name":"a"}`, `"metadata":{"name":"a"}`},
	{"empty", `"metadata":{"name":"a","labels":{}},"spec":{},"status":{}`, `"metadata":{"name":"a","labels":{}},"spec":{},"status":{}`},
	{
		"other values",
		`"metadata":{"name":"a","labels":{"stage":"test"}},"spec":{"timeout":"0","mode":"stateful","replicas":0,"endpoints":[]}`,
		`"metadata":{"name":"a","labels":{"stage":"test"}},"spec":{"requestTimeoutSeconds":0,"mode":"stateful","scaling":{"replicas":0},"endpoints":[]}`,
	},
}

func document(version, members string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Gadget",%s}`, group, version, members)
}

func TestConvert(t *testing.T) {
	hook := start(t)
	for _, g := range gadgets {
		t.Run(g.name, func(t *testing.T) {
			old, now := document(webhook.Old, g.old), document(webhook.New, g.new)
			f := func(desired string, want string) {
				t.Helper()
				got := hook.review(t, group+"/"+desired, old, now)
				if got.UID != "u" || got.Result.Status != "Success" || len(got.ConvertedObjects) != 2 {
					t.Fatalf("answered %+v", got)
				}
				for _, object := range got.ConvertedObjects {
					same(t, string(object), want)
				}
			}
			f(webhook.New, now)
			f(webhook.Old, old)
		})
	}
	if calls, objects := hook.Calls(), hook.Objects(); calls != 8 || objects != 16 {
		t.Errorf("counted %d calls and %d objects, want 8 and 16", calls, objects)
	}
}

// What cannot be converted fails the whole review, and says why.
func TestConvertFails(t *testing.T) {
	hook := start(t)
	good := document(webhook.Old, gadgets[0].old)
	f := func(desired, object, want string) {
		t.Helper()
		got := hook.review(t, desired, good, object)
		if got.Result.Status != "Failure" || !strings.Contains(got.Result.Message, want) || len(got.ConvertedObjects) != 0 {
			t.Errorf("answered %+v, want a failure with %q", got, want)
		}
	}
	f(group+"/v1beta1", document(webhook.Old, `"spec":{"timeout":"soon"}`), `spec.timeout: strconv.ParseInt: parsing "soon"`)
	f(group+"/v1alpha1", document(webhook.New, `"spec":{"requestTimeoutSeconds":1.5}`), "spec.requestTimeoutSeconds: want an integer, have float64")
	f("other.example.com/v1beta1", good, `cannot convert "g.example.com/v1alpha1" to "other.example.com/v1beta1"`)
}

// What is no review is refused.
func TestNoReview(t *testing.T) {
	hook := start(t)
	for body, want := range map[string]string{
		"{":                              "cannot read the review",
		`{"kind":"ConversionReview"}`:    "ConversionReview has no request",
		`{"request":{"objects":["no"]}}`: "cannot read the review",
	} {
		code, answer := hook.post(t, body)
		if code != http.StatusBadRequest || !strings.Contains(answer, want) {
			t.Errorf("%s was answered %d %q, want 400 with %q", body, code, answer, want)
		}
	}
}

// The policies do what the webhook does.
func TestPoliciesMeanTheSame(t *testing.T) {
	for form, files := range map[string]map[string]string{"rules": webhook.Rules(group), "programs": webhook.Programs(group)} {
		converter := compile(t, files)
		for _, g := range gadgets {
			t.Run(form+" "+g.name, func(t *testing.T) {
				f := func(direction convert.Direction, in, want string) {
					t.Helper()
					got, err := converter.Object(nil, []byte(in), direction, nil)
					if err != nil {
						t.Fatal(err)
					}
					same(t, string(got), want)
				}
				f(convert.ToServer, document(webhook.Old, g.old), document(webhook.New, g.new))
				f(convert.ToClient, document(webhook.New, g.new), document(webhook.Old, g.old))
			})
		}
	}
}

// compile makes a converter of policy files that knows the schemas of the definition.
func compile(t *testing.T, files map[string]string) *convert.Converter {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := policies.Load(policies.Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	set = set.WithSchemas(func(v convert.Version) convert.Schema { return schemaOf(t, v.Version) })
	conversions := set.Conversions()
	if len(conversions) != 1 {
		t.Fatalf("%d conversions, want 1", len(conversions))
	}
	return conversions[0].Converter
}

// types tells a schema of the definition in the words of package convert.
type types struct{ *discovery.Schema }

func (s types) TypeAt(path []string) convert.Type { return convert.Type(s.Schema.TypeAt(path)) }

func schemaOf(t *testing.T, version string) convert.Schema {
	t.Helper()
	for _, v := range definition(t, webhook.TargetOnlyCRD).Spec.Versions {
		if v.Name != version {
			continue
		}
		s, err := discovery.ParseSchema(v.Schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		return types{s}
	}
	t.Fatalf("the definition has no version %s", version)
	return nil
}

type crd struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group    string
		Versions []struct {
			Name            string
			Served, Storage bool
			Schema          struct{ OpenAPIV3Schema json.RawMessage }
		}
		Conversion struct {
			Strategy string
			Webhook  struct {
				ClientConfig struct {
					URL      string
					CABundle []byte
				}
			}
		}
	}
}

func definition(t *testing.T, f func(group string) ([]byte, error)) crd {
	t.Helper()
	doc, err := f(group)
	if err != nil {
		t.Fatal(err)
	}
	var d crd
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDefinitions(t *testing.T) {
	hook := start(t)
	f := func(d crd, strategy, url string, ca []byte, oldServed bool) {
		t.Helper()
		served := map[string][2]bool{}
		for _, v := range d.Spec.Versions {
			served[v.Name] = [2]bool{v.Served, v.Storage}
		}
		if want := map[string][2]bool{webhook.Old: {oldServed, false}, webhook.New: {true, true}}; !reflect.DeepEqual(served, want) {
			t.Errorf("the versions are served and stored as %v, want %v", served, want)
		}
		client := d.Spec.Conversion.Webhook.ClientConfig
		if d.Spec.Conversion.Strategy != strategy || client.URL != url || !bytes.Equal(client.CABundle, ca) {
			t.Errorf("the conversion is %+v", d.Spec.Conversion)
		}
		if d.Metadata.Name != webhook.Resource+"."+group || d.Spec.Group != group {
			t.Errorf("it is %s of the group %s", d.Metadata.Name, d.Spec.Group)
		}
	}
	f(definition(t, hook.CRD), "Webhook", hook.URL(), hook.CABundle(), true)
	f(definition(t, webhook.TargetOnlyCRD), "None", "", nil, false)
}

// running is a webhook and a client of it.
type running struct {
	*webhook.Server
	client *http.Client
}

func start(t *testing.T) *running {
	t.Helper()
	s, err := webhook.Start()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CABundle())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &running{s, &http.Client{Transport: transport}}
}

type response struct {
	UID              string
	ConvertedObjects []json.RawMessage
	Result           struct{ Status, Message string }
}

// review posts a review as kube-apiserver does.
func (r *running) review(t *testing.T, desired string, objects ...string) response {
	t.Helper()
	code, answer := r.post(t, fmt.Sprintf(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":%q,"objects":[%s]}}`,
		desired, strings.Join(objects, ",")))
	var got struct {
		APIVersion, Kind string
		Response         response
	}
	if err := json.Unmarshal([]byte(answer), &got); code != http.StatusOK || err != nil {
		t.Fatalf("answered %d %q: %v", code, answer, err)
	}
	if got.Kind != "ConversionReview" || got.APIVersion != "apiextensions.k8s.io/v1" {
		t.Errorf("answered a %s of %s", got.Kind, got.APIVersion)
	}
	return got.Response
}

func (r *running) post(t *testing.T, body string) (int, string) {
	t.Helper()
	resp, err := r.client.Post(r.URL(), "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// same compares two documents but for the order of their members.
func same(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

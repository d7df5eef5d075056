package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// rounds is how many random objects of each kind a test run looks at: about a second
// for each test. Under the race detector, which finds nothing here that the first
// thousand would not show, there are fewer.
func rounds() uint64 {
	if raced {
		return 1000
	}
	return 10_000
}

// The two versions of the custom resource that the project began with.
type (
	oldCustomResource struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec *struct {
			Config *struct {
				LegacyTimeout *string           `json:"legacyTimeout,omitempty"`
				Retries       *int64            `json:"retries,omitempty"`
				Extra         map[string]string `json:"extra,omitempty"`
			} `json:"config,omitempty"`
			StateManagement string `json:"stateManagement,omitempty"`
			Replicas        *int64 `json:"replicas,omitempty"`
			Paused          *bool  `json:"paused,omitempty"`
			Limits          *struct {
				Rate *int64 `json:"rate,omitempty"`
			} `json:"limits,omitempty"`
		} `json:"spec,omitempty"`
	}
	newCustomResource struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec *struct {
			Config *struct {
				RequestTimeoutSeconds *int64            `json:"requestTimeoutSeconds,omitempty"`
				Retries               *int64            `json:"retries,omitempty"`
				Extra                 map[string]string `json:"extra,omitempty"`
			} `json:"config,omitempty"`
			StateManagement string   `json:"stateManagement,omitempty"`
			Tier            *string  `json:"tier,omitempty"`
			Zones           []string `json:"zones,omitempty"`
			Limits          *struct {
				Rate  *int64         `json:"rate,omitempty"`
				Burst map[string]int `json:"burst,omitempty"`
			} `json:"limits,omitempty"`
		} `json:"spec,omitempty"`
	}
)

// tripped is a kind whose objects make the round trip.
type tripped struct {
	name     string // of the shipped policy, or customresources
	old, now any    // its Go types in the two versions
	changes  []change
}

// change is what a client changes of an object: merge patches in the two versions.
type change struct{ old, now string }

// same is a change that is the same in both versions.
func same(patch string) change { return change{patch, patch} }

// labelled is a change that there is of every kind.
var labelled = same(`{"metadata":{"labels":{"changed":"yes"}}}`)

var trippedKinds = []tripped{
	{"policy-v1beta1/poddisruptionbudgets", policyv1beta1.PodDisruptionBudget{}, policyv1.PodDisruptionBudget{}, []change{
		labelled, same(`{"spec":{"minAvailable":"50%"}}`), same(`{"spec":{"maxUnavailable":null}}`),
		same(`{"spec":{"selector":{"matchLabels":{"changed":"yes"},"matchExpressions":null}}}`), same(`{"status":{"currentHealthy":7}}`),
	}},
	{"batch-v1beta1/cronjobs", batchv1beta1.CronJob{}, batchv1.CronJob{}, []change{
		labelled, same(`{"spec":{"suspend":true,"schedule":"@daily"}}`), same(`{"spec":{"jobTemplate":{"spec":{"parallelism":null}}}}`),
	}},
	{"flowcontrol-v1beta3/flowschemas", flowcontrolv1beta3.FlowSchema{}, flowcontrolv1.FlowSchema{}, []change{
		labelled, same(`{"spec":{"matchingPrecedence":7}}`), same(`{"spec":{"rules":null}}`),
	}},
	{"flowcontrol-v1beta3/prioritylevelconfigurations", flowcontrolv1beta3.PriorityLevelConfiguration{}, flowcontrolv1.PriorityLevelConfiguration{}, []change{
		labelled, same(`{"spec":{"limited":{"nominalConcurrencyShares":7}}}`), same(`{"spec":{"type":"Exempt","exempt":{"lendablePercent":3}}}`),
	}},
	{"customresources", oldCustomResource{}, newCustomResource{}, []change{
		labelled, same(`{"spec":{"config":{"retries":7,"extra":{"changed":"yes"}}}}`), same(`{"spec":{"limits":{"rate":7}}}`),
		{`{"spec":{"config":{"legacyTimeout":"77"}}}`, `{"spec":{"config":{"requestTimeoutSeconds":77}}}`},
		{`{"spec":{"config":{"legacyTimeout":null}}}`, `{"spec":{"config":{"requestTimeoutSeconds":null}}}`},
		{`{"spec":{"stateManagement":"ephemeral"}}`, `{"spec":{"stateManagement":"stateless"}}`},
		same(`{"spec":{"config":null}}`),
	}},
}

// fieldTypes is a schema as a table.
type fieldTypes map[string]convert.Type

func (s fieldTypes) TypeAt(path []string) convert.Type { return s[strings.Join(path, ".")] }

// trip finds the converter of a kind, and the objects' first fields in both versions.
func trip(t *testing.T, name string) (c *convert.Converter, old, now string) {
	t.Helper()
	if name != "customresources" {
		c := shippedConversion(t, name)
		names := func(v convert.Version) string {
			return fmt.Sprintf(`"apiVersion":%q,"kind":%q`, v.APIVersion(), v.Kind)
		}
		return c.Converter, names(c.From), names(c.To)
	}
	document, err := os.ReadFile("../examples/demo/manifests/mvp-rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document = bytes.Replace(document, []byte(`toVersion: "v1beta1"`), []byte(`toVersion: v1beta1
      preserve: [spec.tier, spec.zones, spec.limits.burst]`), 1)
	file := filepath.Join(t.TempDir(), "mvp-rules.yaml")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := Load(Options{Dirs: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	c = set.Conversions()[0].Converter.WithSchemas(
		fieldTypes{"spec.config.legacyTimeout": convert.TypeString},
		fieldTypes{"spec.config.requestTimeoutSeconds": convert.TypeInteger})
	return c, `"apiVersion":"myapps.example.com/v1alpha1","kind":"CustomResource"`, `"apiVersion":"myapps.example.com/v1beta1","kind":"CustomResource"`
}

// An object of the old version comes back from the server as it was.
func TestRoundTripOfKinds(t *testing.T) {
	for _, kind := range trippedKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c, names, _ := trip(t, kind.name)
			for seed := range rounds() {
				x := randomObject(seed, names, kind.old)
				up, err := c.Object(nil, x, convert.ToServer, nil)
				if err != nil {
					t.Fatalf("seed %d: %s: %v", seed, x, err)
				}
				down, err := c.Object(nil, up, convert.ToClient, nil)
				if err != nil || !bytes.Equal(down, x) && !sameObject(t, down, x) {
					t.Fatalf("seed %d\nclient %s\nserver %s\nback   %s %v", seed, x, up, down, err)
				}
			}
		})
	}
}

// An update by an old client changes on the server what the client changed, and nothing
// else.
func TestUpdateChangesNothingElse(t *testing.T) {
	for _, kind := range trippedKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c, _, names := trip(t, kind.name)
			for seed := range rounds() {
				updated(t, c, kind.changes, seed, randomObject(seed, names, kind.now), nil)
			}
		})
	}
}

// Nor does one by a client whose type does not have all fields, where they are preserved.
func TestUpdateByOldTypeChangesNothingElse(t *testing.T) {
	c, _, names := trip(t, "customresources")
	kept := 0
	for seed := range rounds() {
		stored := randomObject(seed, names, newCustomResource{})
		sent, got := updated(t, c, trippedKinds[len(trippedKinds)-1].changes, seed, stored, asOldType)
		if !bytes.Equal(got, sent) {
			kept++
		}
	}
	if kept < int(rounds()/4) {
		t.Errorf("a field was kept in only %d of %d cases", kept, rounds())
	}
}

// updated has a client of the old version read what is stored, change something, which the
// seed chooses, and write it back. It compares what the server then gets, and returns that,
// without and with what is preserved. typed is what is left of the object in the client;
// nil leaves all that it sees.
func updated(t *testing.T, c *convert.Converter, changes []change, seed uint64, stored []byte, typed func(*testing.T, []byte) []byte) (sent, got []byte) {
	t.Helper()
	seen, err := c.Object(nil, stored, convert.ToClient, nil)
	if err != nil {
		t.Fatalf("seed %d: %s: %v", seed, stored, err)
	}
	changed := seen
	if typed != nil {
		changed = typed(t, seen)
	}
	change := changes[seed%uint64(len(changes))]
	if changed, err = convert.MergePatchApply(changed, []byte(change.old)); err != nil {
		t.Fatal(err)
	}
	if sent, err = c.Object(nil, changed, convert.ToServer, nil); err != nil {
		t.Fatalf("seed %d: %s: %v", seed, changed, err)
	}
	got = sent
	if c.Preserves() {
		if got, err = c.Keep(sent, stored, nil); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, sent, err)
		}
	}
	want, err := convert.MergePatchApply(stored, []byte(change.now))
	if err != nil || !bytes.Equal(got, want) && !sameObject(t, got, want) {
		t.Fatalf("seed %d: %s\nstored  %s\nseen    %s\nchanged %s\nsent    %s\n    got %s\n   want %s %v", seed, change.old, stored, seen, changed, sent, got, want, err)
	}
	return sent, got
}

// asOldType is what a client keeps that decodes a custom resource into the Go type of
// the old version.
func asOldType(t *testing.T, object []byte) []byte {
	decoded := decode(t, object)
	if spec, ok := decoded["spec"].(map[string]any); ok {
		delete(spec, "tier")
		delete(spec, "zones")
		if limits, ok := spec["limits"].(map[string]any); ok {
			delete(limits, "burst")
		}
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// Objects at the limits make the round trip, too.
func TestRoundTripAtTheLimits(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, convert.MaxDepth/2-3) + strings.Repeat(`]}`, convert.MaxDepth/2-3)
	for _, kind := range trippedKinds {
		c, names, _ := trip(t, kind.name)
		head := `{` + names + `,"metadata":{"annotations":{"large":"`
		tail := `"}},"spec":{"selector":{"matchLabels":{"a":"b"}},"limited":{"nominalConcurrencyShares":7},"config":{"legacyTimeout":"30"},"deep":` + deep + `}}`
		large := head + strings.Repeat(`é\u00e9`, (convert.MaxObjectBytes-len(head)-len(tail))/8) + tail
		up, err := c.Object(nil, []byte(large), convert.ToServer, nil)
		if err != nil {
			t.Fatalf("%s: %v", kind.name, err)
		}
		down, err := c.Object(nil, up, convert.ToClient, nil)
		if err != nil || string(down) != large {
			t.Errorf("%s: %d bytes came back as %d, %v", kind.name, len(large), len(down), err)
		}
	}
}

// sameObject compares two objects with every digit of their numbers. All ways to write
// the empty selector of a PodDisruptionBudget are one: it has no other meaning, and
// kube-apiserver does not keep which it was either.
func sameObject(t *testing.T, a, b []byte) bool {
	t.Helper()
	normal := func(text []byte) map[string]any {
		object := decode(t, text)
		spec, _ := object["spec"].(map[string]any)
		if selector, ok := spec["selector"].(map[string]any); ok {
			labels, _ := selector["matchLabels"].(map[string]any)
			expressions, _ := selector["matchExpressions"].([]any)
			if len(labels) == 0 && len(expressions) == 0 {
				spec["selector"] = map[string]any{}
			}
		}
		return object
	}
	return reflect.DeepEqual(normal(a), normal(b))
}

// decode decodes an object with every digit of its numbers.
func decode(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

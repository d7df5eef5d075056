package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/webhook"
)

// TestConversionMatrix asks MVP before a server that serves the newer version of a kind
// only what it asks a server that serves both, and compares everything: the code, the
// headers, the object answered, and what is stored.
func TestConversionMatrix(t *testing.T) {
	t.Parallel()
	l := startLab(t)
	t.Run("custom resource", func(t *testing.T) { testMatrixOfCustomResource(t, l) })
	t.Run("built-in", func(t *testing.T) { testMatrixOfBuiltin(t, l) })
}

// The groups of the kind Gadget: of one, both versions are served through a conversion
// webhook; of the other, the newer one only.
const (
	hookedGroup = "hooked.example.com"
	targetGroup = "target.example.com"
)

func testMatrixOfCustomResource(t *testing.T, l *lab) {
	hook := startWebhook(t)
	direct := l.direct(t, "b")
	for group, definition := range map[string]func(string) ([]byte, error){hookedGroup: hook.CRD, targetGroup: webhook.TargetOnlyCRD} {
		crd, err := definition(group)
		if err != nil {
			t.Fatal(err)
		}
		direct.ok("create", "-f", write(t, "crd.json", string(crd)))
		direct.ok("wait", "--for=condition=Established", "crd/gadgets."+group, "--timeout=60s")
	}
	before := l.before("b")
	rules, programs := before.serve(t, webhook.Rules(targetGroup)), before.serve(t, webhook.Programs(targetGroup))
	m := &matrix{
		want: l.side(t, inOldWords(gadgets), "webhook", l.URL("b"), hookedGroup, "ns-hooked"),
		got: []*side{
			l.side(t, gadgets, "rules", rules.url, targetGroup, "ns-rules"),
			l.side(t, gadgets, "programs", programs.url, targetGroup, "ns-programs"),
		},
		right: newAllowances(gadgetDifferences),
	}
	for _, s := range append(m.got, m.want) {
		direct.ok("create", "namespace", s.mark)
		s.untilServed(t)
	}
	m.run(t, gadgetCells(), gadgetWatches)
	if hook.Calls() == 0 {
		t.Error("the webhook was not asked")
	}
}

func startWebhook(t *testing.T) *webhook.Server {
	t.Helper()
	hook, err := webhook.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hook.Close(); err != nil {
			t.Error(err)
		}
	})
	return hook
}

// A matrix holds sides that ask MVP against one that asks a server of both versions.
type matrix struct {
	want  *side
	got   []*side
	right *allowances
}

func (m *matrix) run(t *testing.T, cells []cell, watches []watchCell) {
	for _, c := range cells {
		t.Run(c.name, func(t *testing.T) { m.compare(t, c) })
	}
	for _, c := range watches {
		t.Run(c.name, func(t *testing.T) {
			want := m.want.watches(t, c)
			for _, s := range m.got {
				if c.side == "" || c.side == s.name {
					m.right.check(t, c.name, s.name, s.watches(t, c), want)
				}
			}
		})
	}
	m.right.unused(t)
}

// compare asks all sides for a cell.
func (m *matrix) compare(t *testing.T, c cell) {
	t.Helper()
	want := m.want.answers(t, c)
	for _, s := range m.got {
		m.right.check(t, c.name, s.name, s.answers(t, c), want)
	}
}

// A matrixKind is a kind whose clients speak another version than is stored.
type matrixKind struct {
	resource, old, new string
	namespaced         bool
	given              string            // the version that objects are written in; "" for new
	objects            map[string]string // as they are there before cells, by name
	status             string            // theirs, a merge patch; "" for none
	watched            string            // those that are there before a watch
	last               string            // the last change that a watch sees, a merge patch of the object "a"
	unsettled          bool              // a controller writes their status at some time
}

// A cell is one request, in words of the client's version. In its path and body GROUP and
// NAMESPACE are those of the side that is asked, RV and UID those of the first object that
// is there, CONTINUE a list's continue token.
type cell struct {
	name string

	// have are the names of the objects that are there before, a letter each.
	have string

	method, path string // path goes on behind the collection's
	accept       string
	contentType  string
	body         string // JSON, which becomes YAML or protobuf where contentType is that

	// before are merge patches of the first object in the server's version, by others.
	before string
}

// A side is who is asked: MVP, or the server that MVP is held against.
type side struct {
	name   string
	client *http.Client
	kind   matrixKind
	url    string // that is asked
	stored string // the server, for what is stored
	group  string

	// mark tells the objects of a side from those of others: their namespace or, where
	// there is none, what their names begin with and the value of their label "side".
	mark string

	have    string // the objects that are there
	changed bool   // they may be others by now
	rv, uid string // of the first
}

func (l *lab) side(t *testing.T, kind matrixKind, name, url, group, mark string) *side {
	t.Helper()
	client, err := l.HTTPClient(controlplane.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return &side{name: name, client: client, kind: kind, url: url, stored: l.URL("b"), group: group, mark: mark}
}

func (s *side) collection(base, version string) string {
	if s.kind.namespaced {
		return base + "/apis/" + s.group + "/" + version + "/namespaces/" + s.mark + "/" + s.kind.resource
	}
	return base + "/apis/" + s.group + "/" + version + "/" + s.kind.resource
}

// all is the URL of all objects of the side as they are stored, and object that of one.
func (s *side) all() string {
	all := s.collection(s.stored, s.kind.new)
	if !s.kind.namespaced {
		all += "?labelSelector=side%3D" + s.mark
	}
	return all
}

func (s *side) object(name string) string {
	if !s.kind.namespaced {
		name = s.mark + "-" + name
	}
	return s.collection(s.stored, s.kind.new) + "/" + name
}

// untilServed waits until the lists of both versions are there for the first time.
func (s *side) untilServed(t *testing.T) {
	t.Helper()
	var old reply
	if _, ok := polled(patience, 20*time.Millisecond, func() bool {
		old = s.do(t, http.MethodGet, s.collection(s.url, s.kind.old), "", "", "")
		stored := s.do(t, http.MethodGet, s.collection(s.stored, s.kind.new), "", "", "")
		return old.code == http.StatusOK && stored.code == http.StatusOK
	}); !ok {
		t.Fatalf("%s: not served within %v: %d %s", s.name, patience, old.code, old.body)
	}
}

// reply is an answer as it came.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

func (s *side) do(t *testing.T, method, url, accept, contentType, body string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "matrix/1.0") // the name of the field manager where none is given
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %s %s: %v", s.name, method, url, err)
	}
	return reply{resp.StatusCode, resp.Header, answer}
}

// ok does what must work to prepare or look at something.
func (s *side) ok(t *testing.T, method, url, contentType, body string) map[string]any {
	t.Helper()
	r := s.do(t, method, url, "", contentType, body)
	if r.code/100 != 2 {
		t.Fatalf("%s: %s %s answered %d %s", s.name, method, url, r.code, r.body)
	}
	var object map[string]any
	if err := json.Unmarshal(r.body, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

const mergePatchType = "application/merge-patch+json"

// prepare makes the objects that a cell needs be there, as they were at first.
func (s *side) prepare(t *testing.T, have string) {
	t.Helper()
	if s.have == have && !s.changed {
		return
	}
	s.ok(t, http.MethodDelete, s.all(), "", "")
	left, _ := s.ok(t, http.MethodGet, s.all(), "", "")["items"].([]any)
	for _, item := range left { // which a finalizer holds; there is no garbage collector
		name := item.(map[string]any)["metadata"].(map[string]any)["name"].(string)
		s.ok(t, http.MethodPatch, s.collection(s.stored, s.kind.new)+"/"+name, mergePatchType, `{"metadata":{"finalizers":null}}`)
	}
	s.rv, s.uid = "", ""
	given := cmp.Or(s.kind.given, s.kind.new)
	for _, name := range strings.Split(have, "") {
		object := s.ok(t, http.MethodPost, s.collection(s.stored, given)+"?fieldManager=given", "application/json", s.fill(s.kind.objects[name]))
		if s.kind.status != "" {
			object = s.ok(t, http.MethodPatch, s.collection(s.stored, given)+"/"+name+"/status?fieldManager=given", mergePatchType, s.kind.status)
		}
		if s.rv == "" {
			metadata := object["metadata"].(map[string]any)
			s.rv, s.uid = metadata["resourceVersion"].(string), metadata["uid"].(string)
		}
	}
	s.have, s.changed = have, false
}

func (s *side) fill(text string) string {
	return strings.NewReplacer("GROUP", s.group, "NAMESPACE", s.mark, "RV", s.rv, "UID", s.uid).Replace(text)
}

// answers sends the request of a cell and returns all that is to be compared.
func (s *side) answers(t *testing.T, c cell) map[string]any {
	t.Helper()
	s.prepare(t, c.have)
	if c.before != "" {
		s.ok(t, http.MethodPatch, s.object(c.have[:1])+"?fieldManager=other", mergePatchType, c.before)
		s.changed = true
	}
	path, body := s.fill(c.path), s.fill(c.body)
	if strings.Contains(path, "CONTINUE") {
		first := s.ok(t, http.MethodGet, s.collection(s.url, s.kind.old)+"?limit=1", "", "")
		path = strings.ReplaceAll(path, "CONTINUE", first["metadata"].(map[string]any)["continue"].(string))
	}
	switch {
	case c.contentType == "application/yaml":
		text, err := yaml.JSONToYAML([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		body = string(text)
	case c.contentType == "application/vnd.kubernetes.protobuf" && strings.HasPrefix(body, "{"):
		body = protobufFrom(t, body)
	}
	s.changed = s.changed || c.method != http.MethodGet
	r := s.do(t, c.method, s.collection(s.url, s.kind.old)+path, c.accept, c.contentType, body)
	return map[string]any{
		"code":        r.code,
		"contentType": r.header.Get("Content-Type"),
		"warnings":    warningsOf(r.header),
		"indented":    bytes.HasPrefix(r.body, []byte("{\n  \"")),
		"body":        s.normal(t, r),
		"stored":      s.normal(t, s.do(t, http.MethodGet, s.all(), "", "", ""))["items"],
	}
}

// warningsOf are the warnings of an answer, but for the one by which MVP says that it was
// converted, and for the one by which a server that still serves the older version says
// that it will not for long.
func warningsOf(header http.Header) []any {
	warnings := []any{}
	for _, line := range header.Values("Warning") {
		if !strings.Contains(line, "is answered from") && !strings.Contains(line, "is deprecated in v1.29+, unavailable in v1.32+") {
			warnings = append(warnings, line)
		}
	}
	return warnings
}

// normal is the body of an answer, decoded, without what no two answers have in common.
func (s *side) normal(t *testing.T, r reply) map[string]any {
	t.Helper()
	mediaType, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
	text, err := asJSON(mediaType, r.body)
	if err != nil {
		t.Fatalf("%s answered %q: %v", s.name, r.body, err)
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(s.group), []byte("GROUP")), []byte(s.mark), []byte("NAMESPACE"))
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		return map[string]any{"text": string(text)}
	}
	if s.kind.unsettled {
		dropStatus(body)
	}
	return normalise(body).(map[string]any)
}

// dropStatus takes the status out of objects, also in lists and events, and who owns it.
func dropStatus(body map[string]any) {
	items, _ := body["items"].([]any)
	for _, item := range append(items, body, body["object"]) {
		if object, ok := item.(map[string]any); ok {
			delete(object, "status")
			delete(memberOf(object, "metadata"), "managedFields")
		}
	}
}

func asJSON(mediaType string, body []byte) ([]byte, error) {
	switch mediaType {
	case "application/yaml":
		return yaml.YAMLToJSON(body)
	case "application/vnd.kubernetes.protobuf":
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		return json.Marshal(object)
	}
	return body, nil
}

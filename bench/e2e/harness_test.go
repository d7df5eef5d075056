// Package e2e runs the real mvp before real kube-apiservers with real clients of
// several ages. It needs a lab: see bench/lab.
//
// Most tests wait more than they work, so they run beside each other, each with a control
// plane of its own. Those of upgrades and of streams have the machine for themselves: on
// a busy one servers and clients fail that no proxy is before.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/labtest"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// newKubectl is a kubectl of the servers' own age, which most steps use.
const newKubectl = "1.31"

// lab is the control plane that all tests of one run share, and the clients.
type lab struct {
	*controlplane.ControlPlane
	clients *clients.Set
	binary  string // mvp
	home    string // of kubectl: its caches

	only []string // the servers that mvp is put before; nil for all
}

// Names are the servers that mvp is put before.
func (l *lab) Names() []string {
	if l.only != nil {
		return l.only
	}
	return l.ControlPlane.Names()
}

// before is the lab as an mvp sees it that is put before some of its servers only.
func (l *lab) before(servers ...string) *lab {
	fewer := *l
	fewer.only = servers
	return &fewer
}

// startLab starts the control plane with the article's CRD and MVP's own rights
// on it.
func startLab(t *testing.T) *lab {
	t.Helper()
	return startLabWith(t, controlplane.Config{})
}

func startLabWith(t *testing.T, cfg controlplane.Config) *lab {
	t.Helper()
	l := &lab{ControlPlane: labtest.Start(t, cfg), clients: labtest.Clients(t), home: t.TempDir()}
	var err error
	if l.binary, err = built(); err != nil {
		t.Fatal(err)
	}
	names := l.Names()
	direct := l.direct(t, names[len(names)-1])
	direct.ok("apply", "-f", manifest(t, "crd.yaml"))
	direct.ok("wait", "--for=condition=Established", "crd/customresources.myapps.example.com", "--timeout=60s")
	direct.ok("apply", "-f", "../../examples/kubernetes/rbac.yaml")
	direct.ok("create", "clusterrolebinding", "mvp-lab", "--clusterrole=mvp", "--user="+controlplane.Discovery)
	return l
}

// buildDir has the mvp that all tests run. It goes with the process.
var buildDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// built builds mvp the first time, and returns where it is.
var built = sync.OnceValues(func() (binary string, err error) {
	if buildDir, err = os.MkdirTemp("", "mvp-e2e-"); err != nil {
		return "", err
	}
	binary = filepath.Join(buildDir, "mvp")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/mvp").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build mvp: %w\n%s", err, out)
	}
	return binary, nil
})

// manifest writes a file of the demo's manifests and returns its path.
func manifest(t *testing.T, name string) string {
	t.Helper()
	content, err := fs.ReadFile(demo.Manifests, name)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name, string(content))
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mvp is one running mvp serve.
type mvp struct {
	t          *testing.T
	lab        *lab
	url, admin string
	policies   string // directory
	log        *lines
	process    *os.Process
}

// serve starts mvp before all servers with the policy files, and waits until it
// is ready.
func (l *lab) serve(t *testing.T, files map[string]string, library ...string) *mvp {
	t.Helper()
	if len(library) == 0 {
		return l.serveWith(t, files)
	}
	return l.serveWith(t, files, "--library", strings.Join(library, ","))
}

// serveWith is serve with more flags.
func (l *lab) serveWith(t *testing.T, files map[string]string, flags ...string) *mvp {
	t.Helper()
	m := &mvp{t: t, lab: l, policies: t.TempDir(), log: &lines{}}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.policies, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key, err := l.ServingCert("mvp", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	token := write(t, "token", l.Token(controlplane.Discovery))
	args := []string{
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--upstream-ca-file", l.Files().CA, "--upstream-token-file", token,
		"--tls-cert-file", cert, "--tls-private-key-file", key, "--policies", m.policies,
	}
	for _, name := range l.Names() {
		args = append(args, "--upstream", name+"="+l.URL(name))
	}
	cmd := exec.Command(l.binary, append(args, flags...)...)
	cmd.Stderr = m.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.process = cmd.Process
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("mvp ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the log of mvp:\n%s", m.log.String())
		}
	})
	m.eventually("mvp says where it listens", func() bool {
		record := m.log.find("serving")
		if record == nil {
			return false
		}
		m.url = "https://" + record["clients"].(string)
		m.admin = "http://" + record["admin"].(string)
		return true
	})
	m.ready()
	return m
}

// ready waits until mvp sees all servers as healthy and the CRD's schemas.
func (m *mvp) ready() {
	m.t.Helper()
	m.eventually("mvp is ready", func() bool {
		code, _ := m.get(m.admin + "/readyz")
		return code == http.StatusOK && m.healthy() == len(m.lab.Names())
	})
}

// upstreams is what /upstreams says.
func (m *mvp) upstreams() []struct {
	Name    string
	Healthy bool
	Streams int
} {
	var report struct {
		Servers []struct {
			Name    string
			Healthy bool
			Streams int
		}
	}
	_, body := m.get(m.admin + "/upstreams")
	if err := json.Unmarshal([]byte(body), &report); err != nil {
		m.t.Fatalf("/upstreams answered %q: %v", body, err)
	}
	return report.Servers
}

func (m *mvp) healthy() int {
	n := 0
	for _, u := range m.upstreams() {
		if u.Healthy {
			n++
		}
	}
	return n
}

func (m *mvp) streams() int {
	n := 0
	for _, u := range m.upstreams() {
		n += u.Streams
	}
	return n
}

// get reads one page of the admin listener.
func (m *mvp) get(url string) (int, string) {
	m.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// eventually polls for a condition outside this process and returns how long it
// took.
func (m *mvp) eventually(what string, condition func() bool) time.Duration {
	m.t.Helper()
	took, ok := polled(patience, 20*time.Millisecond, condition)
	if !ok {
		m.t.Fatalf("not within %v: %s", patience, what)
	}
	return took
}

// patience is how long a test waits for what must come, where it says no other time.
const patience = 30 * time.Second

// polled asks for a condition of other processes until it holds, and returns how long
// that took; false if it does not within limit.
func polled(limit, pause time.Duration, condition func() bool) (time.Duration, bool) {
	start := time.Now()
	for !condition() {
		if time.Since(start) > limit {
			return 0, false
		}
		time.Sleep(pause) // other processes tell of a change only when asked
	}
	return time.Since(start), true
}

// client is an HTTP client of mvp as the administrator.
func (m *mvp) client() *http.Client {
	m.t.Helper()
	ca, err := os.ReadFile(m.lab.Files().CA)
	if err != nil {
		m.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 10}
	m.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: bearer{m.lab.Token(controlplane.Admin), transport}}
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

// kubectl runs one kubectl against one endpoint.
type kubectl struct {
	t          *testing.T
	lab        *lab
	version    string
	kubeconfig string
}

// direct is kubectl without MVP.
func (l *lab) direct(t *testing.T, server string) kubectl {
	return kubectl{t, l, newKubectl, l.KubeconfigPath(controlplane.Admin, server)}
}

// kubectl is kubectl through MVP.
func (m *mvp) kubectl(version string) kubectl {
	m.t.Helper()
	path, err := m.lab.Kubeconfig(controlplane.Admin, controlplane.Endpoint{Name: "mvp", URL: m.url})
	if err != nil {
		m.t.Fatal(err)
	}
	return kubectl{m.t, m.lab, version, path}
}

func (k kubectl) in(t *testing.T) kubectl { k.t = t; return k }

func (k kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.lab.clients.Kubectl(k.version), append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+k.lab.home, "KUBECONFIG="+k.kubeconfig)
	return cmd
}

// run runs kubectl and returns what it printed, both streams together.
func (k kubectl) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	out, err := k.command(ctx, args...).CombinedOutput()
	return string(out), err
}

// ok runs kubectl, which must succeed.
func (k kubectl) ok(args ...string) string {
	k.t.Helper()
	out, err := k.run(args...)
	if err != nil {
		k.t.Fatalf("kubectl %s %s: %v\n%s", k.version, strings.Join(args, " "), err, out)
	}
	return out
}

// says runs kubectl, which must succeed and print want.
func (k kubectl) says(want string, args ...string) {
	k.t.Helper()
	if out := k.ok(args...); !strings.Contains(out, want) {
		k.t.Errorf("kubectl %s %s printed\n%s\nwant %q in it", k.version, strings.Join(args, " "), out, want)
	}
}

// fails runs kubectl, which must fail and print want.
func (k kubectl) fails(want string, args ...string) {
	k.t.Helper()
	out, err := k.run(args...)
	if err == nil || !strings.Contains(out, want) {
		k.t.Errorf("kubectl %s %s ended with %v and printed\n%s\nwant it to fail with %q", k.version, strings.Join(args, " "), err, out, want)
	}
}

// object reads one object as JSON, without what goes to standard error.
func (k kubectl) object(args ...string) map[string]any {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, append([]string{"get", "-o", "json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("kubectl get %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var object map[string]any
	if err := json.Unmarshal(out, &object); err != nil {
		k.t.Fatalf("kubectl get %s printed %q: %v", strings.Join(args, " "), out, err)
	}
	return object
}

// field reads a field of an object as kubectl printed it: "<nil>" without one.
func field(object map[string]any, path string) string {
	var value any = object
	for key := range strings.SplitSeq(path, ".") {
		m, ok := value.(map[string]any)
		if !ok {
			return "<nil>"
		}
		value = m[key]
	}
	return fmt.Sprintf("%T %v", value, value)
}

// lines collects a log as it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// records are the records with that message, oldest first.
func (l *lines) records(message string) []map[string]any {
	var found []map[string]any
	scanner := bufio.NewScanner(strings.NewReader(l.String()))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var record map[string]any
		if json.Unmarshal(scanner.Bytes(), &record) == nil && record["msg"] == message {
			found = append(found, record)
		}
	}
	return found
}

func (l *lines) find(message string) map[string]any {
	if found := l.records(message); len(found) > 0 {
		return found[0]
	}
	return nil
}

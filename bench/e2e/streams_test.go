package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
	"github.com/mixed-version-proxy/mvp/examples/demo"
)

const (
	// shortExecs is how many short commands are executed through each MVP, over
	// all kubectls. None may fail.
	shortExecs = 200

	// atOnce is how many of them run at the same time.
	atOnce = 6

	// bigBody is the size of what is copied and forwarded, in bytes.
	bigBody = 50 << 20

	// silence is how long a stream says nothing before it must still work: longer
	// than the usual timeout of a minute.
	silence = 70 * time.Second

	// longest bounds what runs beside a test, on a busy machine.
	longest = 10 * silence
)

// TestStreams has kubectls of every age stream through MVP: field reports 1.02,
// 1.05 to 1.09 and 1.14. It does so with MVP as it comes, and with all that it can do
// switched on.
func TestStreams(t *testing.T) {
	l := startLabWith(t, controlplane.Config{Kubelet: true})
	t.Run("plain", func(t *testing.T) { testStreams(t, l.serve(t, nil)) })
	t.Run("with every feature", func(t *testing.T) { testStreams(t, l.serveWith(t, everyPolicy(t), everyFeature(t, l)...)) })
}

// everyPolicy are policies of every role, which look at each request and at who sends
// it, and let streams pass as they are.
func everyPolicy(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"mvp-rules.yaml":     read(t, demo.Manifests, "mvp-rules.yaml"),
		"10-who.deny.cel":    `user.name == 'nobody' ? 'nobody is not let in' : ''`,
		"20-route.route.cel": `upstream.inflight >= 0`,
		"30-warn.match.cel":  `request.resource == 'secrets'`,
		"30-warn.warn.cel":   `'this is seen'`,
		"40-try.match.cel":   `request.subresource in ['attach', 'exec', 'log', 'portforward', 'proxy']`,
		"40-try.deny.cel":    `'not now'`,
		"40-try.mode.cel":    `'audit'`,
	}
}

// everyFeature are the flags that switch on what MVP can do beside, in a cluster that
// lets it.
func everyFeature(t *testing.T, l *lab) []string {
	t.Helper()
	admin := l.direct(t, "b")
	for _, name := range []string{"crd", "rbac-token-review", "rbac-policy-objects"} {
		admin.ok("apply", "-f", "../../examples/kubernetes/"+name+".yaml")
	}
	user := "--user=" + controlplane.Discovery
	for _, role := range []string{"mvp-token-review", "mvp-policy-objects"} {
		admin.ok("create", "clusterrolebinding", "lab-"+role, "--clusterrole="+role, user)
	}
	admin.ok("-n", "kube-system", "create", "rolebinding", "lab-policy-objects", "--role=mvp-policy-objects", user)
	admin.ok("-n", "default", "create", "rolebinding", "lab-policy-events", "--role=mvp-policy-events", user)
	files := l.Files()
	return []string{
		"--library", "all", "--authentication-token-review", "--client-ca-file", files.ClientCA,
		"--proxy-client-cert-file", files.FrontProxyCert, "--proxy-client-key-file", files.FrontProxyKey,
		"--policy-objects", "--policy-configmaps", "kube-system/mvp.k8s.io/policies=true", "--lease-namespace", "kube-system",
	}
}

func testStreams(t *testing.T, m *mvp) {
	base := m.streams()
	quiet := startSilence(t, m)
	for _, f := range flavours {
		t.Run(f.String(), func(t *testing.T) {
			through, direct := f.streamer(m.kubectl(f.version).in(t)), f.streamer(m.lab.direct(t, "b"))
			t.Run("commands", func(t *testing.T) { testCommands(t, through.in(t), direct.in(t)) })
			t.Run("protocol", func(t *testing.T) { testProtocol(t, m, f) })
			t.Run("terminal", func(t *testing.T) { testTerminal(t, through.in(t)) })
			t.Run("attach", func(t *testing.T) { testAttach(t, through.in(t)) })
			t.Run("logs -f", func(t *testing.T) { testFollow(t, through.in(t)) })
			t.Run("cp", func(t *testing.T) { testCopy(t, through.in(t)) })
			t.Run("port-forward", func(t *testing.T) { testPortForward(t, through.in(t)) })
			t.Run("proxy", func(t *testing.T) { testKubectlProxy(t, through.in(t), direct.in(t)) })
		})
	}
	t.Run("proxy subresources", func(t *testing.T) { testProxySubresources(t, m) })
	t.Run("1.05 connection header of several hops", func(t *testing.T) { testConnectionHeader(t, m) })
	t.Run("1.14 refused upgrade", func(t *testing.T) { testRefusedUpgrade(t, m) })
	t.Run("many", func(t *testing.T) { testManyExecs(t, m) })
	t.Run("1.09 silence", func(t *testing.T) { quiet.check(t, m) })
	m.eventually("no stream is left", func() bool { return m.streams() == base })
}

// A flavour is a kubectl and the protocol that it streams with.
type flavour struct {
	version   string
	webSocket bool
}

// flavours: kubectl 1.31 made WebSocket its first choice.
var flavours = []flavour{{"1.20", false}, {"1.24", false}, {"1.31", false}, {"1.31", true}, {"1.35", false}, {"1.35", true}}

func (f flavour) String() string {
	if f.webSocket {
		return f.version + " WebSocket"
	}
	return f.version + " SPDY"
}

// streamer is a kubectl that is held to one protocol.
type streamer struct {
	kubectl
	env []string
}

func (f flavour) streamer(k kubectl) streamer {
	k.version = f.version
	s := streamer{kubectl: k}
	if !f.webSocket {
		s.env = []string{"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"}
	}
	return s
}

func (s streamer) in(t *testing.T) streamer { s.t = t; return s }

func (s streamer) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := s.kubectl.command(ctx, args...)
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// outcome is all that a user sees of a command that ended.
type outcome struct {
	stdout, stderr string
	code           int
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d, stdout %.300q, stderr %.300q", o.code, o.stdout, o.stderr)
}

// try runs kubectl to its end.
func (s streamer) try(stdin string, args ...string) outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := s.command(ctx, args...)
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		s.t.Errorf("kubectl %s %s: %v\n%s%s", s.version, strings.Join(args, " "), errors.Join(err, ctx.Err()), stdout.String(), stderr.String())
	}
	return outcome{stdout.String(), clientLog.ReplaceAllString(stderr.String(), ""), cmd.ProcessState.ExitCode()}
}

// clientLog matches lines that kubectl logs of its own affairs, such as a message
// for a stream that it has not set up yet.
var clientLog = regexp.MustCompile(`(?m)^[IWE]\d{4} \d\d:.*\n`)

// testCommands runs what ends by itself, and compares all of it with the same
// without MVP.
func testCommands(t *testing.T, through, direct streamer) {
	upload := strings.Repeat("a line of input\n", 20_000)
	shell := func(script string) []string {
		return []string{"exec", "-i", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", script}
	}
	for _, tt := range []struct {
		name   string
		stdin  string
		args   []string
		code   int
		stdout string // all of it
		stderr string // a part of it
	}{
		{"both outputs", "", []string{"exec", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", "echo out; echo err >&2"}, 0, "out\n", "err\n"},
		{"exit code", "", []string{"exec", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", "exit 42"}, 42, "", "command terminated with exit code 42"},
		{"input", upload, shell("cat; echo end"), 0, upload + "end\n", ""},
		{"no such command", "", []string{"exec", kubelet.Pod, "-c", kubelet.Main, "--", "no-such-command"}, 1, "", "executable file not found"},
		{"no such pod", "", []string{"exec", "no-such-pod", "--", "date"}, 1, "", `pods "no-such-pod" not found`},
		{"no such container", "", []string{"exec", kubelet.Pod, "-c", "no-such-container", "--", "date"}, 1, "", "container"},
		{"log", "", []string{"logs", kubelet.Pod, "-c", kubelet.Main, "--limit-bytes=8"}, 0, "started\n", ""},
		{"log of no container", "", []string{"logs", kubelet.Pod, "-c", "no-such-container"}, 1, "", "container no-such-container is not valid for pod tools"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, want := through.in(t).try(tt.stdin, tt.args...), direct.in(t).try(tt.stdin, tt.args...)
			if got != want {
				t.Errorf("through mvp: %v\ndirect: %v", got, want)
			}
			if got.code != tt.code || got.stdout != tt.stdout || !strings.Contains(got.stderr, tt.stderr) {
				t.Errorf("%v, want exit code %d, stdout %.300q, stderr with %q", got, tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}

// testProtocol sees to it that kubectl has spoken the protocol that it was to,
// without falling back: SPDY upgrades are POST, WebSocket ones are GET.
func testProtocol(t *testing.T, m *mvp, f flavour) {
	want := "POST"
	if f.webSocket {
		want = "GET"
	}
	const path = "/api/v1/namespaces/default/pods/" + kubelet.Pod + "/exec"
	seen := 0
	for _, record := range m.log.records("request") {
		agent, _ := record["userAgent"].(string)
		if record["path"] != path || record["status"] != 101.0 || !strings.HasPrefix(agent, "kubectl/v"+f.version+".") {
			continue
		}
		if record["method"] == want {
			seen++
		}
	}
	if seen < 4 {
		t.Errorf("%d upgrades by kubectl %s with %s, want those of the commands", seen, f.version, want)
	}
}

// TestWebSocketRefused has servers that cannot stream over WebSocket, as those
// before 1.30: field report 1.08. Kubectl falls back to SPDY only if the refusal
// reaches it as the server made it.
func TestWebSocketRefused(t *testing.T) {
	t.Parallel()
	gates := "--feature-gates=TranslateStreamCloseWebsocketRequests=false,PortForwardWebsockets=false"
	l := startLabWith(t, controlplane.Config{Kubelet: true, APIServerArgs: []string{gates}})
	m := l.serve(t, nil, "all")
	for _, f := range flavours {
		if !f.webSocket {
			continue
		}
		t.Run(f.version, func(t *testing.T) {
			through, direct := f.streamer(m.kubectl(f.version).in(t)), f.streamer(l.direct(t, "b"))
			testCommands(t, through, direct)
			testPortForward(t, through)
		})
	}
	refused := 0
	for _, record := range m.log.records("request") {
		if record["method"] == "GET" && strings.HasSuffix(record["path"].(string), "/exec") && record["status"] != 101.0 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no server refused WebSocket: nothing was shown")
	}
	t.Logf("%d upgrades to WebSocket were refused", refused)
}

// testManyExecs executes many short commands, of which none may fail.
func testManyExecs(t *testing.T, m *mvp) {
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range jobs {
				shortExec(t, m, i)
			}
		})
	}
	began := time.Now()
	for i := range shortExecs {
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	t.Logf("%d short commands, %d at a time, in %v", shortExecs, atOnce, time.Since(began).Round(time.Millisecond))
}

// shortExec has the command read its input to the end. One that ends before loses
// what it printed now and then, also without MVP: a kube-apiserver drops a stream
// as soon as it cannot pass on what the client still sends.
func shortExec(t *testing.T, m *mvp, i int) {
	f := flavours[i%len(flavours)]
	// Every second one ends with a failure of its own.
	want := outcome{stdout: fmt.Sprintf("this is %d\n", i), code: i % 2 * 42}
	script := fmt.Sprintf("cat; exit %d", want.code)
	got := f.streamer(m.kubectl(f.version).in(t)).try(want.stdout, "exec", "-i", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", script)
	if want.code != 0 {
		want.stderr = "command terminated with exit code 42\n"
	}
	if got != want {
		t.Errorf("command %d by kubectl %v: %v, want %v", i, f, got, want)
	}
}

// silent are streams that say nothing for long.
type silent struct {
	results sync.Map // what kubectl printed, and how it ended, by flavour
	done    sync.WaitGroup
	forward *forward
	conn    net.Conn // forwarded
	since   time.Time
}

// startSilence opens the streams that check will look at.
func startSilence(t *testing.T, m *mvp) *silent {
	s := &silent{}
	script := fmt.Sprintf("echo asleep; sleep %d; echo awake; exit 42", int(silence.Seconds()))
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	for _, f := range []flavour{{"1.20", false}, {"1.31", true}, {"1.35", false}, {"1.35", true}} {
		cmd := f.streamer(m.kubectl(f.version)).command(ctx, "exec", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", script)
		s.done.Go(func() {
			out, err := cmd.CombinedOutput()
			s.results.Store(f, fmt.Sprintf("%s%v", out, err))
		})
	}
	f := flavour{"1.35", true}
	s.forward = startForward(t, f.streamer(m.kubectl(f.version)), kubelet.EchoPort)
	s.conn = s.forward.dial(t, kubelet.EchoPort)
	echo(t, s.conn, "before")
	s.since = time.Now()
	return s
}

// check wants all of them to go on after the silence, and ends them.
func (s *silent) check(t *testing.T, m *mvp) {
	s.done.Wait()
	s.results.Range(func(f, got any) bool {
		if want := "asleep\nawake\ncommand terminated with exit code 42\nexit status 42"; got != want {
			t.Errorf("kubectl %v exec, silent for %v, gave %q, want %q", f, silence, got, want)
		}
		return true
	})
	m.eventually("the forwarded connection has been silent for long", func() bool { return time.Since(s.since) > silence })
	echo(t, s.conn, "after")
	s.forward.kubectl.kill()
}

func echo(t *testing.T, conn io.ReadWriter, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("the echo of %q is %q, %v", text, got, err)
	}
}

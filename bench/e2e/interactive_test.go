package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
)

// running is a command that somebody would end by hand.
type running struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *lines        // both outputs
	kill  func()        // and wait
	ended chan struct{} // closed when it has ended
}

// startCommand starts a command that is killed with the test.
func startCommand(t *testing.T, command func(context.Context) *exec.Cmd) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	r := &running{cmd: command(ctx), out: &lines{}, ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait()
	}()
	r.kill = func() {
		cancel()
		<-r.ended
	}
	t.Cleanup(r.kill)
	return r
}

func (s streamer) start(args ...string) *running {
	s.t.Helper()
	return startCommand(s.t, func(ctx context.Context) *exec.Cmd { return s.command(ctx, args...) })
}

// startOnTerminal starts kubectl on a terminal of its own, or skips the test.
func (s streamer) startOnTerminal(args ...string) *running {
	s.t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		s.t.Fatalf("no command to make a terminal, install util-linux's script: %v", err)
	}
	return startCommand(s.t, func(ctx context.Context) *exec.Cmd {
		cmd := s.command(ctx, args...)
		for i, arg := range cmd.Args {
			cmd.Args[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		on := exec.CommandContext(ctx, script, "--quiet", "--return", "--command", strings.Join(cmd.Args, " "), "/dev/null")
		on.Env = append(cmd.Env, "SHELL=/bin/sh")
		// It ends kubectl, which else lives on where it has inherited that hang-ups are
		// ignored, as from nohup.
		on.Cancel = func() error { return on.Process.Signal(syscall.SIGTERM) }
		return on
	})
}

// sees waits until the command has printed what want matches, and returns the
// first submatch.
func (r *running) sees(t *testing.T, want string) string {
	t.Helper()
	pattern := regexp.MustCompile(want)
	var found []string
	if _, ok := polled(patience, 5*time.Millisecond, func() bool {
		found = pattern.FindStringSubmatch(r.out.String())
		return found != nil
	}); !ok {
		t.Fatalf("%s printed %q within %v, want %s", r.cmd, r.out.String(), patience, want)
	}
	return found[len(found)-1]
}

func (r *running) types(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(r.stdin, text); err != nil {
		t.Fatal(err)
	}
}

// code waits until the command has ended by itself, and returns its exit code.
func (r *running) code(t *testing.T) int {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Fatalf("%s does not end; it printed %q", r.cmd, r.out.String())
	}
	return r.cmd.ProcessState.ExitCode()
}

// testTerminal works in a shell on a terminal, as `kubectl exec -it` is for.
func testTerminal(t *testing.T, k streamer) {
	r := k.startOnTerminal("exec", "-it", kubelet.Pod, "-c", kubelet.Terminal, "--", "sh")
	r.sees(t, `[$#] $`)
	r.types(t, "tty && echo $((6*7))\n")
	r.sees(t, `/dev/\S+\r\n42\r\n`)
	r.types(t, "exit 42\n")
	if got := r.code(t); got != 42 {
		t.Errorf("kubectl exec -it ended with %d, want 42; it printed %q", got, r.out.String())
	}
}

// testAttach talks with the main process of a container, with and without a
// terminal.
func testAttach(t *testing.T, k streamer) {
	word := rand.Text()
	r := k.start("attach", "-i", kubelet.Pod, "-c", kubelet.Main)
	r.sees(t, "try pressing enter")
	r.types(t, "told "+word+"\n")
	r.sees(t, "told "+word+"\n")

	r = k.startOnTerminal("attach", "-it", kubelet.Pod, "-c", kubelet.Terminal)
	r.sees(t, "try pressing enter")
	r.types(t, "echo "+word+"-$((6*7))\n")
	r.sees(t, word+"-42\r\n")
}

// testFollow wants the lines of a log as they are printed: one a second.
func testFollow(t *testing.T, k streamer) {
	r := k.start("logs", "-f", kubelet.Pod, "-c", kubelet.Ticker, "--tail=1")
	var first int
	if _, err := fmt.Sscan(r.sees(t, `(?m)^tick (\d+)$`), &first); err != nil {
		t.Fatal(err)
	}
	for n := first + 1; n < first+4; n++ {
		r.sees(t, fmt.Sprintf(`(?m)^tick %d\ntick %d$`, n-1, n))
		if next := fmt.Sprintf("tick %d\n", n+1); strings.Contains(r.out.String(), next) {
			t.Logf("line %d came together with the one before it", n+1) // on a busy machine
		}
	}
	select {
	case <-r.ended:
		t.Errorf("kubectl logs -f has ended; it printed %q", r.out.String())
	default:
	}
}

// testCopy copies a big file into the container and back.
func testCopy(t *testing.T, k streamer) {
	dir := t.TempDir()
	sum := bigFile(t, filepath.Join(dir, "big"))
	name := rand.Text() // relative: the container's directory
	began := time.Now()
	for _, args := range [][]string{
		{"cp", filepath.Join(dir, "big"), kubelet.Pod + ":" + name, "-c", kubelet.Main},
		{"cp", kubelet.Pod + ":" + name, filepath.Join(dir, "back"), "-c", kubelet.Main},
	} {
		if got := k.try("", args...); got.code != 0 {
			t.Fatalf("kubectl %s %s: %v", k.version, strings.Join(args, " "), got)
		}
	}
	t.Logf("%d MiB there and back in %v", bigBody>>20, time.Since(began).Round(time.Millisecond))
	there := k.try("", "exec", kubelet.Pod, "-c", kubelet.Main, "--", "sh", "-c", "sha256sum <"+name+" && rm "+name)
	if got, _, _ := strings.Cut(there.stdout, " "); got != sum {
		t.Errorf("the copy in the container has checksum %q (%v), want %s", got, there, sum)
	}
	back, err := os.Open(filepath.Join(dir, "back"))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if got := checksum(t, back); got != sum {
		t.Errorf("the copy that came back has checksum %s, want %s", got, sum)
	}
}

// bigFile writes a file of random bytes and returns its checksum.
func bigFile(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, h), rand.Reader, bigBody); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func checksum(t *testing.T, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Error(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

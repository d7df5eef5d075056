package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/labtest"
)

var updateWalk = flag.Bool("update-walk", false, "write what the commands of docs/policies-walk.md print into it")

const walkFile = "../../docs/policies-walk.md"

// walkBlock is a block of commands in the document, and what it says that they print.
type walkBlock struct {
	line     int // where the commands begin
	commands string
	output   string
}

// blockPattern is a block of commands with the block of its output, if it has one.
var blockPattern = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?")

func walkBlocks(document string) (blocks []walkBlock) {
	for _, at := range blockPattern.FindAllStringSubmatchIndex(document, -1) {
		b := walkBlock{line: 2 + strings.Count(document[:at[0]], "\n"), commands: document[at[2]:at[3]]}
		if at[4] >= 0 {
			b.output = document[at[4]:at[5]]
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// TestPoliciesWalk runs every command of docs/policies-walk.md, one after the other in one
// shell, as a reader would, and compares what they print with what the document says.
func TestPoliciesWalk(t *testing.T) {
	t.Parallel()
	labtest.Clients(t) // skips without a lab
	data, err := os.ReadFile(walkFile)
	if err != nil {
		t.Fatal(err)
	}
	document := string(data)
	blocks := walkBlocks(document)
	if len(blocks) < 10 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	shell := startShell(t)
	ports := strings.NewReplacer("127.0.0.1:16443", freeAddress(t), "127.0.0.1:19090", freeAddress(t))
	var outputs []string
	for _, b := range blocks {
		got := normalized(shell.run(ports.Replace(b.commands)), shell.dir)
		outputs = append(outputs, got)
		if got != b.output && !*updateWalk {
			t.Fatalf("%s:%d:\n%s\nprints\n%s\nand not\n%s\n%s", walkFile, b.line, b.commands, got, b.output, shell.log())
		}
	}
	if *updateWalk {
		n := -1
		document = blockPattern.ReplaceAllStringFunc(document, func(block string) string {
			n++
			commands := "```sh\n" + blocks[n].commands + "```\n"
			if outputs[n] == "" {
				return commands
			}
			return commands + "\n```text\n" + outputs[n] + "```\n"
		})
		if err := os.WriteFile(walkFile, []byte(document), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// walkShell is the one shell that all commands run in.
type walkShell struct {
	t      *testing.T
	in     io.Writer
	out    *bufio.Reader
	dir    string // that the first block makes
	blocks int
}

// startShell starts a shell in the root of the repository, where a reader starts, whose
// temporary directories are the test's.
func startShell(t *testing.T) *walkShell {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "GOFLAGS=-mod=readonly")
	for _, keep := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // which follow HOME
		value, err := exec.Command("go", "env", keep).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, keep+"="+strings.TrimSpace(string(value)))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second // for what a failed walk has left behind
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &walkShell{t: t, in: in, out: bufio.NewReader(reader), dir: dir}
	t.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, reader) }()
		if t.Failed() {
			s.cleanUp(cmd.Process.Pid)
		}
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("the shell ended with %v", err)
		}
		cancel()
	})
	return s
}

// cleanUp ends what a walk has started that did not come to its end.
func (s *walkShell) cleanUp(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // it may be over
	labs, _ := filepath.Glob(filepath.Join(s.dir, "*", "lab"))
	for _, lab := range labs {
		down := exec.Command("go", "run", "./bench/lab", "down", "--dir", lab)
		down.Dir = "../.."
		if out, err := down.CombinedOutput(); err != nil {
			s.t.Errorf("cannot end the lab: %v\n%s", err, out)
		}
	}
}

// run runs a block of commands, and returns what they print.
func (s *walkShell) run(commands string) string {
	s.t.Helper()
	s.blocks++
	mark := fmt.Sprintf("end of block %d", s.blocks)
	fmt.Fprintf(s.in, "%s\necho; echo '%s'\n", commands, mark)
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if strings.HasSuffix(line, mark+"\n") {
			break
		}
		if err != nil {
			s.t.Fatalf("the shell ended in\n%s\nand printed\n%s", commands, printed.String()+line)
		}
		printed.WriteString(line)
	}
	return strings.TrimSuffix(printed.String(), "\n") // of the echo
}

// log is what MVP has said.
func (s *walkShell) log() string {
	names, _ := filepath.Glob(filepath.Join(s.dir, "*", "mvp.log"))
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil {
			return string(data)
		}
	}
	return ""
}

// What differs from one run to the next: ages, process numbers, addresses.
var walkNoise = []struct{ pattern, instead string }{
	{`(?m)^\[\d+\] +\d+\n`, ""},
	{`(?m)^\[\d+\][+-]? .*\n`, ""},
	{`127\.0\.0\.1:\d+`, "127.0.0.1:16443"},
	{`(?m) (\d+m)?\d+s$`, " 5s"},
	{`\(\d+\.\d+s\)`, "(0.00s)"},
}

func normalized(printed, dir string) string {
	printed = strings.ReplaceAll(printed, dir+"/", "/tmp/")
	printed = regexp.MustCompile(`/tmp/tmp\.\w+`).ReplaceAllString(printed, "/tmp/walk")
	for _, n := range walkNoise {
		printed = regexp.MustCompile(n.pattern).ReplaceAllString(printed, n.instead)
	}
	if printed != "" && !strings.HasSuffix(printed, "\n") {
		printed += "\n"
	}
	return printed
}

// freeAddress is an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

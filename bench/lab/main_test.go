package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

func TestParse(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	f := func(line, want string) {
		t.Helper()
		args := strings.Fields(line)
		in, err := parse(commands[args[0]], args[1:])
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("versions=%v kubelet=%v audit=%v keep=%v server=%v args=%v", in.versions, in.kubelet, in.audit, in.keep, in.apiServerArgs, in.args)
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}

	f("up", "versions=[] kubelet=false audit=false keep=false server=[] args=[]")
	f("up --versions 1.31.14,1.32.13 --audit", "versions=[1.31.14 1.32.13] kubelet=false audit=true keep=false server=[] args=[]")
	f("up --apiserver-arg --v=4 --apiserver-arg=--x", "versions=[] kubelet=false audit=false keep=false server=[--v=4 --x] args=[]")
	f("up --kubelet", "versions=[] kubelet=true audit=false keep=false server=[] args=[]")
	f("down --keep", "versions=[] kubelet=false audit=false keep=true server=[] args=[]")
	f("stop a --dir d b", "versions=[] kubelet=false audit=false keep=false server=[] args=[a b]")
	f("stop a -- --dir", "versions=[] kubelet=false audit=false keep=false server=[] args=[a --dir]")

	f("up x", "wrong number of arguments: want up [--versions V,V...] [--kubelet] [--audit] [--apiserver-arg ARG]...")
	f("stop", "wrong number of arguments: want stop NAME...")
	f("upgrade a", "wrong number of arguments: want upgrade NAME VERSION")
	f("stop --audit a", "flag provided but not defined: -audit")
	f("up --versions=", `invalid value "" for flag -versions: it is empty`)
	f("clients --help", "flag: help requested")
}

func TestParseDir(t *testing.T) {
	in, err := parse(commands["stop"], []string{"a", "--dir", "d"})
	if err != nil || in.dir != "d" {
		t.Errorf("dir is %q, %v; want d", in.dir, err)
	}
}

func TestRun(t *testing.T) {
	empty := t.TempDir()
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // what they begin with
	}{
		{"help", []string{"help"}, exitOK, "Usage: ", ""},
		{"help of a command", []string{"up", "-h"}, exitOK, "Usage: ", ""},
		{"no command", nil, exitUsage, "", "lab: no command\n\nUsage: "},
		{"unknown command", []string{"u"}, exitUsage, "", "lab: unknown command \"u\"\n\nUsage: "},
		{"bad arguments", []string{"stop"}, exitUsage, "", "lab: wrong number of arguments: want stop NAME...\n\nUsage: "},
		{"not up", []string{"status", "--dir", empty}, exitFailed, "", "lab: " + empty + ": no control plane here: run \"up\" first\n"},
		{"nothing to take down", []string{"down", "--dir", empty}, exitOK, "", empty + ": no control plane here: nothing to do\n"},
		{"bad version", []string{"up", "--dir", empty, "--versions", "1.31"}, exitFailed, "", "lab: bad Kubernetes version \"1.31\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tt.args, &stdout, &stderr); code != tt.code {
				t.Errorf("exit code is %d, want %d", code, tt.code)
			}
			wantStart(t, "stdout", stdout.String(), tt.stdout)
			wantStart(t, "stderr", stderr.String(), tt.stderr)
		})
	}
}

func wantStart(t *testing.T, what, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) || want == "" && got != "" {
		t.Errorf("%s is %q, want it to begin with %q", what, got, want)
	}
}

func TestUsageNamesAllCommands(t *testing.T) {
	if len(order) != len(commands) {
		t.Errorf("usage text has %d commands of %d", len(order), len(commands))
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, cmd := range commands {
		if !strings.HasPrefix(cmd.synopsis, name) {
			t.Errorf("synopsis of %s is %q", name, cmd.synopsis)
		}
		if !strings.Contains(usageText(), "\n  "+cmd.synopsis+"\n") {
			t.Errorf("usage text lacks %q", cmd.synopsis)
		}
		if !strings.Contains(string(readme), "`"+cmd.synopsis+"`") {
			t.Errorf("README.md lacks %q", cmd.synopsis)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	err := writeTable(&b, []row{
		{controlplane.Server{Name: "etcd", URL: "https://127.0.0.1:20001", PID: 7}, "yes"},
		{controlplane.Server{Name: "a", Version: "1.31.14", URL: "https://127.0.0.1:20002"}, "stopped"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `NAME  VERSION  URL                      PID  READY
etcd  -        https://127.0.0.1:20001  7    yes
a     1.31.14  https://127.0.0.1:20002  -    stopped
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestShellQuote(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", in, got, want)
		}
	}

	f("/a b", `'/a b'`)
	f("it's", `'it'\''s'`)
}

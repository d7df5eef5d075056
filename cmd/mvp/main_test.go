package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mvp": main})
}

// TestScripts runs the commands of each archive in testdata/script. To add a
// case, add a file.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		Setup: func(env *testscript.Env) error {
			root, err := os.Getwd()
			env.Vars = append(env.Vars, "ROOT="+root+"/../..", "ADMIN="+scriptedAdmin(env))
			return err
		},
	})
}

// staysUp are the commands of the README that do not end by themselves, and what
// each prints when it does what the README says.
var staysUp = map[string]string{
	"demo": "Everything came out as it should.",
}

// TestReadme runs every `go run ./cmd/mvp` of the README, in the repository's
// root, as it stands there.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range strings.Lines(string(readme)) {
		arguments, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/mvp ")
		if !ok {
			continue
		}
		ran++
		args := strings.Fields(arguments)
		t.Run(arguments, func(t *testing.T) { runReadme(t, args) })
	}
	if ran == 0 {
		t.Error("the README has no command to run")
	}
}

func runReadme(t *testing.T, args []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, streams{strings.NewReader(""), writer, writer})
		_ = writer.Close() // a pipe's never fails
	}()
	var printed strings.Builder
	done := staysUp[args[0]]
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if done != "" && strings.Contains(lines.Text(), done) {
			cancel()
		}
	}
	if got := <-code; got != exitOK || (done != "" && !errors.Is(ctx.Err(), context.Canceled)) {
		t.Errorf("exited %d and printed\n%s", got, printed.String())
	}
}

// Wrong arguments exit with 2 and say what is wanted.
func TestUsage(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var out strings.Builder
		if got := run(t.Context(), args, streams{strings.NewReader(""), &out, &out}); got != exitUsage || !strings.Contains(out.String(), want) {
			t.Errorf("mvp %s exited %d and printed %q, want %d and %q", strings.Join(args, " "), got, out.String(), exitUsage, want)
		}
	}

	f("unknown command \"sevre\"", "sevre")
	f("unknown flag: --upstrem", "serve", "--upstrem", "x")
	f("no kube-apiservers: give --upstream URL for each", "serve")
	f("--tls-cert-file and --tls-private-key-file go together", "serve", "--upstream", "https://h:1", "--tls-cert-file", "x")
	f(`cannot use --log-level "loud": want debug, info, warn or error`, "serve", "--upstream", "https://h:1", "--log-level", "loud")
	f(`cannot use --log-format "xml": want json or text`, "serve", "--upstream", "https://h:1", "--log-format", "xml")
	f("read the cluster with MVP's own credential: give --upstream-token-file or --upstream-client-cert-file", "serve", "--upstream", "https://h:1", "--policy-objects")
	f("cannot use --policy-objects-timeout 0s: want a positive duration", "serve", "--upstream", "https://h:1", "--upstream-token-file", "x", "--policy-objects", "--policy-objects-timeout", "0s")
	f(`--policy-configmaps: cannot use "a": want NAMESPACE/SELECTOR`, "serve", "--upstream", "https://h:1", "--upstream-token-file", "x", "--policy-configmaps", "a")
	f("no manifests: name files, folders, or - for standard input", "test-policy", "--library", "all")
	f("no policies: give --policies DIR or --library NAME", "test-policy", "x.yaml")
	f(`cannot print "xml": -o takes json`, "library", "-o", "xml")
	f(`there are no shipped policies "policy-v1beta2"; did you mean "policy-v1beta1"?`, "library", "policy-v1beta2")
	f(`cannot print "xml": -o takes table, wide, json, yaml`, "status", "-o", "xml")
	f(`cannot use --admin "localhost": want HOST:PORT; mvp serve listens for administrators at 127.0.0.1:9090 by default`, "status", "--admin", "localhost")
	f(`cannot use --admin "ftp://localhost:1": want HOST:PORT or http://HOST:PORT`, "status", "--admin", "ftp://localhost:1")
	f(`cannot use --admin "": want HOST:PORT or http://HOST:PORT`, "status", "--admin", "")
	f("unknown command \"now\"", "status", "now")
	f(`cannot print "xml": -o takes diff, yaml, json, junit, markdown`, "test-policy", "--library", "all", "-o", "xml", "x.yaml")
	f(`cannot use --request "GET": want a method and a path`, "test-policy", "--library", "all", "--request", "GET", "x.yaml")
	f("cannot use --request \"GET //x\": cannot accept request", "test-policy", "--library", "all", "--request", "GET //x", "x.yaml")
	f(`cannot use --served "policy": want a group version such as policy/v1beta1, or v1 for the core group`, "test-policy", "--library", "all", "--served", "policy", "x.yaml")
	f(`cannot use --served "PodDisruptionBudget": want`, "test-policy", "--library", "all", "--served", "PodDisruptionBudget", "x.yaml")
	f(`cannot use --served "a/b/c": want`, "test-policy", "--library", "all", "--served", "a/b/c", "x.yaml")
	f("cannot use --coverage-min 101: want a percentage, from 0 to 100", "test-policy", "--library", "all", "--coverage-min", "101")
	f("cannot use --coverage-min NaN: want a percentage", "test-policy", "--library", "all", "--coverage-min", "NaN")
	f("cannot use --coverage-min -1: it cannot be negative", "test-policy", "--library", "all", "--coverage-min", "-1")
	f("cannot use --fuzz -1: it cannot be negative", "test-policy", "--library", "all", "--fuzz", "-1")
	f("cannot use --upstream-probe-interval -1s: it cannot be negative", "serve", "--upstream", "https://h:1", "--upstream-probe-interval", "-1s")
	f("cannot use --max-body-bytes -1: it cannot be negative", "serve", "--upstream", "https://h:1", "--max-body-bytes", "-1")
}

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := parse(args, io.Discard)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: got %q, want %q", args, got, want)
		}
	}

	f("", "--address=127.0.0.1:0")
	f("", "--address=[::1]:0")
	f(`bad --address "0.0.0.0:0": want a loopback address, because clients may run commands`, "--address=0.0.0.0:0")
	f(`bad --address "localhost:0": want a loopback address, because clients may run commands`, "--address=localhost:0")
	f("bad --address: address x: missing port in address", "--address=x")
	f(`unknown argument "x"`, "x")
	f("flag provided but not defined: -x", "--x")
}

func TestReadPods(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pods.json")
	f := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readPods(file)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}

	f(`{"items":[{"metadata":{"namespace":"n","name":"p"},"spec":{"containers":[{"name":"c","command":["date"],"tty":true}]}}]}`, "")
	f(`{"items":[{"metadata":{"namespace":"n","name":"p"},"spec":{"containers":[{"name":"c"}]}}]}`, "container c of pod n/p has no command: there are no images here")
	f(`{"items":[{"metadata":{"namespace":"..","name":"p"},"spec":{"containers":[{"name":"c","command":["date"]}]}}]}`, `bad name ".." in `)
	f(`{"items":[{"metadata":{"namespace":"n","name":"a/b"},"spec":{"containers":[{"name":"c","command":["date"]}]}}]}`, `bad name "a/b" in `)
	f(`{`, "cannot read pods from ")
}

func TestRunFails(t *testing.T) {
	err := run(context.Background(), []string{"--tls-cert-file=missing"}, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot load serving certificate: ") {
		t.Errorf("without a certificate: %v", err)
	}
}

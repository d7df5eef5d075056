package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

// process is a process on this machine, as /proc knows it.
type process int

// cpu is for how long all its threads have run.
func (p process) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("cannot see the threads of process %d in /proc: %w", p, errors.Join(err, os.ErrNotExist))
	}
	var sum time.Duration
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended since
		}
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		nanos, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot read %s: %w", path, err)
		}
		sum += time.Duration(nanos)
	}
	return sum, nil
}

// memory is what it has in memory now, and the most it ever had since resetPeak, in
// bytes.
func (p process) memory() (now, peak int64, err error) {
	path := fmt.Sprintf("/proc/%d/status", p)
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmRSS": &now, "VmHWM": &peak}[key]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("cannot read %s of %s: %w", key, path, err)
		}
		*into = kilobytes << 10
	}
	return now, peak, nil
}

// resetPeak makes what it has in memory now the most that it ever had.
func (p process) resetPeak() error {
	const peak = "5" // see proc(5)
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p), []byte(peak), 0)
}

// mvp is one running mvp serve.
type mvp struct {
	process
	url, admin string
	cmd        *exec.Cmd
	log        string // path
}

// startMVP starts the binary before one server, with metrics and access log as they
// are by default, and waits until it is ready.
func startMVP(ctx context.Context, binary string, l *controlplane.ControlPlane, server string, policies map[string]string) (*mvp, error) {
	dir, err := os.MkdirTemp(l.Dir(), "mvp-")
	if err != nil {
		return nil, err
	}
	rules := filepath.Join(dir, "policies")
	if err := os.Mkdir(rules, 0o700); err != nil {
		return nil, err
	}
	for name, content := range policies {
		if err := os.WriteFile(filepath.Join(rules, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(l.Token(controlplane.Discovery)), 0o600); err != nil {
		return nil, err
	}
	cert, key, err := l.ServingCert(filepath.Base(dir), "127.0.0.1")
	if err != nil {
		return nil, err
	}
	m := &mvp{log: filepath.Join(dir, "log")}
	log, err := os.Create(m.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	m.cmd = exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--upstream", "a="+server, "--upstream-ca-file", l.Files().CA, "--upstream-token-file", token,
		"--tls-cert-file", cert, "--tls-private-key-file", key, "--policies", rules)
	m.cmd.Stderr = log
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.process = process(m.cmd.Process.Pid)
	if err := m.ready(ctx); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

// ready waits until mvp listens and sees its server.
func (m *mvp) ready(ctx context.Context) error {
	return eventually(ctx, "mvp is ready", func() error {
		if m.url == "" {
			if err := m.findAddresses(); err != nil {
				return err
			}
		}
		var report struct {
			Servers []struct{ Healthy bool }
		}
		resp, err := http.Get(m.admin + "/upstreams")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
			return err
		}
		if len(report.Servers) != 1 || !report.Servers[0].Healthy {
			return errors.New("its server is not healthy")
		}
		return nil
	})
}

// findAddresses reads in the log where it listens.
func (m *mvp) findAddresses() error {
	log, err := os.ReadFile(m.log)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(log) {
		var record struct{ Msg, Clients, Admin string }
		if json.Unmarshal(line, &record) == nil && record.Msg == "serving" {
			m.url, m.admin = "https://"+record.Clients, "http://"+record.Admin
			return nil
		}
	}
	return fmt.Errorf("it does not listen; its log:\n%s", log)
}

func (m *mvp) stop() error {
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("mvp ended with %w; its log is %s", err, m.log)
	}
	return nil
}

// eventually asks for a condition of another process until it is met, for a minute.
func eventually(ctx context.Context, what string, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting until %s: %w", what, err)
		case <-time.After(20 * time.Millisecond): // others tell of a change only when asked
		}
	}
}

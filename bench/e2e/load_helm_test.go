package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// chart are the files of a chart that a release of any age could have.
var chart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
	"values.yaml": "turn: \"0\"\nbatch: batch/v1\n",
	"templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {turn: {{ .Values.turn | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {clusterIP: None, selector: {app: "{{ .Release.Name }}"}, ports: [{port: 80}]}
---
apiVersion: {{ .Values.batch }}
kind: CronJob
metadata: {name: "{{ .Release.Name }}"}
spec:
  schedule: "0 3 * * *"
  suspend: true
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {turn: {{ .Values.turn | quote }}}}
        spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: 1
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}, annotations: {turn: {{ .Values.turn | quote }}}}
    spec: {containers: [{name: main, image: busybox}]}
`,
}

const helmPause = 2 * time.Second

// install installs, upgrades and uninstalls a release, with the oldest and the newest
// helm.
func (l *traffic) install() {
	dir := l.t.TempDir()
	for name, content := range chart {
		path := filepath.Join(dir, name)
		l.must(os.MkdirAll(filepath.Dir(path), 0o700))
		l.must(os.WriteFile(path, []byte(content), 0o600))
	}
	batch := "batch/v1"
	if l.converts {
		batch = "batch/v1beta1" // as charts of that age have it
	}
	for _, version := range []string{"3.8", "4.1"} {
		h := &helm{traffic: l, version: version, home: l.t.TempDir(), release: "release-" + strings.ReplaceAll(version, ".", "-")}
		steps := [][]string{
			{"install", h.release, dir, "--set", "batch=" + batch},
			{"upgrade", h.release, dir, "--set", "batch=" + batch, "--set-string", "turn=1"},
			{"uninstall", h.release},
		}
		l.every(helmPause, func(n int) { h.step(n%len(steps), steps[n%len(steps)]) })
	}
}

type helm struct {
	*traffic
	version, home, release string
	failed                 bool // since the last install
}

// step runs one helm command. After one that failed, the release may be in any state,
// so the cycle begins anew.
func (h *helm) step(n int, args []string) {
	if h.failed && n > 0 {
		return
	}
	if h.failed {
		_, _ = h.run("uninstall", h.release) // it may not be there
		h.failed = false
	}
	began := time.Now()
	out, err := h.run(args...)
	client := "helm " + h.version
	h.tally.request(client, client+" "+args[0], time.Since(began))
	if err != nil && h.ctx.Err() == nil {
		h.failed = true
		h.tally.failWrite(client, out, "helm %s: %v: %s", args[0], err, out)
	}
}

func (h *helm) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(h.ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.lab.clients.Helm(h.version), append([]string{"-n", h.namespace(), "--kubeconfig", h.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+h.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

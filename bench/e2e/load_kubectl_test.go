package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/clients"
)

// commandTimeout is what one kubectl or helm may take on a busy machine.
const commandTimeout = 2 * time.Minute

// command runs a kubectl of the traffic and counts it. A write that fails is allowed
// where failWrite allows it.
func (l *traffic) command(client string, k kubectl, writes bool, args ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(l.ctx, commandTimeout)
	defer cancel()
	began := time.Now()
	out, err := k.command(ctx, args...).CombinedOutput()
	what := "kubectl " + k.version + " " + clipped(strings.Join(args, " "))
	l.tally.request(client, what, time.Since(began))
	if err == nil {
		return string(out), true
	}
	if l.ctx.Err() == nil {
		answer := ""
		if writes {
			answer = string(out)
		}
		l.tally.failWrite(client, answer, "%s: %v: %s", what, err, out)
	}
	return string(out), false
}

func clipped(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// applied is what kubectl applies: NAME and TURN are replaced.
const applied = `apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, labels: {app: NAME}}
data: {turn: "TURN"}
---
apiVersion: v1
kind: Service
metadata: {name: NAME, labels: {app: NAME}}
spec: {clusterIP: None, selector: {app: NAME}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, annotations: {turn: "TURN"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: busybox}]}
`

const applyPause = 3 * time.Second

// apply applies the same objects, a little changed, with the oldest and the newest
// kubectl.
func (l *traffic) apply() {
	versions := clients.KubectlVersions()
	for _, version := range []string{versions[0], versions[len(versions)-1]} {
		k := l.kubectl(l.t, version)
		name := "applied-" + strings.ReplaceAll(version, ".", "-")
		file := filepath.Join(l.t.TempDir(), "applied.yaml")
		l.every(applyPause, func(n int) {
			client := "kubectl " + version + " apply"
			turn := fmt.Sprint(n)
			text := strings.NewReplacer("NAME", name, "TURN", turn).Replace(applied)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				l.fail(client, "%v", err)
				return
			}
			if _, ok := l.command(client, k, true, "-n", l.namespace(), "apply", "-f", file); !ok {
				return
			}
			got, ok := l.command(client, k, false, "-n", l.namespace(), "get", "configmap", name, "-o", "jsonpath={.data.turn}")
			if ok && got != turn {
				l.fail(client, "%s was applied with turn %s and read with turn %q", name, turn, got)
			}
		})
	}
}

const (
	// roundClient is the client under which rounds are counted.
	roundClient = "rounds"

	// roundWorkers work at the same time.
	roundWorkers = 2
)

// A round is one command of one kubectl with an empty discovery cache.
var rounds = [][]string{
	{"api-resources"},
	{"api-versions"},
	{"explain", "deployments.spec.template.spec"},
	{"get"}, // of every listed kind, see getAll
	{"explain", "cronjob"},
}

// explore runs rounds: every command by every kubectl, in turns.
func (l *traffic) explore(pause time.Duration) {
	versions := clients.KubectlVersions()
	for w := range roundWorkers {
		ks := map[string]kubectl{}
		for _, version := range versions {
			ks[version] = l.kubectl(l.t, version)
		}
		l.every(pause, func(n int) {
			n = n*roundWorkers + w
			k := ks[versions[n%len(versions)]]
			defer func() { _ = os.RemoveAll(filepath.Join(k.lab.home, ".kube")) }() // a fresh cache for the next
			l.round(k, rounds[n/len(versions)%len(rounds)])
		})
	}
}

func (l *traffic) round(k kubectl, args []string) {
	if args[0] != "get" {
		out, ok := l.command(roundClient, k, false, args...)
		if want := wanted[args[0]]; ok && !strings.Contains(out, want) {
			l.fail(roundClient, "kubectl %s %s printed no %q: %s", k.version, args[0], want, out)
		}
		return
	}
	out, ok := l.command(roundClient, k, false, "api-resources", "--verbs=list", "-o", "name")
	if !ok {
		return
	}
	kinds := strings.Fields(out)
	if len(kinds) < leastKinds {
		l.fail(roundClient, "kubectl %s lists %d kinds: %s", k.version, len(kinds), out)
	}
	l.command(roundClient, k, false, "get", strings.Join(kinds, ","), "-A", "-o", "name")
}

// leastKinds is how many kinds any server has that can be listed.
const leastKinds = 50

// wanted is what a command must print whatever else it prints.
var wanted = map[string]string{
	"api-resources": "customresources",
	"api-versions":  "flowcontrol.apiserver.k8s.io/v1",
	"explain":       "FIELDS",
}

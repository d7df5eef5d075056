// Command kube-controller-manager is the Kubernetes controller manager of the version in go.mod,
// built for the lab. See bench/lab/README.md.
package main

import (
	"os"
	_ "time/tzdata" // cron jobs name time zones

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	os.Exit(cli.Run(app.NewControllerManagerCommand()))
}

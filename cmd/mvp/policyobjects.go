package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/objects"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// objectOptions are the flags of `mvp serve` about policies that are objects of the
// cluster.
type objectOptions struct {
	rules      bool
	configMaps []string
	timeout    time.Duration

	leaseNamespace, leaseName string
}

func (o *objectOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.rules, "policy-objects", false, "follow the TransformationRules of the cluster, with MVP's own credential")
	f.StringArrayVar(&o.configMaps, "policy-configmaps", nil, "follow the ConfigMaps of a namespace that match a label selector, each a directory of policy files: NAMESPACE/SELECTOR; may be repeated")
	f.DurationVar(&o.timeout, "policy-objects-timeout", objects.DefaultTimeout, "time after which MVP is ready though it could not read the policy objects")
	f.StringVar(&o.leaseNamespace, "lease-namespace", "", "namespace of the Lease of the replica that tells what became of policy objects (default: the pod's, else kube-system)")
	f.StringVar(&o.leaseName, "lease-name", objects.DefaultLeaseName, "name of that Lease")
}

// config is what the flags say; nil: there are no objects to follow. own says whether
// MVP has a credential of its own.
func (o *objectOptions) config(own bool) (*objects.Config, error) {
	if !o.rules && len(o.configMaps) == 0 {
		return nil, nil
	}
	if !own {
		return nil, usageError("--policy-objects and --policy-configmaps read the cluster with MVP's own credential: give --upstream-token-file or --upstream-client-cert-file")
	}
	if o.timeout <= 0 {
		return nil, usageError("cannot use --policy-objects-timeout %v: want a positive duration", o.timeout)
	}
	cfg := &objects.Config{Rules: o.rules, Timeout: o.timeout, LeaseNamespace: o.leaseNamespace, LeaseName: o.leaseName}
	for _, arg := range o.configMaps {
		c, err := objects.ParseConfigMaps(arg)
		if err != nil {
			return nil, usageError("--policy-configmaps: %w", err)
		}
		cfg.ConfigMaps = append(cfg.ConfigMaps, c)
	}
	if cfg.LeaseNamespace == "" {
		cfg.LeaseNamespace = podNamespace()
	}
	return cfg, nil
}

// podNamespace is the namespace of the pod that this process runs in, or where the
// components of a control plane are.
func podNamespace() string {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil || len(data) == 0 {
		return "kube-system"
	}
	return strings.TrimSpace(string(data))
}

// policyObjects are the objects that a stack follows.
type policyObjects struct {
	*objects.Watcher
	cluster *upstream.Cluster
	used    atomic.Bool // requests have been decided by them
}

// newPolicyObjects makes what follows the objects that cfg says, at any server of pool.
func newPolicyObjects(cfg objects.Config, store *policies.Store, pool *upstream.Pool, log *slog.Logger) (*policyObjects, error) {
	o := &policyObjects{cluster: pool.Cluster()}
	cfg.Store, cfg.Cluster, cfg.Log = store, o.cluster, log
	var err error
	o.Watcher, err = objects.New(cfg)
	return o, err
}

// viewChanged is called when the servers, or what they serve, have changed.
func (o *policyObjects) viewChanged() {
	o.cluster.Recheck()
	o.Look()
}

// objectReport is what /policies says of an object.
type objectReport struct {
	Name     string    `json:"name"`
	Accepted bool      `json:"accepted"`
	Reason   string    `json:"reason"`
	Policies int       `json:"policies"`
	Mistakes []mistake `json:"mistakes,omitempty"`
}

func reportObjects(statuses []policies.ObjectStatus) []objectReport {
	var reports []objectReport
	for i := range statuses {
		s := &statuses[i]
		r := objectReport{Name: s.Name, Accepted: s.Accepted(), Reason: s.Reason, Policies: s.Policies}
		if len(s.Err) > 0 {
			r.Mistakes = mistakes(s.Err)
		}
		reports = append(reports, r)
	}
	return reports
}

// notes say what an operator should know of the policies of an MVP that is ready.
func notes(status policies.Status) []string {
	var lines []string
	if n := len(status.Err); n > 0 {
		lines = append(lines, fmt.Sprintf("policies: the files are not reloaded, generation %d stays; mistakes: %d, see /policies", status.Generation, n))
	}
	for i := range status.Objects {
		if s := &status.Objects[i]; !s.Accepted() {
			lines = append(lines, fmt.Sprintf("policies: %s is not accepted (%s), see /policies", s.Name, s.Reason))
		}
	}
	return lines
}

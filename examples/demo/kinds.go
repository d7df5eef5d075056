package demo

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind is one resource in one version: a row of what a server serves.
type kind struct {
	schema.GroupVersionKind

	plural     string
	singular   string
	shortNames []string
	categories []string
	namespaced bool

	// firstMinor and lastMinor are the Kubernetes 1.x releases that serve this
	// version; zero: no such bound.
	firstMinor, lastMinor int

	status     bool // has the status subresource
	generation bool // counts its spec's changes in metadata.generation
	logs       bool // has the log subresource
	scale      *scalePaths

	// fields are what a field selector may name beside metadata.name and
	// metadata.namespace.
	fields []string

	// defaults are merged into an object that lacks them.
	defaults map[string]any

	// columns are shown in a Table between Name and Age.
	columns []column

	// custom is what a CustomResourceDefinition says; nil: a built-in kind.
	custom *customVersion
}

// A column of a Table.
type column struct {
	name, typ, format, description string

	path     string // JSONPath as in a CRD: .spec.schedule
	priority int32  // above zero: only for kubectl get -o wide
}

// scalePaths are where an object holds what its scale subresource shows, each a
// list of keys.
type scalePaths struct {
	spec, status, selector []string
}

func gvk(group, version, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

const flowcontrolGroup = "flowcontrol.apiserver.k8s.io"

var (
	crdKind = &kind{
		GroupVersionKind: gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
		plural:           "customresourcedefinitions",
		singular:         "customresourcedefinition",
		shortNames:       []string{"crd", "crds"},
		status:           true, generation: true,
		columns: []column{{name: "Created At", typ: "date", path: ".metadata.creationTimestamp", description: "Creation time"}},
	}
	namespaceKind = &kind{
		GroupVersionKind: gvk("", "v1", "Namespace"), plural: "namespaces", singular: "namespace", shortNames: []string{"ns"},
		status:   true,
		defaults: map[string]any{"status": map[string]any{"phase": "Active"}, "spec": map[string]any{"finalizers": []any{"kubernetes"}}},
		columns:  []column{{name: "Status", typ: "string", path: ".status.phase"}},
	}
	deploymentScale = &scalePaths{
		spec: []string{"spec", "replicas"}, status: []string{"status", "replicas"}, selector: []string{"spec", "selector"},
	}
)

// builtin are the kinds that come with a release. Of one group the first version
// is the preferred one. The bounds are those of the real releases.
var builtin = []*kind{
	namespaceKind,
	{
		GroupVersionKind: gvk("", "v1", "ConfigMap"), plural: "configmaps", singular: "configmap", shortNames: []string{"cm"},
		namespaced: true,
	},
	{
		GroupVersionKind: gvk("", "v1", "Secret"), plural: "secrets", singular: "secret",
		namespaced: true,
		fields:     []string{"type"},
		defaults:   map[string]any{"type": "Opaque"},
		columns:    []column{{name: "Type", typ: "string", path: ".type"}},
	},
	{
		GroupVersionKind: gvk("", "v1", "Pod"), plural: "pods", singular: "pod", shortNames: []string{"po"}, categories: []string{"all"},
		namespaced: true, status: true, logs: true,
		fields:   []string{"spec.nodeName", "spec.restartPolicy", "status.phase"},
		defaults: map[string]any{"status": map[string]any{"phase": "Pending"}},
		columns:  []column{{name: "Status", typ: "string", path: ".status.phase"}},
	},
	{
		GroupVersionKind: gvk("", "v1", "Service"), plural: "services", singular: "service", shortNames: []string{"svc"}, categories: []string{"all"},
		namespaced: true, status: true,
		defaults: map[string]any{"spec": map[string]any{"type": "ClusterIP"}},
		columns:  []column{{name: "Type", typ: "string", path: ".spec.type"}},
	},
	{
		GroupVersionKind: gvk("", "v1", "Event"), plural: "events", singular: "event", shortNames: []string{"ev"},
		namespaced: true,
		fields: []string{
			"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "type",
		},
		columns: []column{{name: "Reason", typ: "string", path: ".reason"}, {name: "Message", typ: "string", path: ".message"}},
	},
	{
		GroupVersionKind: gvk("apps", "v1", "Deployment"), plural: "deployments", singular: "deployment", shortNames: []string{"deploy"}, categories: []string{"all"},
		namespaced: true, status: true, generation: true, scale: deploymentScale,
		defaults: map[string]any{"spec": map[string]any{"replicas": int64(1)}},
		columns: []column{
			{name: "Ready", typ: "integer", path: ".status.readyReplicas"},
			{name: "Up-to-date", typ: "integer", path: ".status.updatedReplicas"},
			{name: "Available", typ: "integer", path: ".status.availableReplicas"},
		},
	},
	cronJobKind("v1", 21, 0),
	{
		GroupVersionKind: gvk("batch", "v1", "Job"), plural: "jobs", singular: "job", categories: []string{"all"},
		namespaced: true, status: true, generation: true,
	},
	cronJobKind("v1beta1", 8, 24),
	pdbKind("v1", 21, 0),
	pdbKind("v1beta1", 5, 24),
	{
		GroupVersionKind: gvk("networking.k8s.io", "v1", "Ingress"), plural: "ingresses", singular: "ingress", shortNames: []string{"ing"},
		namespaced: true, status: true, generation: true, firstMinor: 19,
		columns: []column{{name: "Class", typ: "string", path: ".spec.ingressClassName"}},
	},
	flowSchemaKind("v1", 29, 0),
	priorityLevelKind("v1", 29, 0),
	flowSchemaKind("v1beta3", 26, 31),
	priorityLevelKind("v1beta3", 26, 31),
	crdKind,
}

func cronJobKind(version string, first, last int) *kind {
	return &kind{
		GroupVersionKind: gvk("batch", version, "CronJob"), plural: "cronjobs", singular: "cronjob", shortNames: []string{"cj"}, categories: []string{"all"},
		namespaced: true, status: true, generation: true, firstMinor: first, lastMinor: last,
		defaults: map[string]any{"spec": map[string]any{"suspend": false, "concurrencyPolicy": "Allow"}},
		columns: []column{
			{name: "Schedule", typ: "string", path: ".spec.schedule"},
			{name: "Suspend", typ: "boolean", path: ".spec.suspend"},
		},
	}
}

func pdbKind(version string, first, last int) *kind {
	return &kind{
		GroupVersionKind: gvk("policy", version, "PodDisruptionBudget"), plural: "poddisruptionbudgets", singular: "poddisruptionbudget", shortNames: []string{"pdb"},
		namespaced: true, status: true, generation: true, firstMinor: first, lastMinor: last,
		columns: []column{
			{name: "Min Available", typ: "string", path: ".spec.minAvailable"},
			{name: "Max Unavailable", typ: "string", path: ".spec.maxUnavailable"},
			{name: "Allowed Disruptions", typ: "integer", path: ".status.disruptionsAllowed"},
		},
	}
}

func flowSchemaKind(version string, first, last int) *kind {
	return &kind{
		GroupVersionKind: gvk(flowcontrolGroup, version, "FlowSchema"), plural: "flowschemas", singular: "flowschema",
		status: true, generation: true, firstMinor: first, lastMinor: last,
		columns: []column{
			{name: "PriorityLevel", typ: "string", path: ".spec.priorityLevelConfiguration.name"},
			{name: "MatchingPrecedence", typ: "integer", path: ".spec.matchingPrecedence"},
		},
	}
}

func priorityLevelKind(version string, first, last int) *kind {
	return &kind{
		GroupVersionKind: gvk(flowcontrolGroup, version, "PriorityLevelConfiguration"), plural: "prioritylevelconfigurations", singular: "prioritylevelconfiguration",
		status: true, generation: true, firstMinor: first, lastMinor: last,
		columns: []column{{name: "Type", typ: "string", path: ".spec.type"}},
	}
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.plural}
}

func (k *kind) servedBy(minor int) bool {
	return k.firstMinor <= minor && (k.lastMinor == 0 || minor <= k.lastMinor)
}

// kinds returns all that the server serves now, of each group the preferred
// version first.
func (s *Server) kinds() []*kind {
	var list []*kind
	for _, k := range builtin {
		if k.servedBy(s.minor) {
			list = append(list, k)
		}
	}
	return append(list, s.plane.customKinds()...)
}

// kindFor returns the kind behind a resource's plural name; nil: not served.
func (s *Server) kindFor(gv schema.GroupVersion, plural string) *kind {
	for _, k := range s.kinds() {
		if k.plural == plural && k.GroupVersion() == gv {
			return k
		}
	}
	return nil
}

// groups returns the group names of kinds in their order, the core group ("")
// first.
func groups(kinds []*kind) []string {
	var names []string
	for _, k := range kinds {
		if !slices.Contains(names, k.Group) {
			names = append(names, k.Group)
		}
	}
	return names
}

// versions returns the versions of group in their order.
func versions(kinds []*kind, group string) []string {
	var names []string
	for _, k := range kinds {
		if k.Group == group && !slices.Contains(names, k.Version) {
			names = append(names, k.Version)
		}
	}
	return names
}

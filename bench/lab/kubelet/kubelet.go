// Package kubelet describes the one node of a lab: its addresses, its pods and
// the objects by which kube-apiservers find them. The kubelet itself is a program
// with a module of its own, bench/lab/modules/kubelet, because it needs
// Kubernetes' streaming packages; package controlplane builds and starts it.
package kubelet

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// The addresses of the node and of its pods, as kube-apiservers know them. They
// exist nowhere: kube-apiservers reach them by the kubelet, which is their egress
// proxy to the cluster. Loopback addresses would do for streams, but to those a
// kube-apiserver refuses to proxy.
const (
	NodeIP = "10.244.0.1"
	PodIP  = "10.244.0.2"
)

// The node, its pod, and the containers of that.
const (
	Node      = "lab"
	Namespace = "default"
	Pod       = "tools"
	Service   = "tools" // with the port http: that of the pod

	Main     = "main"     // repeats each line that it is told by attach; the default container
	Terminal = "terminal" // a shell on a terminal
	Ticker   = "ticker"   // prints "tick 1", "tick 2", a line a second
)

// The ports of the pod.
const (
	// HTTPPort answers /bytes?n=N with N bytes, /sha256 with the checksum and the
	// length of the body, /refuse with 403, and everything else with the request as
	// JSON: method, target, header.
	HTTPPort = 8080

	// EchoPort sends back what it gets.
	EchoPort = 9090
)

//go:embed objects.yaml
var manifest string

// An Object is a part of the lab's node, for server-side apply.
type Object struct {
	Path   string // of the object in the API
	JSON   []byte
	Status bool // it has a status, which is applied to Path + "/status"
}

// plurals are the resources of the kinds in the manifest.
var plurals = map[string]string{
	"Node":           "nodes",
	"ServiceAccount": "serviceaccounts",
	"Pod":            "pods",
	"Service":        "services",
	"Endpoints":      "endpoints",
}

// Objects returns the objects of a node whose kubelet listens on port, in the
// order in which they can be applied.
func Objects(port int) ([]Object, error) {
	text := strings.NewReplacer("NODE_IP", NodeIP, "POD_IP", PodIP, "Port: 10250", fmt.Sprintf("Port: %d", port)).Replace(manifest)
	var objects []Object
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o, err := object(doc)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func object(doc string) (Object, error) {
	data, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		return Object{}, fmt.Errorf("cannot read the node's objects: %w", err)
	}
	var o struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Status   json.RawMessage
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return Object{}, fmt.Errorf("cannot read the node's objects: %w", err)
	}
	plural, ok := plurals[o.Kind]
	if !ok {
		return Object{}, fmt.Errorf("cannot place an object of kind %q", o.Kind)
	}
	path := "/api/v1/"
	if o.Metadata.Namespace != "" {
		path += "namespaces/" + o.Metadata.Namespace + "/"
	}
	return Object{Path: path + plural + "/" + o.Metadata.Name, JSON: data, Status: o.Status != nil}, nil
}

// Pods returns the pods as the PodList that the kubelet reads.
func Pods() ([]byte, error) {
	objects, err := Objects(0)
	if err != nil {
		return nil, err
	}
	var pods [][]byte
	for _, o := range objects {
		if strings.Contains(o.Path, "/pods/") {
			pods = append(pods, o.JSON)
		}
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"PodList","items":[%s]}`, bytes.Join(pods, []byte(","))), nil
}

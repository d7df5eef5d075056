package controlplane

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mixed-version-proxy/mvp/bench/lab/kubelet"
)

func TestKubeletLaidOut(t *testing.T) {
	c := layOut(t, Config{Kubelet: true})
	if got := strings.Join(c.All(), " "); got != "etcd kubelet a b" {
		t.Errorf("servers are %s, want etcd kubelet a b", got)
	}
	s, err := c.Server(Kubelet)
	if err != nil || s.Version != "" || s.AuditLog != "" || s.URL != "https://"+c.lab.KubeletAddress {
		t.Errorf("the kubelet is %+v, %v", s, err)
	}

	var selector struct {
		EgressSelections []struct {
			Connection struct {
				Transport struct{ TCP struct{ URL string } }
			}
		}
	}
	data, err := os.ReadFile(c.path("egress-selector.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &selector); err != nil {
		t.Fatal(err)
	}
	if len(selector.EgressSelections) != 1 || selector.EgressSelections[0].Connection.Transport.TCP.URL != s.URL {
		t.Errorf("the egress selector does not lead to %s: %s", s.URL, data)
	}
	pods, err := os.ReadFile(c.path("kubelet", "pods.json"))
	if err != nil || !strings.Contains(string(pods), `"name":"`+kubelet.Pod+`"`) {
		t.Errorf("the kubelet's pods are %s, %v", pods, err)
	}

	args, err := c.args("a")
	if err != nil || !slices.Contains(args, "--egress-selector-config-file="+c.path("egress-selector.json")) {
		t.Errorf("flags of a are %v, %v", args, err)
	}
	args, err = c.args(Kubelet)
	if err != nil || !slices.Contains(args, "--address="+c.lab.KubeletAddress) {
		t.Errorf("flags of the kubelet are %v, %v", args, err)
	}
}

func TestNoKubelet(t *testing.T) {
	c := layOut(t, Config{})
	if got := strings.Join(c.All(), " "); got != "etcd a b" {
		t.Errorf("servers are %s, want etcd a b", got)
	}
	_, err := c.Server(Kubelet)
	if want := `no server "kubelet": want one of a, b, etcd`; err == nil || err.Error() != want {
		t.Errorf("Server: %v, want %q", err, want)
	}
	args, err := c.args("a")
	if err != nil || slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "egress") }) {
		t.Errorf("flags of a are %v, %v", args, err)
	}
}

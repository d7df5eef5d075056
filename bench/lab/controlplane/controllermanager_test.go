package controlplane

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestControllerManagerFlags(t *testing.T) {
	c := layOut(t, Config{})
	args, err := c.controllerManagerArgs("https://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--bind-address=127.0.0.1", "--use-service-account-credentials", "--leader-elect=true"} {
		if !slices.Contains(args, want) {
			t.Errorf("flags lack %s: %v", want, args)
		}
	}
	for _, arg := range args {
		name, path, _ := strings.Cut(arg, "=")
		if !strings.HasSuffix(name, "file") && !strings.HasSuffix(name, "kubeconfig") {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	kubeconfig, err := os.ReadFile(c.path("kubeconfig", "controller-manager.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`server: "https://127.0.0.1:1"`, "client-system:kube-controller-manager.crt"} {
		if !strings.Contains(string(kubeconfig), want) {
			t.Errorf("the kubeconfig lacks %s:\n%s", want, kubeconfig)
		}
	}
}

func TestNoControllerManager(t *testing.T) {
	c := layOut(t, Config{})
	server, err := c.ControllerManager()
	if err != nil || server.PID != 0 || server.Version != ControllerManagerVersion {
		t.Errorf("got %+v, %v; want none that runs", server, err)
	}
	if err := c.KillControllerManager(t.Context()); err != nil {
		t.Error(err)
	}
}

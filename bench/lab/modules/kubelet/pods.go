package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A podSpec is what this kubelet must know of a v1 Pod.
type podSpec struct {
	Metadata struct {
		Namespace, Name string
	}
	Spec struct {
		Containers []containerSpec
	}
}

type containerSpec struct {
	Name    string
	Command []string
	TTY     bool
}

// readPods reads a v1 PodList, JSON.
func readPods(file string) ([]podSpec, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read pods: %w", err)
	}
	var list struct{ Items []podSpec }
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("cannot read pods from %s: %w", file, err)
	}
	for _, p := range list.Items {
		for _, c := range p.Spec.Containers {
			if len(c.Command) == 0 {
				return nil, fmt.Errorf("container %s of pod %s/%s has no command: there are no images here", c.Name, p.Metadata.Namespace, p.Metadata.Name)
			}
			// Names become a directory. The kube-apiserver allows no such ones.
			for _, name := range []string{p.Metadata.Namespace, p.Metadata.Name, c.Name} {
				if name == "" || name == "." || name == ".." || name != filepath.Base(name) {
					return nil, fmt.Errorf("bad name %.40q in %s", name, file)
				}
			}
		}
	}
	return list.Items, nil
}

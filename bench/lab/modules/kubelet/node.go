package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A node runs the containers of its pods. Its pods share one web server and one
// echo server.
type node struct {
	containers map[containerID]*container
	ports      map[int]string // port of a pod to the loopback address that serves it
	services   []func()       // ends them
}

type containerID struct{ namespace, pod, name string }

// newNode starts the containers of all pods, each in a directory of its own
// below dir.
func newNode(pods []podSpec, dir string) (_ *node, err error) {
	n := &node{containers: map[containerID]*container{}}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.ports, n.services, err = startServices(); err != nil {
		return nil, err
	}
	for _, p := range pods {
		for _, spec := range p.Spec.Containers {
			id := containerID{p.Metadata.Namespace, p.Metadata.Name, spec.Name}
			home := filepath.Join(dir, id.namespace, id.pod, id.name)
			if err := os.MkdirAll(home, 0o700); err != nil {
				return nil, fmt.Errorf("cannot make directory of a container: %w", err)
			}
			c, err := startContainer(spec, home)
			if err != nil {
				return nil, fmt.Errorf("cannot start container %s of pod %s/%s: %w", id.name, id.namespace, id.pod, err)
			}
			n.containers[id] = c
		}
	}
	return n, nil
}

// hasPod reports whether the node has that pod.
func (n *node) hasPod(namespace, pod string) bool {
	for id := range n.containers {
		if id.namespace == namespace && id.pod == pod {
			return true
		}
	}
	return false
}

// close kills the containers' own processes.
func (n *node) close() {
	for _, c := range n.containers {
		c.kill()
	}
	for _, end := range n.services {
		end()
	}
}

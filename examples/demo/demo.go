// Package demo is a Kubernetes control plane in memory: two or more servers that
// behave as kube-apiservers of different minor versions on one etcd do, for
// `mvp demo` and for tests that need both sides of a real connection.
//
// Each server answers over TLS on loopback: discovery, OpenAPI, the REST verbs,
// every patch type, server-side apply, watch, Table output and custom resources,
// well enough that kubectl of any age works with it. What a server serves follows
// from its version by the table in kinds.go; objects are stored once, for all
// servers, and served in each version by changing apiVersion only.
//
// It is not a kube-apiserver. There are no controllers (a Deployment counts as
// rolled out at once but makes no Pods, deletion of a namespace is immediate), no authorization, no admission, no
// protobuf in answers; of the built-in kinds it checks field names and types, by the types of
// one Kubernetes release for all servers, but few values; a continue token
// continues by name in what is there by then, not in a snapshot. Nothing is kept
// after [ControlPlane.Close].
package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DefaultVersions are the servers that [Start] makes when it is asked for none:
// the two sides of an upgrade from 1.31 to 1.32.
var DefaultVersions = []string{"1.31.14", "1.32.13"}

// Options say what to start. The zero value is two servers of [DefaultVersions].
type Options struct {
	// Versions are the servers' versions ("1.31.14", with or without a "v"), one
	// server each, oldest first by custom. Default [DefaultVersions].
	Versions []string

	// Dir is where the CA certificate is written, as ca.crt. It must exist.
	// Default: a new temporary directory, which Close removes.
	Dir string

	// Tokens are the bearer tokens that are accepted and the user each stands
	// for; any other request is answered 401. Default: every request is accepted.
	Tokens map[string]string
}

// ControlPlane is a set of servers on one store. Its methods may be called from
// any goroutine.
type ControlPlane struct {
	store   *store
	ca      *authority
	caFile  string
	tempDir string // removed by Close; empty: the caller's directory
	tokens  map[string]string
	servers []*Server
}

// Start makes the servers and starts all of them, each on a free port of
// 127.0.0.1. The caller must Close what it returns.
func Start(opts Options) (*ControlPlane, error) {
	versions := opts.Versions
	if len(versions) == 0 {
		versions = DefaultVersions
	}
	c := &ControlPlane{store: newStore(), tokens: opts.Tokens}
	if err := c.makeCA(opts.Dir); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.Apply([]byte(seedObjects)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	names := map[string]int{}
	for _, version := range versions {
		s, err := newServer(c, version, names)
		if err == nil {
			err = s.Start()
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.servers = append(c.servers, s)
	}
	return c, nil
}

func (c *ControlPlane) makeCA(dir string) error {
	if dir == "" {
		temp, err := os.MkdirTemp("", "mvp-demo-")
		if err != nil {
			return fmt.Errorf("cannot make a directory for the CA certificate: %w", err)
		}
		dir, c.tempDir = temp, temp
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	c.ca = ca
	c.caFile = filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(c.caFile, ca.pem, 0o644); err != nil {
		return fmt.Errorf("cannot write the CA certificate: %w", err)
	}
	return nil
}

// Servers returns the servers in the order of [Options].Versions, stopped ones
// too.
func (c *ControlPlane) Servers() []*Server { return c.servers }

// CAFile is the path of the file with the certificate that all servers'
// certificates are signed by, in PEM.
func (c *ControlPlane) CAFile() string { return c.caFile }

// CAPEM is the content of [ControlPlane.CAFile].
func (c *ControlPlane) CAPEM() []byte { return c.ca.pem }

// Close stops the servers, ends every connection and removes the temporary
// directory. It may be called more than once.
func (c *ControlPlane) Close() error {
	for _, s := range c.servers {
		s.Stop()
	}
	if c.tempDir == "" {
		return nil
	}
	if err := os.RemoveAll(c.tempDir); err != nil {
		return fmt.Errorf("cannot remove the demo's directory: %w", err)
	}
	return nil
}

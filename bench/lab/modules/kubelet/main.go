// Command kubelet is the part of a node that a kube-apiserver talks to, for the
// lab: it serves logs, exec, attach and port-forward of a few pods with
// Kubernetes' own streaming packages, and is the network between the servers and
// the pods. See bench/lab/README.md.
//
// Its containers are processes of the user who runs it, each in a directory of
// its own, with nothing between them and the machine. So it listens on loopback
// only and takes requests only from holders of a client certificate. It watches
// nothing, starts no pod later on and restarts no container.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "kubelet: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	address           string
	nodeIP, podIP     string
	cert, key, client string
	pods, dir         string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.address, "address", "127.0.0.1:10250", "host:port to listen on; the host must be a loopback address")
	fs.StringVar(&o.nodeIP, "node-ip", "10.244.0.1", "address of the node as kube-apiservers know it; it exists only for CONNECT")
	fs.StringVar(&o.podIP, "pod-ip", "10.244.0.2", "address of all pods as kube-apiservers know it; it exists only for CONNECT")
	fs.StringVar(&o.cert, "tls-cert-file", "", "serving certificate")
	fs.StringVar(&o.key, "tls-private-key-file", "", "its key")
	fs.StringVar(&o.client, "client-ca-file", "", "CA of the clients, which must have a certificate")
	fs.StringVar(&o.pods, "pods", "", "JSON file with a PodList")
	fs.StringVar(&o.dir, "root-dir", "", "directory of the containers' own directories")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %.40q", fs.Arg(0))
	}
	host, _, err := net.SplitHostPort(o.address)
	if err != nil {
		return o, fmt.Errorf("bad --address: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return o, fmt.Errorf("bad --address %.40q: want a loopback address, because clients may run commands", o.address)
	}
	return o, nil
}

// run serves until ctx is done.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	tlsConfig, err := serving(o)
	if err != nil {
		return err
	}
	pods, err := readPods(o.pods)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	defer l.Close()
	n, err := newNode(pods, o.dir)
	if err != nil {
		return err
	}
	defer n.close()
	addr := l.Addr().(*net.TCPAddr)
	s := &server{node: n, nodeIP: o.nodeIP, podIP: o.podIP, listens: addr.String(), port: addr.Port}
	return serve(ctx, tls.NewListener(l, tlsConfig), s.handler())
}

// serving is the TLS side: HTTP/1.1, because the streams need connections of
// their own, and no client without a certificate.
func serving(o options) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, fmt.Errorf("cannot load serving certificate: %w", err)
	}
	ca, err := os.ReadFile(o.client)
	if err != nil {
		return nil, fmt.Errorf("cannot load CA of the clients: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("cannot load CA of the clients: no certificate in %s", o.client)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    roots,
		NextProtos:   []string{"http/1.1"},
		MinVersion:   tls.VersionTLS12,
	}, nil
}

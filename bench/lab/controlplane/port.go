package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are chosen in this range, below those that systems give to outgoing
// connections (from 32768 on Linux). Otherwise a client's connection could take
// the port of a server that is stopped for an upgrade.
const (
	minPort = 20000
	maxPort = 30000 // exclusive
)

// maxPortTries bounds the search for each port.
const maxPortTries = 1000

// given are the ports that this process was given, by which servers may not listen yet.
var given sync.Map

// freeAddresses returns n different loopback addresses on which nobody listens. It
// returns no address twice, so that control planes can start at the same time.
func freeAddresses(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := listenSomewhere()
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at the end, so that they differ
		given.Store(l.Addr().(*net.TCPAddr).Port, true)
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func listenSomewhere() (net.Listener, error) {
	err := errors.New("all that were tried are given already")
	for range maxPortTries {
		var l net.Listener
		port := minPort + rand.IntN(maxPort-minPort)
		if _, again := given.Load(port); again {
			continue
		}
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("cannot find a free port between %d and %d: %w", minPort, maxPort, err)
}

// listening reports whether somebody listens at addr.
func listening(ctx context.Context, addr string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

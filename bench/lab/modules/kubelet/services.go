package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// What a pod serves on which port.
const (
	webPort  = 8080
	echoPort = 9090
)

// maxBytes bounds what /bytes gives: 1 GiB.
const maxBytes = 1 << 30

// startServices starts what the pods serve, on loopback.
func startServices() (ports map[int]string, ends []func(), err error) {
	ports = map[int]string{}
	for port, serve := range map[int]func(net.Listener){webPort: serveWeb, echoPort: serveEcho} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, ends, fmt.Errorf("cannot listen for the pods: %w", err)
		}
		go serve(l)
		ports[port] = l.Addr().String()
		ends = append(ends, func() { _ = l.Close() })
	}
	return ports, ends, nil
}

// serveWeb serves
//
//	/bytes?n=N    N bytes
//	/sha256       the checksum of the request's body
//	/refuse       403, with a body
//	anything else the request as it came, as JSON
func serveWeb(l net.Listener) {
	srv := &http.Server{ReadHeaderTimeout: headTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bytes":
			serveBytes(w, r)
		case "/sha256":
			h := sha256.New()
			n, err := io.Copy(h, r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			fmt.Fprintf(w, "%s %d\n", hex.EncodeToString(h.Sum(nil)), n)
		case "/refuse":
			http.Error(w, "the pod refuses", http.StatusForbidden)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "target": r.RequestURI, "header": r.Header})
		}
	})}
	_ = srv.Serve(l) // until the listener is closed
}

func serveBytes(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
	if err != nil || n < 0 || n > maxBytes {
		http.Error(w, fmt.Sprintf("want n up to %d", maxBytes), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	_, _ = io.Copy(w, io.LimitReader(&pattern{}, n))
}

// pattern is an endless text that repeats itself only after a while, so that a
// lost or doubled block shows in a checksum.
type pattern struct{ n uint32 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		p.n = p.n*1664525 + 1013904223
		b[i] = 'a' + byte(p.n>>24)%26
	}
	return len(b), nil
}

// serveEcho sends back what it gets.
func serveEcho(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}

package front

import (
	"net"
	"time"
)

// keepAlive finds dead peers: HTTP/1.1 has no ping, and a watch may be silent
// for ever. A client that answers no probe is given up after a minute.
func keepAlive(nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	// A failure leaves the listener's settings.
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
	})
	userTimeout(tcp, deadAfter)
}

// patient is for tunnels, where a client may stop reading for as long as it
// likes (a paused terminal): Linux counts that as unacknowledged, too.
func patient(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		userTimeout(tcp, 0)
	}
}

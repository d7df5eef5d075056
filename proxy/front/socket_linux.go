package front

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// deadAfter is how long sent bytes may go unacknowledged. Without it a client
// that vanished (a laptop that was closed) is noticed only after the kernel's
// retransmissions, some 15 minutes; keep-alive does not probe while bytes are
// under way.
const deadAfter = time.Minute

// userTimeout sets deadAfter, or the kernel's default with 0.
func userTimeout(c *net.TCPConn, d time.Duration) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	// An old kernel without the option serves as well as it can.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}

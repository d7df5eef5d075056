//go:build !linux

package front

import (
	"net"
	"time"
)

const deadAfter = time.Minute

// userTimeout does nothing: the option is Linux's.
func userTimeout(*net.TCPConn, time.Duration) {}

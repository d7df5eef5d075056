package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// BenchmarkPass is a GET that no policy touches over kept connections, loopback
// system calls of client and servers included.
func BenchmarkPass(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			reply := []byte(ok(strings.Repeat("x", size)))
			s := raise(b, setting{}, bareServer(b, "a", reply), bareServer(b, "b", reply))
			conn, in := s.send("")
			request := []byte("GET /api/v1/namespaces/d/pods/p HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer t\r\n\r\n")
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				if _, err := skipHead(in); err != nil {
					b.Fatal(err)
				}
				if _, err := in.Discard(size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// bareServer answers every request but MVP's own with reply, and keeps nothing.
func bareServer(b *testing.B, name string, reply []byte) *recorder {
	b.Helper()
	u := &recorder{name: name, version: "1.32.13", serves: pods, listener: listen(b)}
	go func() {
		for {
			conn, err := u.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				u.answerBare(conn, reply)
			}()
		}
	}()
	return u
}

func (u *recorder) answerBare(conn net.Conn, reply []byte) {
	in := bufio.NewReader(conn)
	for {
		target, err := skipHead(in)
		if err != nil {
			return
		}
		if own, ok := u.control(target); ok {
			_, err = io.WriteString(conn, own)
		} else {
			_, err = conn.Write(reply)
		}
		if err != nil {
			return
		}
	}
}

// skipHead reads a head and returns the second word of its first line.
func skipHead(in *bufio.Reader) (word string, err error) {
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err != nil:
			return "", err
		case len(line) == 2:
			return word, nil
		case word == "" && line[0] == 'G': // a GET: answers are not looked at
			word = strings.Fields(string(line))[1]
		}
	}
}

package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// What other proxies say of themselves is read within bounds.
func TestInstancesOf(t *testing.T) {
	f := func(want []string, values ...string) {
		t.Helper()
		header := fields()
		for _, v := range values {
			header.Add(InstanceHeader, v)
		}
		if got := instancesOf(header); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", values, got, want)
		}
	}

	f(nil)
	f(nil, "", ", ,")
	f([]string{"A", "B", "C"}, "A, B", "C")
	f([]string{"A"}, "A, two words, "+strings.Repeat("x", 65)+", a\"b")
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprint("i", i))
	}
	f(many[:maxInstances], strings.Join(many, ","))
}

// A server that is or leads to this proxy is unhealthy, whatever else it says; one
// that is another proxy is known by name, and so are those behind it.
func TestServerLeadsBack(t *testing.T) {
	var pool *Pool
	names := func() string { return "" }
	addr := listen(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			if _, err := readRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+InstanceHeader+": "+names()+"\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	s := serverAt(t, "http://"+addr, nil)
	f := func(answer, reason string) {
		t.Helper()
		doc, err := s.Get(testContext(t), "/readyz", nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		if got := pool.current()[0].leadsBack(doc); !strings.HasPrefix(got, reason) || (got == "") != (reason == "") {
			t.Errorf("after %q the reason is %q, want %q", answer, got, reason)
		}
	}
	pool, err := New(Config{Servers: []ServerConfig{{Name: "a", URL: "http://" + addr}}})
	if err != nil {
		t.Fatal(err)
	}
	own := pool.Instances()[0]

	names = func() string { return "" }
	f("nothing", "")
	names = func() string { return "other, third" }
	f("others", "")
	if got := pool.Instances(); !slices.Equal(got, []string{own, "other", "third"}) {
		t.Errorf("the instances are %q", got)
	}
	names = func() string { return own }
	f("itself", "it is this proxy itself")
	names = func() string { return "other, " + own }
	f("a ring", "it is a proxy that has this one behind it")
	if got := pool.current()[0].leadsBack(nil); got != "" {
		t.Errorf("no answer says %q", got)
	}
	if got := pool.Instances(); !slices.Equal(got, []string{own, "other"}) {
		t.Errorf("after no answer the instances are %q", got)
	}
}

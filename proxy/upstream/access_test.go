package upstream

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// who asks the server who it takes MVP for.
func who(t *testing.T, s *Server) string {
	t.Helper()
	doc, err := s.Get(testContext(t), "/", nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc.Body)
}

// accessPool is a pool, not running, of one server with an Access of its own.
func accessPool(t *testing.T, server ServerConfig) *Pool {
	t.Helper()
	p, err := New(Config{Servers: []ServerConfig{server}, CAFile: "", Token: "of the pool", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range p.current() {
			m.server.idle.close()
		}
	})
	return p
}

// A server's own Access counts alone, and a new one takes the place of the old without
// anything of the server being forgotten.
func TestAccess(t *testing.T) {
	a, name := newAuthority(t), "kubernetes.default.svc"
	srv := tlsServer(t, a, name)
	access := func(user string) *Access {
		cert, key := a.issue(t, user)
		return &Access{CAData: a.pem(), ServerName: name, ClientCertData: cert, ClientKeyData: key}
	}
	server := ServerConfig{Name: "a", URL: srv.URL, Access: access("alice")}
	p := accessPool(t, server)
	m := p.members[0]
	m.update(func(s *State) bool { s.GitVersion = "v1.32.0"; return true })
	if got := who(t, m.server); got != "alice by HTTP/1.1" {
		t.Errorf("MVP is %q", got)
	}
	if !p.Has(OwnCredential) || m.server.secrets.current().token != "" {
		t.Error("the pool's credential and the server's are mixed up")
	}

	setServers(t, p, server)
	if got := who(t, m.server); got != "alice by HTTP/1.1" || m.server.secrets.current().era != 1 {
		t.Errorf("the same access again: MVP is %q in era %d", got, m.server.secrets.current().era)
	}
	server.Access = access("bob")
	setServers(t, p, server)
	if got := who(t, m.server); got != "bob by HTTP/1.1" {
		t.Errorf("after the change MVP is %q", got)
	}
	if p.members[0] != m || p.View().Servers[0].GitVersion != "v1.32.0" {
		t.Error("what was known of the server is lost")
	}

	broken := *server.Access
	broken.ClientKeyData = []byte("no PEM")
	server.Access = &broken
	err := p.SetServers([]ServerConfig{server})
	if err == nil || !strings.Contains(err.Error(), `upstream server "a": cannot use client certificate given as a value with key given as a value: tls: failed to find any PEM data`) {
		t.Errorf("error %v", err)
	}
	if got := who(t, m.server); got != "bob by HTTP/1.1" {
		t.Errorf("after a broken change MVP is %q", got)
	}
}

// The name that a certificate must have, and whether it is looked at, are the server's.
func TestAccessVerifies(t *testing.T) {
	a := newAuthority(t)
	srv := tlsServer(t, a, "a")
	get := func(access *Access) error {
		p := accessPool(t, ServerConfig{URL: srv.URL, Access: access})
		_, err := p.members[0].server.Get(testContext(t), "/", nil, 1000)
		return err
	}
	if err := get(&Access{CAData: a.pem()}); err != nil {
		t.Error(err)
	}
	if err := get(&Access{InsecureSkipTLSVerify: true}); err != nil {
		t.Error(err)
	}
	wantError(t, get(&Access{CAData: a.pem(), ServerName: "other"}), OpHandshake, false, "not other")
	wantError(t, get(&Access{}), OpHandshake, false, "unknown authority")
}

// The files of an Access are followed as the pool's are.
func TestAccessFollowsItsFiles(t *testing.T) {
	f := newFake(t)
	token := filepath.Join(t.TempDir(), "token")
	writeFile(t, token, []byte("one"))
	p := runPool(t, func(c *Config) { c.Token = "of the pool" }, f)
	setServers(t, p, ServerConfig{Name: "a", URL: f.URL, Access: &Access{CAFile: f.caFile(t), TokenFile: token}})
	presented := func() string {
		_, r := f.asked("/readyz")
		return r.Header.Get("Authorization")
	}
	eventually(t, "the token is presented", func() bool { return presented() == "Bearer one" })
	writeFile(t, token, []byte("two"))
	eventually(t, "the new token is presented", func() bool { return presented() == "Bearer two" })
}

// Without a server that says otherwise the pool has what its configuration has; one
// server without a credential is enough that MVP has none for every server.
func TestHasForEveryServer(t *testing.T) {
	p, err := New(Config{Dynamic: true, Token: "secret", ProbeInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Has(OwnCredential) {
		t.Error("the pool's own token is not there")
	}
	setServers(t, p, ServerConfig{URL: "https://a"}, ServerConfig{URL: "https://b", Access: &Access{}})
	if p.Has(OwnCredential) {
		t.Error("server b has no credential")
	}
	if (&Access{}).HasCredential() || !(&Access{Token: "x"}).HasCredential() {
		t.Error("HasCredential does not tell")
	}
}

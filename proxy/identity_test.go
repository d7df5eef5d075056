package proxy_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/proxy"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata")

// identityModes are the modes of testdata/identity.txtar.
var identityModes = []struct {
	name     string
	identity proxy.Identity
	token    string // MVP's own
}{
	{"refuse", proxy.Identity{}, "own"},
	{"headers", proxy.Identity{
		Certificates: proxy.CertificatesAsRequestHeaders,
		RequestHeaders: proxy.RequestHeaders{
			Username: []string{"X-Remote-User", "X-Acme-User"}, Group: []string{"X-Remote-Group", "X-Acme-Group"},
			ExtraPrefix: []string{"X-Remote-Extra-", "X-Acme-Extra-"},
		},
	}, "own"},
	{"custom", proxy.Identity{
		Certificates: proxy.CertificatesAsRequestHeaders,
		RequestHeaders: proxy.RequestHeaders{
			Username: []string{"X-Acme-User"}, Group: []string{"X-Acme-Group"}, UID: []string{"X-Acme-Uid"}, ExtraPrefix: []string{"X-Acme-Extra-"},
		},
	}, "own"},
	{"impersonate", proxy.Identity{Certificates: proxy.CertificatesImpersonated}, "own"},
	{"impersonate with a certificate", proxy.Identity{Certificates: proxy.CertificatesImpersonated}, ""},
}

// TestIdentity sends each request of testdata/identity.txtar in each mode and compares
// all that the upstream sees: the certificate of the connection and every line. A
// request that is said to come with a certificate comes with alice's.
func TestIdentity(t *testing.T) {
	const file = "testdata/identity.txtar"
	cases, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ca := newAuthority(t)
	alice := ca.client(pkix.Name{
		CommonName: "alice", Organization: []string{"dev", "ops"},
		ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "u-1"}},
	})
	fingerprint := sha256.Sum256(alice.Certificate[0])
	u := recordTLS(t, ca, "a", nil)
	rigs := map[string]*identityRig{}
	for _, mode := range identityModes {
		rigs[mode.name] = startTLS(t, ca, identitySetup{identity: mode.identity, token: mode.token, upstreams: []*recorder{u}})
	}
	changed := false
	for i := 0; i+1 < len(cases.Files); i += 2 {
		sent, want := cases.Files[i], &cases.Files[i+1]
		t.Run(sent.Name, func(t *testing.T) {
			var cert *tls.Certificate
			if strings.HasPrefix(sent.Name, "certificate") {
				cert = &alice
			}
			var got outcomes
			for _, mode := range identityModes {
				u.forget()
				r := rigs[mode.name]
				r.t = t
				reply := r.ask(cert, "/api/v1/pods", strings.ReplaceAll(string(sent.Data), "\n", "\r\n"))
				got.add(mode.name, outcome(u, reply))
			}
			text := strings.ReplaceAll(got.String(), hex.EncodeToString(fingerprint[:]), "FINGERPRINT")
			if want.Name != "want" || text == string(want.Data) {
				return
			}
			if *update {
				want.Data, changed = []byte(text), true
				return
			}
			t.Errorf("got:\n%s\nwant:\n%s", text, want.Data)
		})
	}
	if changed {
		if err := os.WriteFile(file, txtar.Format(cases), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// outcomes are texts with the modes that had them, in the order of their first one.
type outcomes []struct{ modes, text string }

func (o *outcomes) add(mode, text string) {
	for i := range *o {
		if (*o)[i].text == text {
			(*o)[i].modes += ", " + mode
			return
		}
	}
	*o = append(*o, struct{ modes, text string }{mode, text})
}

func (o outcomes) String() string {
	var b strings.Builder
	for _, outcome := range o {
		fmt.Fprintf(&b, "[%s]\n%s", outcome.modes, outcome.text)
	}
	return b.String()
}

// outcome is what the upstream saw, or the refusal.
func outcome(u *recorder, reply answer) string {
	requests := u.got()
	if len(requests) == 0 {
		return fmt.Sprintf("%d %s", reply.code, reply.body)
	}
	all := ""
	for _, req := range requests {
		all += seen(req)
	}
	return all
}

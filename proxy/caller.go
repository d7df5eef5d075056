package proxy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// callerID is what policies see as request.caller: a hash of whom the credential
// speaks for, the same in every process and release. It proves nothing: nobody has
// looked at a token's signature here.
func (x *exchange) callerID() string {
	switch {
	case x.who.token != "":
		if issuer, subject, ok := tokenSubject(x.who.token); ok {
			return opaque("subject", issuer, subject) // a token is renewed each hour, its subject stays
		}
		return opaque("token", x.who.token)
	case x.who.certified():
		return opaque("user", x.who.user.Name)
	}
	return ""
}

// opaque hashes texts so that no two lists of them are alike.
func opaque(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// tokenSubject returns whom a JSON web token says it speaks for.
func tokenSubject(token string) (issuer, subject string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", "", false
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Subject == "" {
		return "", "", false
	}
	return claims.Issuer, claims.Subject, true
}

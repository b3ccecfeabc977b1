package signer

import (
	"errors"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

func parse(t *testing.T, text string) ([]Signer, error) {
	t.Helper()
	n, err := atip.ParseTree([]byte(text), atip.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := Parse(n, Options{Name: "test"})
	return list, err
}

func TestParse(t *testing.T) {
	for text, good := range map[string]bool{
		`{"type":"cosign","identity":"a@b","issuer":"https://i"}`:                                               true,
		`{"identity":"a@b","issuer":"https://i"}`:                                                               true, // as the RFC writes it
		`{"type":"cosign","identity":"a@b"}`:                                                                    false,
		`{"type":"cosign","identity":"","issuer":"https://i"}`:                                                  false,
		`{"type":"cosign","identity":"a@b","issuer":""}`:                                                        false,
		`{"type":"cosign","identity":"a@b","identityPrefix":"a@","issuer":"https://i"}`:                         false,
		`{"type":"cosign","identityPrefix":"https://github.com/a/b","issuer":"https://i"}`:                      false,
		`{"type":"cosign","identityPrefix":"https://github.com/a/b@","issuer":"https://i"}`:                     true,
		`{"type":"cosign","identityPattern":"sigstore-js","issuer":"https://i"}`:                                false,
		`{"type":"cosign","identityPattern":"https://github\\.com/a/.*","issuer":"https://i"}`:                  true,
		`{"type":"cosign","identityPattern":"^https://github\\.com/a/.*$","issuer":"https://i"}`:                true,
		`{"type":"cosign","identityPattern":"https://github.com/a/.*","issuer":"https://i"}`:                    false,
		`{"type":"cosign","identityPattern":"https://.*/a","issuer":"https://i"}`:                               false,
		`{"type":"cosign","identityPattern":"https://github\\.com/a|.*","issuer":"https://i"}`:                  false,
		`{"type":"cosign","identityPattern":"https://github\\.com/a|https://evil\\.com/","issuer":"https://i"}`: true,
		`{"type":"cosign","identityPattern":"(?i)https://github\\.com/a","issuer":"https://i"}`:                 false,
		`{"type":"cosign","identityPattern":"https://github\\.com/(","issuer":"https://i"}`:                     false,
		`{"type":"cosign","key":"k.pub"}`:                                                                       true,
		`{"type":"cosign","key":"../k.pub"}`:                                                                    false,
		`{"type":"cosign","key":"k.pub","identity":"a","issuer":"i"}`:                                           false,
		`{"type":"gpg","fingerprint":"0123456789012345678901234567890123456789","keyring":"a.asc"}`:             true,
		`{"type":"gpg","fingerprint":"01234567","keyring":"a.asc"}`:                                             false,
		`{"type":"minisign","publicKey":"x"}`:                                                                   false,
		`{"type":"cosign","identity":"a@b","issuer":"i","tool":["x"]}`:                                          false,
		`{"type":"cosign","identity":"a@b","issuer":"i","root":"../x"}`:                                         false,
		`{"type":"cosign","identity":"a@b","issuer":"i","notBefore":"yesterday"}`:                               false,
		`"a@b"`: true,
		`7`:     false,
	} {
		_, err := parse(t, text)
		if (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
		var at *NodeError
		if err != nil && !errors.As(err, &at) {
			t.Errorf("%s: no position: %v", text, err)
		}
	}
}

// The library does not anchor patterns; ours match as a whole.
func TestPatternsAreAnchored(t *testing.T) {
	c := Certificate{Issuer: "https://i"}
	for san, want := range map[string]bool{
		"https://github.com/a/b":                          true,
		"https://evil.example/?x=https://github.com/a/b":  false,
		"https://github.com/a/b\nhttps://github.com/a/b2": false,
		"https://github.comx/a/b":                         false,
	} {
		c.SAN = san
		s := Signer{Type: Cosign, IdentityPattern: `https://github\.com/a/[a-z]+`, Issuer: "https://i"}
		if got := s.Is(c); got != want {
			t.Errorf("%q: %v", san, got)
		}
	}
}

func TestZeroSignerMatchesNothing(t *testing.T) {
	for _, c := range []Certificate{{}, {SAN: "a", Issuer: "i"}} {
		for _, s := range []Signer{{}, {Type: Cosign}, {Type: Cosign, Identity: c.SAN}, {Type: Cosign, Issuer: c.Issuer}} {
			if s.Is(c) {
				t.Errorf("%+v is %+v", s, c)
			}
		}
	}
	list, err := parse(t, `["a@b"]`)
	if err != nil || list[0].Is(Certificate{SAN: "a@b", Issuer: "https://i"}) {
		t.Errorf("a bare identity without an issuer matches: %v", err)
	}
}

func TestRepository(t *testing.T) {
	for in, want := range map[string]string{
		"git+https://github.com/a/b@refs/tags/v1": "https://github.com/a/b",
		"https://github.com/a/b.git":              "https://github.com/a/b",
		"https://github.com/a/b@v1":               "https://github.com/a/b",
		"https://user@host.example/a/b":           "https://user@host.example/a/b",
		"https://github.com/a/b2":                 "https://github.com/a/b2",
	} {
		if got := Repository(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestRevocation(t *testing.T) {
	then := time.Now()
	for _, row := range []struct {
		v    Revocation
		at   time.Time
		want bool
	}{
		{Revocation{ID: "a"}, then, true},
		{Revocation{ID: "b"}, then, false},
		{Revocation{}, then, false},
		{Revocation{ID: "a", NotAfter: then}, then.Add(time.Hour), true},
		{Revocation{ID: "a", NotAfter: then}, then.Add(-time.Hour), false},
		{Revocation{ID: "a", NotAfter: then}, time.Time{}, true}, // nobody has proven when
	} {
		if got := row.v.Hits(row.at, "a", ""); got != row.want {
			t.Errorf("%+v at %v: %v", row.v, row.at, got)
		}
	}
}

package approve

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func field(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	return b
}

// signer makes SSHSIG signatures as OpenSSH does, with a key of its own.
type signer struct {
	private  ed25519.PrivateKey
	hardware bool
	flags    byte
}

func newSigner(seed byte, hardware bool) *signer {
	s := sha256.Sum256([]byte{seed})
	return &signer{ed25519.NewKeyFromSeed(s[:]), hardware, flagPresent}
}

func (s *signer) blob() []byte {
	public := s.private.Public().(ed25519.PublicKey)
	if s.hardware {
		return field([]byte(keyHardware), public, []byte("ssh:"))
	}
	return field([]byte(keyPlain), public)
}

func (s *signer) line() string {
	kind := keyPlain
	if s.hardware {
		kind = keyHardware
	}
	return kind + " " + base64.StdEncoding.EncodeToString(s.blob()) + " test"
}

func (s *signer) sign(namespace, hash string, message []byte) string {
	digest := sha512.Sum512(message)
	signed := append([]byte(sshsigMagic), field([]byte(namespace), nil, []byte(hash), digest[:])...)
	kind, tail := keyPlain, []byte(nil)
	if s.hardware {
		kind = keyHardware
		app, inner := sha256.Sum256([]byte("ssh:")), sha256.Sum256(signed)
		tail = binary.BigEndian.AppendUint32([]byte{s.flags}, 7)
		signed = append(append(append([]byte(nil), app[:]...), tail...), inner[:]...)
	}
	sig := append(field([]byte(kind), ed25519.Sign(s.private, signed)), tail...)
	raw := binary.BigEndian.AppendUint32([]byte(sshsigMagic), 1)
	raw = append(raw, field(s.blob(), []byte(namespace), nil, []byte(hash), sig)...)
	return sshsigBegin + "\n" + base64.StdEncoding.EncodeToString(raw) + "\n" + sshsigEnd + "\n"
}

var grantTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testGrant() Grant {
	return Grant{V: 1, ID: "grant0001", Kind: "once", Digest: "sha256:00", Created: grantTime, Expires: grantTime.Add(10 * time.Minute), Approver: "me"}
}

func store(t *testing.T, dir string, s *signer, g Grant) {
	t.Helper()
	text, err := g.Signed()
	if err != nil {
		t.Fatal(err)
	}
	if g.Sig == "" {
		g.Sig = s.sign(GrantNamespace, "sha512", text)
	}
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, g.ID+".json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func grantDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "grants")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestGrantCounts(t *testing.T) {
	me, other, touch, still := newSigner(1, false), newSigner(2, false), newSigner(3, true), newSigner(3, true)
	still.flags = 0
	rules := Rules{Approvers: []Approver{{"me", me.line(), 1}, {"key", touch.line(), 3}, {"soft", me.line(), 3}}}
	level := func(n int) Rules { r := rules; r.MinLevel = n; return r }
	young := Rules{Approvers: rules.Approvers, Idempotent: true, MaxAge: 4 * time.Minute}
	text, _ := func() ([]byte, error) { g := testGrant(); return g.Signed() }()
	for _, row := range []struct {
		name  string
		sign  *signer
		edit  func(*Grant)
		rules Rules
		now   time.Time
		want  bool
	}{
		{"plain", me, func(*Grant) {}, rules, grantTime, true},
		{"security key", touch, func(g *Grant) { g.Approver = "key" }, level(3), grantTime, true},
		{"security key, not touched", still, func(g *Grant) { g.Approver = "key" }, rules, grantTime, false},
		{"another key", other, func(*Grant) {}, rules, grantTime, false},
		{"no approver", me, func(g *Grant) { g.Approver = "you" }, rules, grantTime, false},
		{"level", me, func(*Grant) {}, level(2), grantTime, false},
		{"a file's key worth a touch", me, func(g *Grant) { g.Approver = "soft" }, level(3), grantTime, false},
		{"expired", me, func(*Grant) {}, rules, grantTime.Add(10 * time.Minute), false},
		{"younger than the policy wants", me, func(*Grant) {}, young, grantTime.Add(3 * time.Minute), true},
		{"older than the policy wants", me, func(*Grant) {}, young, grantTime.Add(4 * time.Minute), false},
		{"several times, older than the policy wants", me, func(g *Grant) { g.Kind, g.Times = "times", 3 }, young, grantTime.Add(5 * time.Minute), false},
		{"from the future", me, func(*Grant) {}, rules, grantTime.Add(-time.Minute), false},
		{"too long a life", me, func(g *Grant) { g.Expires = grantTime.Add(time.Hour) }, rules, grantTime.Add(11 * time.Minute), false},
		{"another plan", me, func(g *Grant) { g.Digest = "sha256:01" }, rules, grantTime, false},
		{"unknown kind", me, func(g *Grant) { g.Kind = "forever" }, rules, grantTime, false},
		{"times without idempotence", me, func(g *Grant) { g.Kind, g.Times = "times", 3 }, rules, grantTime, false},
		{"times", me, func(g *Grant) { g.Kind, g.Times = "times", 3 }, Rules{Approvers: rules.Approvers, Idempotent: true}, grantTime, true},
		{"times of a dangerous plan", me, func(g *Grant) { g.Kind, g.Times = "times", 3 }, Rules{Approvers: rules.Approvers, Idempotent: true, OnceOnly: true}, grantTime, false},
		{"too many times", me, func(g *Grant) { g.Kind, g.Times = "times", 21 }, Rules{Approvers: rules.Approvers, Idempotent: true}, grantTime, false},
		{"unsigned", me, func(g *Grant) { g.Sig = "x" }, rules, grantTime, false},
		{"signed for something else", me, func(g *Grant) { g.Sig = me.sign("git", "sha512", text) }, rules, grantTime, false},
		{"another digest", me, func(g *Grant) { g.Sig = me.sign(GrantNamespace, "sha256", text) }, rules, grantTime, false},
		{"signature of another grant", me, func(g *Grant) { g.Sig = me.sign(GrantNamespace, "sha512", []byte("x")) }, rules, grantTime, false},
		{"bad id", me, func(g *Grant) { g.ID = "../../x" }, rules, grantTime, false},
	} {
		dir := grantDir(t)
		g := testGrant()
		row.edit(&g)
		if strings.Contains(g.ID, "/") {
			if err := g.check(row.rules, row.now); err == nil {
				t.Errorf("%s: counts", row.name)
			}
			continue
		}
		store(t, dir, row.sign, g)
		got, warnings, err := find(dir, "sha256:00", row.rules, row.now)
		if err != nil || (got != nil) != row.want {
			t.Errorf("%s: %v, %v, %v", row.name, got, warnings, err)
		}
		if !row.want && row.name != "another plan" && len(warnings) != 1 {
			t.Errorf("%s: warnings %v", row.name, warnings)
		}
	}
}

func TestEveryByteOfAGrantIsSigned(t *testing.T) {
	me := newSigner(1, false)
	rules := Rules{Approvers: []Approver{{"me", me.line(), 1}}}
	g := testGrant()
	text, err := g.Signed()
	if err != nil {
		t.Fatal(err)
	}
	g.Sig = me.sign(GrantNamespace, "sha512", text)
	if err := g.check(rules, grantTime); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Grant){
		"digest": func(g *Grant) { g.Digest = "sha256:01" }, "id": func(g *Grant) { g.ID = "grant0002" },
		"expires": func(g *Grant) { g.Expires = g.Expires.Add(time.Second) }, "created": func(g *Grant) { g.Created = g.Created.Add(time.Second) },
		"times": func(g *Grant) { g.Times = 1 },
	} {
		c := g
		edit(&c)
		if err := c.check(rules, grantTime.Add(time.Second)); err == nil {
			t.Errorf("%s: changed and still counts", name)
		}
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Split(g.Sig, "\n")[1])
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] ^= 1
		c := g
		c.Sig = sshsigBegin + "\n" + base64.StdEncoding.EncodeToString(raw) + "\n" + sshsigEnd
		if err := c.check(rules, grantTime); err == nil {
			t.Errorf("byte %d of the signature changed and it still counts", i)
		}
		raw[i] ^= 1
	}
}

func TestSpendOnce(t *testing.T) {
	dir := grantDir(t)
	g := testGrant()
	var got atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			switch err := g.Spend(dir); {
			case err == nil:
				got.Add(1)
			case !errors.Is(err, ErrSpent):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("spent %d times", got.Load())
	}
	if g.left(dir) != 0 {
		t.Error("still counts")
	}
	g.ID, g.Kind, g.Times = "grant0002", "times", 3
	for range 3 {
		if err := g.Spend(dir); err != nil {
			t.Error(err)
		}
	}
	if err := g.Spend(dir); !errors.Is(err, ErrSpent) {
		t.Errorf("fourth of three: %v", err)
	}
}

// Made by ssh-keygen of OpenSSH 9.2, the program a person signs with:
//
//	ssh-keygen -Y sign -n atip-exec-grant@v1 -f KEY
const (
	personKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINMQ6uAKDx7QFgyhlUAtt6ndrxiWxu+Hzl21nuOYRExq a-person"
	personSig = `-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg0xDq4AoPHtAWDKGVQC23qd2vGJ
bG74fOXbWe45hETGoAAAASYXRpcC1leGVjLWdyYW50QHYxAAAAAAAAAAZzaGE1MTIAAABT
AAAAC3NzaC1lZDI1NTE5AAAAQEIpfYsyKcVcsieNdVtMyTbCM8rVbJ6IqwanQunuLVo/NR
6kuhxTbfYFcXI5ficEgybETZIom+WJhq4fAP/b+Ac=
-----END SSH SIGNATURE-----`
)

func TestSignatureOfSSHKeygen(t *testing.T) {
	g := testGrant()
	g.Sig = personSig
	if err := g.check(Rules{Approvers: []Approver{{"me", personKey, 1}}}, grantTime); err != nil {
		t.Error(err)
	}
	g.Digest = "sha256:01"
	if err := g.check(Rules{Approvers: []Approver{{"me", personKey, 1}}}, grantTime); err == nil {
		t.Error("counts for another plan")
	}
}

func FuzzSignature(f *testing.F) {
	me, touch := newSigner(1, false), newSigner(3, true)
	f.Add(me.sign(GrantNamespace, "sha512", []byte("x")))
	f.Add(touch.sign(GrantNamespace, "sha512", []byte("x")))
	f.Add(sshsigBegin + sshsigEnd)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSignature(text)
		if err != nil {
			return
		}
		// No text verifies for a message that was never signed.
		if s.verify(me.blob(), GrantNamespace, []byte("y")) == nil || s.verify(touch.blob(), GrantNamespace, []byte("y")) == nil {
			t.Fatal("verified")
		}
	})
}

func BenchmarkCheckGrant(b *testing.B) {
	me := newSigner(1, false)
	rules := Rules{Approvers: []Approver{{"me", me.line(), 1}}}
	g := testGrant()
	text, _ := g.Signed()
	g.Sig = me.sign(GrantNamespace, "sha512", text)
	for b.Loop() {
		if err := g.check(rules, grantTime); err != nil {
			b.Fatal(err)
		}
	}
}

package detached

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/signer"
)

func about(data, sig []byte, signers ...signer.Signer) Input {
	sum := sha256.Sum256(data)
	return Input{Raw: sig, Format: Guess(sig), Kind: "tool", Tool: "tool", SHA256: hex.EncodeToString(sum[:]), Signers: signers, Now: time.Now(),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func TestMinisign(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	strange, _, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("the tool")
	sum := sha256.Sum256(data)
	by := func(edit func(*signer.Signer)) signer.Signer {
		s := signer.Signer{Name: "m", Type: signer.Minisign, PublicKey: public.String()}
		if edit != nil {
			edit(&s)
		}
		return s
	}
	whole := minisign.SignWithComments(private, data, "timestamp:1700000000", "")
	r := minisign.NewReader(bytes.NewReader(data))
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	hashed := r.SignWithComments(private, fmt.Sprintf("timestamp:1700000000 sha256:%x", sum), "")
	wrong := r.SignWithComments(private, "sha256:"+strings.Repeat("ab", 32), "")
	comment := func(s *signer.Signer) { s.RequireComment = true }
	for _, row := range []struct {
		name string
		in   Input
		want trust.Verify
	}{
		{"Ed", about(data, whole, by(nil)), trust.VerifyOK},
		{"ED", about(data, hashed, by(nil)), trust.VerifyOK},
		{"comment required and there", about(data, hashed, by(comment)), trust.VerifyOK},
		{"comment required and missing", about(data, whole, by(comment)), trust.VerifySigInvalid},
		{"comment about another file", about(data, wrong, by(nil)), trust.VerifyOtherArtifact},
		{"other file", about([]byte("another"), whole, by(nil)), trust.VerifySigInvalid},
		{"other key", about(data, whole, by(func(s *signer.Signer) { s.PublicKey = strange.String() })), trust.VerifyNoKey},
		{"trusted comment changed", about(data, bytes.Replace(hashed, []byte("1700000000"), []byte("1800000000"), 1), by(nil)), trust.VerifySigInvalid},
		{"for another tool", about(data, whole, by(func(s *signer.Signer) { s.Tools = []string{"gh"} })), trust.VerifyIdentity},
		{"revoked", func() Input {
			in := about(data, whole, by(nil))
			in.Revoked = []signer.Revocation{{ID: "m"}}
			return in
		}(), trust.VerifySignerRevoked},
	} {
		if got := Check(row.in); got.Bundle != trust.BundlePresent || got.Verify != row.want {
			t.Errorf("%s: %v, want %v: %s", row.name, got.Verify, row.want, got.Detail)
		}
	}
	swapped := about(data, whole, by(nil))
	swapped.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("another")), nil }
	if got := Check(swapped); got.Verify != trust.VerifyOtherArtifact {
		t.Errorf("bytes that are not those judged: %v", got.Verify)
	}
	if got := Check(about(data, []byte("untrusted comment: x\nAAAA"), by(nil))); got.Bundle != trust.BundleUnreadable {
		t.Errorf("damaged: %+v", got)
	}
}

func pgp(t *testing.T, made time.Time, config *packet.Config) (*openpgp.Entity, signer.Signer) {
	t.Helper()
	config.Time = func() time.Time { return made }
	e, err := openpgp.NewEntity("release", "", "release@acme.example", config)
	if err != nil {
		t.Fatal(err)
	}
	var ring bytes.Buffer
	w, err := armor.Encode(&ring, "PGP PUBLIC KEY BLOCK", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Serialize(w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return e, signer.Signer{Name: "p", Type: signer.GPG, Fingerprint: hex.EncodeToString(e.PrimaryKey.Fingerprint), Keyring: "p.asc", Material: ring.Bytes()}
}

func detachedSig(t *testing.T, e *openpgp.Entity, data []byte, config *packet.Config) []byte {
	t.Helper()
	var sig bytes.Buffer
	if err := openpgp.DetachSign(&sig, []*openpgp.Entity{e}, bytes.NewReader(data), config); err != nil {
		t.Fatal(err)
	}
	return sig.Bytes()
}

func TestOpenPGP(t *testing.T) {
	data := []byte("the tool")
	now := time.Now()
	ed := func() *packet.Config { return &packet.Config{Algorithm: packet.PubKeyAlgoEd25519} }
	e, s := pgp(t, now.Add(-time.Hour), ed())
	at := func(when time.Time) *packet.Config {
		return &packet.Config{Time: func() time.Time { return when }, DefaultHash: crypto.SHA256}
	}
	sig := detachedSig(t, e, data, at(now.Add(-time.Minute)))
	other, _ := pgp(t, now.Add(-time.Hour), ed())
	short := ed()
	short.KeyLifetimeSecs = 60
	expired, expiredSigner := pgp(t, now.Add(-time.Hour), short)
	gone, _ := pgp(t, now.Add(-time.Hour), ed())
	if err := gone.Revoke(packet.KeyCompromised, "stolen", &packet.Config{}); err != nil {
		t.Fatal(err)
	}
	var ring bytes.Buffer
	if err := gone.Serialize(&ring); err != nil {
		t.Fatal(err)
	}
	goneSigner := signer.Signer{Name: "g", Type: signer.GPG, Fingerprint: hex.EncodeToString(gone.PrimaryKey.Fingerprint), Keyring: "g", Material: ring.Bytes()}
	for _, row := range []struct {
		name string
		in   Input
		ok   bool
	}{
		{"good", about(data, sig, s), true},
		{"other file", about([]byte("another"), sig, s), false},
		{"other key", about(data, detachedSig(t, other, data, at(now)), s), false},
		{"a key that was good when it signed and has expired since", about(data, detachedSig(t, expired, data, at(now.Add(-59*time.Minute-50*time.Second))), expiredSigner), true},
		{"from the future", about(data, detachedSig(t, e, data, at(now.Add(time.Hour))), s), false},
		{"revoked", about(data, detachedSig(t, other, data, at(now)), goneSigner), false},
		{"short fingerprint", about(data, sig, func() signer.Signer { x := s; x.Fingerprint = x.Fingerprint[24:]; return x }()), false},
	} {
		got := Check(row.in)
		if ok := got.Verify == trust.VerifyOK && got.Bundle == trust.BundlePresent; ok != row.ok {
			t.Errorf("%s: %v %s", row.name, got.Verify, got.Detail)
		}
	}
	weak := &packet.Config{Algorithm: packet.PubKeyAlgoRSA, RSABits: 2048}
	rsa, rsaSigner := pgp(t, now.Add(-time.Hour), weak)
	if got := Check(about(data, detachedSig(t, rsa, data, at(now)), rsaSigner)); got.Verify != trust.VerifyOK {
		t.Errorf("RSA 2048: %s", got.Detail)
	}
}

func TestSums(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := signer.Signer{Name: "m", Type: signer.Minisign, PublicKey: public.String()}
	data := []byte("the tool")
	sum := sha256.Sum256(data)
	for _, row := range []struct {
		list string
		want trust.Verify
	}{
		{fmt.Sprintf("%x  tool\n", sum), trust.VerifyOK},
		{fmt.Sprintf("%x *tool\r\n%x  other\n", sum, sha256.Sum256(nil)), trust.VerifyOK},
		{fmt.Sprintf("%x  tool\n%x  again\n", sum, sum), trust.VerifyOtherArtifact},
		{fmt.Sprintf("%x tool\n", sum), trust.VerifyOtherArtifact},
		{"# nothing\n", trust.VerifyOtherArtifact},
	} {
		in := about(data, minisign.Sign(private, []byte(row.list)), s)
		in.Format, in.Sums = Sums, []byte(row.list)
		if got := Check(in); got.Verify != row.want {
			t.Errorf("%q: %v, want %v: %s", row.list, got.Verify, row.want, got.Detail)
		}
	}
	in := about(data, minisign.Sign(private, []byte("x")), s)
	in.Format, in.Sums = Sums, fmt.Appendf(nil, "%x  tool\n", sum)
	if got := Check(in); got.Verify != trust.VerifySigInvalid {
		t.Errorf("a list that is not signed: %v", got.Verify)
	}
}

func FuzzListed(f *testing.F) {
	f.Add([]byte("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  x\n"))
	f.Fuzz(func(t *testing.T, list []byte) {
		const digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		if n := Listed(list, digest); n > 0 && !strings.Contains(strings.ToLower(string(list)), digest) {
			t.Errorf("found %d times in %q", n, list)
		}
		Guess(list)
	})
}

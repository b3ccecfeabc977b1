package sigstore_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/sigstore"
	"github.com/atip-dev/atip-exec/trust/verifier"
)

// FuzzSignature gives the verifier whatever there is as the signature of two files, of which the
// key has signed one. It must not fall over, and never find the other one signed. The key is the
// same in each process of a fuzzer, so that what grows out of the seeds can verify.
func FuzzSignature(f *testing.F) {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		f.Fatal(err)
	}
	text := func(kind string, der []byte, err error) []byte {
		if err != nil {
			f.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private := text("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	public := text("PUBLIC KEY", der, err)
	data := []byte("the tool")
	d := deploy(f)
	whom := d.certify(identity{san: workflow, issuer: actions, source: source})
	for _, statement := range []bool{false, true} {
		s := sigstore.Signing{Data: data, Key: private, Statement: statement}
		if statement {
			s.Data = []byte(slsa1(data, "https://b.example", source))
		}
		b, err := sigstore.Sign(f.Context(), s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	message := d.message(whom, data)
	legacy := legacyOf(message, d.logID())
	keyed := object{"base64Signature": legacy["base64Signature"], "cert": b64(public), "rekorBundle": legacy["rekorBundle"]}
	for _, seed := range []object{message, d.stamped(d.message(whom, data)), legacy, keyed, {"base64Signature": "AA==", "cert": "", "rekorBundle": nil}} {
		raw, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte("untrusted comment: x\nRWQ=\n"))
	f.Add([]byte("-----BEGIN PGP SIGNATURE-----\n"))
	signers := append(keyless(nil), signer.Signer{Name: "k", Type: signer.Cosign, Key: "k.pub", Material: public, Log: "none"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		v := &verifier.Verifier{Version: "test", Now: time.Now}
		for _, format := range []string{"auto", "sigstore", "cosign-legacy"} {
			signed, other := question(d, data, signers), question(d, []byte("another"), signers)
			signed.Signatures = []request.Signature{{Format: format, Data: raw}}
			other.Signatures = signed.Signatures
			if a := v.Answer(signed); a.Level == "VERIFIED" && (a.Settled.Evidence == nil || a.Settled.Evidence.Signer == "") {
				t.Errorf("VERIFIED without a signer: %+v", a)
			}
			if a := v.Answer(other); a.Level == "VERIFIED" {
				t.Errorf("another file is VERIFIED: %+v", a)
			}
		}
	})
}

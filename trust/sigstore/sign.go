package sigstore

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/atip-dev/atip-exec/trust/request"
)

// Signing is what is signed, by whom, and where it is recorded.
type Signing struct {
	Data []byte
	// Statement says that the data is an in-toto statement, which goes into an envelope.
	Statement bool
	Key       []byte // PEM of a private key; nil signs keyless
	Fulcio    string // URL, for keyless
	Token     string // OpenID token, for keyless
	Rekor     string // URL; "" records nowhere
	RekorV2   bool
	TSA       string // URL; "" asks for no timestamp
}

// Sign makes a bundle of version 0.3.
func Sign(ctx context.Context, s Signing) ([]byte, error) {
	var content sign.Content = &sign.PlainData{Data: s.Data}
	if s.Statement {
		content = &sign.DSSEData{Data: s.Data, PayloadType: PayloadType}
	}
	opts := sign.BundleOptions{Context: ctx}
	var pair sign.Keypair
	if s.Key != nil {
		key, err := PrivateKey(s.Key)
		if err != nil {
			return nil, err
		}
		pair = &localKey{key}
	} else {
		if s.Fulcio == "" || s.Token == "" {
			return nil, errors.New("signing without a key needs the URL of a Fulcio and an identity token")
		}
		if s.Rekor == "" && s.TSA == "" {
			return nil, errors.New("signing without a key needs a log or a timestamp authority: nothing else proves the time")
		}
		ephemeral, err := sign.NewEphemeralKeypair(nil)
		if err != nil {
			return nil, err
		}
		pair = ephemeral
		opts.CertificateProvider = sign.NewFulcio(&sign.FulcioOptions{BaseURL: s.Fulcio, Timeout: 30 * time.Second, Transport: direct{}})
		opts.CertificateProviderOptions = &sign.CertificateProviderOptions{IDToken: s.Token}
	}
	if s.Rekor != "" {
		o := &sign.RekorOptions{BaseURL: s.Rekor, Timeout: 90 * time.Second}
		if s.RekorV2 {
			o.Version = 2
		}
		opts.TransparencyLogs = append(opts.TransparencyLogs, sign.NewRekor(o))
	}
	if s.TSA != "" {
		opts.TimestampAuthorities = append(opts.TimestampAuthorities, sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: s.TSA, Timeout: 30 * time.Second, Transport: direct{}}))
	}
	b, err := sign.Bundle(content, pair, opts)
	if err != nil {
		return nil, err
	}
	raw, err := protojson.MarshalOptions{Multiline: false}.Marshal(b)
	if err != nil {
		return nil, err
	}
	// protojson varies its white space on purpose.
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// direct gives what the address that was named answers well, and an error for anything else. Go
// would send an identity token on to wherever the answer redirects on this host, and the library
// reads the text of a failure after it has closed it.
type direct struct{}

func (direct) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || answer.StatusCode < 300 {
		return answer, err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 400 {
		return nil, fmt.Errorf("it answers with a redirect to %q, which is not followed", answer.Header.Get("Location"))
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	return nil, fmt.Errorf("it answers %s: %q", answer.Status, text)
}

// Address says what is wrong with the URL of a service, "" if it can be asked: what is said to it
// is for it alone, so that it is spoken to over TLS or within this machine.
func Address(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "is no plain https URL"
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && here) {
		return "is no https URL; http is spoken with this machine only"
	}
	return ""
}

// NewStatement is an in-toto statement about one file.
func NewStatement(name, sha256, predicateType string, predicate []byte) ([]byte, error) {
	if !request.IsSHA256(sha256) {
		return nil, errors.New("the digest is not 64 hexadecimal digits")
	}
	if !json.Valid(predicate) {
		return nil, errors.New("the predicate is not JSON")
	}
	return json.Marshal(Statement{Type: StatementV1, Subject: []Subject{{Name: name, Digest: map[string]string{"sha256": sha256}}}, PredicateType: predicateType, Predicate: predicate})
}

// PrivateKey reads a private key: PKCS #8 or SEC 1 in PEM, ECDSA P-256 or RSA.
func PrivateKey(raw []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, errors.New("the key is a PEM block " + block.Type + ", which is not read; write it as PKCS #8 without a passphrase")
	}
	if err != nil {
		return nil, err
	}
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P256() {
			return k, nil
		}
	case *rsa.PrivateKey:
		if k.N.BitLen() >= 2048 {
			return k, nil
		}
	}
	return nil, fmt.Errorf("a key of this kind is not used: ECDSA P-256, or RSA of at least 2048 bits")
}

// NewKey makes a key pair, ECDSA P-256, in PEM.
func NewKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), nil
}

// localKey lets a key of a file sign; all kinds that are used sign a SHA-256.
type localKey struct{ key crypto.Signer }

func (k *localKey) GetHashAlgorithm() protocommon.HashAlgorithm {
	return protocommon.HashAlgorithm_SHA2_256
}

func (k *localKey) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	if r, ok := k.key.(*rsa.PrivateKey); ok {
		switch {
		case r.N.BitLen() >= 4096:
			return protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_4096_SHA256
		case r.N.BitLen() >= 3072:
			return protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_3072_SHA256
		}
		return protocommon.PublicKeyDetails_PKIX_RSA_PKCS1V15_2048_SHA256
	}
	return protocommon.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
}

func (k *localKey) GetHint() []byte {
	id, _ := keyID(k.key.Public())
	return []byte(id)
}

func (k *localKey) GetKeyAlgorithm() string {
	if _, ok := k.key.(*rsa.PrivateKey); ok {
		return "RSA"
	}
	return "ECDSA"
}

func (k *localKey) GetPublicKey() crypto.PublicKey { return k.key.Public() }

func (k *localKey) GetPublicKeyPem() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(k.key.Public())
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), err
}

func (k *localKey) SignData(_ context.Context, data []byte) (sig, digest []byte, err error) {
	signer, err := signature.LoadDefaultSigner(k.key)
	if err != nil {
		return nil, nil, err
	}
	sig, err = signer.SignMessage(bytes.NewReader(data))
	sum := sha256.Sum256(data)
	return sig, sum[:], err
}

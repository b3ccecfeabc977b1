package sigstore_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"

	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/verifier"
)

const (
	actions  = "https://token.actions.githubusercontent.com"
	workflow = "https://github.com/acme/tool/.github/workflows/release.yml@refs/tags/v1"
	shared   = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_generic_slsa3.yml@refs/tags/v2.1.0"
	source   = "https://github.com/acme/tool"

	logHost   = "rekor.example"
	tilesHost = "rekor2.example"
)

// deployment is a Sigstore of its own. The authorities are made by sigstore-go's virtual one;
// logs and certificates are ours, since the virtual ones carry no extensions, and a tree that has
// one size in the proof and another one in the checkpoint.
type deployment struct {
	t         testing.TB
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	log       *ecdsa.PrivateKey // a Rekor of version 1
	ctlog     *ecdsa.PrivateKey // logs certificates
	tiles     *ecdsa.PrivateKey // a Rekor of version 2
	clock     *x509.Certificate // stamps times
	clockKey  *ecdsa.PrivateKey
	root      []byte
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// keyDigest is the digest of a public key, by which logs are named.
func keyDigest(key *ecdsa.PrivateKey) [sha256.Size]byte {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(der)
}

func deploy(t testing.TB) *deployment {
	t.Helper()
	d := &deployment{t: t}
	var err error
	top, topKey, err := ca.GenerateRootCa()
	if err != nil {
		t.Fatal(err)
	}
	if d.authority, d.key, err = ca.GenerateFulcioIntermediate(top, topKey); err != nil {
		t.Fatal(err)
	}
	d.log, d.ctlog, d.tiles, d.clockKey = newKey(t), newKey(t), newKey(t), newKey(t)
	began := time.Now().Add(-5 * time.Hour)
	log := func(key *ecdsa.PrivateKey, host string) (string, *root.TransparencyLog) {
		id := keyDigest(key)
		return hex.EncodeToString(id[:]), &root.TransparencyLog{BaseURL: "https://" + host, ID: id[:], ValidityPeriodStart: began,
			HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256, PublicKey: key.Public()}
	}
	logs := map[string]*root.TransparencyLog{}
	id, rekor := log(d.log, logHost)
	logs[id] = rekor
	id, tiles := log(d.tiles, tilesHost)
	logs[id] = tiles
	id, ctlog := log(d.ctlog, "ctlog.example")
	tsa, tsaKey, err := ca.GenerateTSAIntermediate(top, topKey)
	if err != nil {
		t.Fatal(err)
	}
	if d.clock, err = ca.GenerateTSALeafCert(time.Now().Add(-5*time.Minute), d.clockKey, tsa, tsaKey); err != nil {
		t.Fatal(err)
	}
	clock := &root.SigstoreTimestampingAuthority{Root: top, Intermediates: []*x509.Certificate{tsa}, Leaf: d.clock, ValidityPeriodStart: began, URI: "https://tsa.example"}
	fulcio := &root.FulcioCertificateAuthority{Root: top, Intermediates: []*x509.Certificate{d.authority}, ValidityPeriodStart: began, URI: "https://fulcio.example"}
	tr, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{fulcio}, map[string]*root.TransparencyLog{id: ctlog}, []root.TimestampingAuthority{clock}, logs)
	if err != nil {
		t.Fatal(err)
	}
	if d.root, err = tr.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	return d
}

// with is a root that knows two deployments.
func (d *deployment) with(other *deployment) []byte {
	d.t.Helper()
	var one, two map[string]json.RawMessage
	if json.Unmarshal(d.root, &one) != nil || json.Unmarshal(other.root, &two) != nil {
		d.t.Fatal("a root is not JSON")
	}
	for _, key := range []string{"tlogs", "certificateAuthorities", "ctlogs", "timestampAuthorities"} {
		var a, b []json.RawMessage
		if json.Unmarshal(one[key], &a) != nil || json.Unmarshal(two[key], &b) != nil {
			d.t.Fatal(key + " is not a list")
		}
		one[key], _ = json.Marshal(append(a, b...))
	}
	raw, _ := json.Marshal(one)
	return raw
}

// without is the root without the authorities of one kind.
func (d *deployment) without(t *testing.T, kind string) []byte {
	t.Helper()
	var root map[string]json.RawMessage
	if json.Unmarshal(d.root, &root) != nil || root[kind] == nil {
		t.Fatal("the root has no " + kind)
	}
	delete(root, kind)
	raw, _ := json.Marshal(root)
	return raw
}

// witness is a bundle with what was said of it, for another implementation (scripts/oracle).
type witness struct {
	Name     string          `json:"name"`
	Profile  string          `json:"profile"`
	Root     json.RawMessage `json:"root"`
	Artifact []byte          `json:"artifact"`
	Bundle   []byte          `json:"bundle"`
	Key      string          `json:"key,omitempty"` // PEM, of a bundle without a certificate
	Logged   bool            `json:"logged"`        // a log is demanded of the key
	Identity string          `json:"identity,omitempty"`
	Issuer   string          `json:"issuer,omitempty"`
	Good     bool            `json:"good"`
}

// keep writes it down if somebody asks for it.
func (w witness) keep(t *testing.T) {
	t.Helper()
	dir := os.Getenv("ATIP_ORACLE")
	if dir == "" || !json.Valid(w.Root) {
		return
	}
	w.Name = t.Name() + w.Name
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	if err := os.WriteFile(filepath.Join(dir, hex.EncodeToString(sum[:8])+".json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// witnessOf is what a request puts to the other implementation.
func witnessOf(r request.Request, artifact []byte, good bool) witness {
	w := witness{Profile: r.Roots[0].Profile, Root: r.Roots[0].Data, Artifact: artifact, Bundle: r.Signatures[0].Data, Good: good}
	if sum := sha256.Sum256(artifact); r.Subject.SHA256 != hex.EncodeToString(sum[:]) {
		w.Artifact = []byte("other bytes")
	}
	if len(r.Signers) > 0 {
		w.Identity, w.Issuer = r.Signers[0].Identity, r.Signers[0].Issuer
	}
	return w
}

// leaf is a certificate of the deployment.
type leaf struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

type identity struct {
	san, issuer, source, runner, config string
}

func (d *deployment) certify(id identity) leaf {
	d.t.Helper()
	key := newKey(d.t)
	return leaf{d.issue(id, key.Public(), true), key}
}

// issue certifies a key; logged says that the certificate's log has promised to take it in.
func (d *deployment) issue(id identity, key crypto.PublicKey, logged bool) *x509.Certificate {
	d.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(7), NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().Add(20 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}
	if u, err := url.Parse(id.san); err == nil && u.Scheme != "" {
		template.URIs = []*url.URL{u}
	} else {
		template.EmailAddresses = []string{id.san}
	}
	for number, text := range map[int]string{8: id.issuer, 11: id.runner, 12: id.source, 18: id.config} {
		if text != "" {
			der, _ := asn1.MarshalWithParams(text, "utf8")
			template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, number}, Value: der})
		}
	}
	made := func() *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, d.authority, key, d.key)
		if err != nil {
			d.t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			d.t.Fatal(err)
		}
		return cert
	}
	if logged {
		template.ExtraExtensions = append(template.ExtraExtensions, d.promise(made().RawTBSCertificate))
	}
	return made()
}

// promise is the extension in which a log of certificates promises to take one in: RFC 6962,
// sections 3.2 and 3.3. It is over the certificate without the extension.
func (d *deployment) promise(tbs []byte) pkix.Extension {
	d.t.Helper()
	at := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli()))
	issuer := sha256.Sum256(d.authority.RawSubjectPublicKeyInfo)
	signed := append([]byte{0, 0}, at...) // version 1, a timestamp of a certificate
	signed = append(append(signed, 0, 1), issuer[:]...)
	signed = append(append(signed, byte(len(tbs)>>16), byte(len(tbs)>>8), byte(len(tbs))), tbs...)
	sum := sha256.Sum256(append(signed, 0, 0))
	sig, err := ecdsa.SignASN1(rand.Reader, d.ctlog, sum[:])
	if err != nil {
		d.t.Fatal(err)
	}
	sized := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	id := keyDigest(d.ctlog)
	sct := append(append(append([]byte{0}, id[:]...), at...), 0, 0, 4, 3) // no extensions, SHA-256, ECDSA
	value, err := asn1.Marshal(sized(sized(append(sct, sized(sig)...))))
	if err != nil {
		d.t.Fatal(err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}
}

type object = map[string]any

func b64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

func (l leaf) sign(t testing.TB, message []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(message)
	sig, err := ecdsa.SignASN1(rand.Reader, l.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

func (l leaf) pem() string {
	return b64(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.cert.Raw}))
}

// logID names the log of version 1, in hex.
func (d *deployment) logID() string {
	id := keyDigest(d.log)
	return hex.EncodeToString(id[:])
}

// entry logs a body at a time, with a promise and a proof.
func (d *deployment) entry(kind string, body object, at time.Time, index int64) object {
	d.t.Helper()
	raw, _ := json.Marshal(body)
	// The members of an object come out in order, as the canonical form has them.
	payload, _ := json.Marshal(object{"body": b64(raw), "integratedTime": at.Unix(), "logIndex": index, "logID": d.logID()})
	id := keyDigest(d.log)
	return object{"logIndex": fmt.Sprint(index), "logId": object{"keyId": b64(id[:])}, "kindVersion": object{"kind": kind, "version": "0.0.1"}, "integratedTime": fmt.Sprint(at.Unix()),
		"inclusionPromise": object{"signedEntryTimestamp": b64(leaf{key: d.log}.sign(d.t, payload))}, "canonicalizedBody": b64(raw),
		"inclusionProof": included(d.t, d.log, logHost+" - 1", logHost, raw)}
}

// included proves that a body is in a log that has nothing else.
func included(t testing.TB, key *ecdsa.PrivateKey, origin, name string, body []byte) object {
	t.Helper()
	hash := sha256.Sum256(append([]byte{0}, body...))
	text := fmt.Sprintf("%s\n1\n%s\n", origin, b64(hash[:]))
	id := keyDigest(key)
	note := text + "\n— " + name + " " + b64(append(id[:4:4], leaf{key: key}.sign(t, []byte(text))...)) + "\n"
	return object{"logIndex": "0", "treeSize": "1", "rootHash": b64(hash[:]), "hashes": []string{}, "checkpoint": object{"envelope": note}}
}

// message is a bundle with a signature over data.
func (d *deployment) message(l leaf, data []byte) object {
	d.t.Helper()
	sum := sha256.Sum256(data)
	sig := l.sign(d.t, data)
	body := object{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": object{"data": object{"hash": object{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
		"signature": object{"content": b64(sig), "publicKey": object{"content": l.pem()}}}}
	return object{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": object{"certificate": object{"rawBytes": b64(l.cert.Raw)}, "tlogEntries": []any{d.entry("hashedrekord", body, time.Now(), 42)}},
		"messageSignature":     object{"messageDigest": object{"algorithm": "SHA2_256", "digest": b64(sum[:])}, "signature": b64(sig)}}
}

// stamp is the answer of the timestamp authority about a digest.
func (d *deployment) stamp(sum []byte) []byte {
	d.t.Helper()
	stamp := timestamp.Timestamp{HashAlgorithm: crypto.SHA256, HashedMessage: sum, Time: time.Now(), Policy: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2}}
	raw, err := stamp.CreateResponseWithOpts(d.clock, d.clockKey, crypto.SHA256)
	if err != nil {
		d.t.Fatal(err)
	}
	return raw
}

// stamped adds a timestamp.
func (d *deployment) stamped(b object) object {
	d.t.Helper()
	sig, _ := base64.StdEncoding.DecodeString(b["messageSignature"].(object)["signature"].(string))
	sum := sha256.Sum256(sig)
	stamp := d.stamp(sum[:])
	b["verificationMaterial"].(object)["timestampVerificationData"] = object{"rfc3161Timestamps": []any{object{"signedTimestamp": b64(stamp)}}}
	return b
}

// statement is a bundle with an envelope around an in-toto statement.
func (d *deployment) statement(l leaf, statement string) object {
	d.t.Helper()
	const kind = "application/vnd.in-toto+json"
	pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement)
	sig := l.sign(d.t, []byte(pae))
	payload := sha256.Sum256([]byte(statement))
	body := object{"apiVersion": "0.0.1", "kind": "dsse", "spec": object{"envelopeHash": object{"algorithm": "sha256", "value": strings.Repeat("ab", 32)},
		"payloadHash": object{"algorithm": "sha256", "value": hex.EncodeToString(payload[:])}, "signatures": []any{object{"signature": b64(sig), "verifier": l.pem()}}}}
	return object{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": object{"certificate": object{"rawBytes": b64(l.cert.Raw)}, "tlogEntries": []any{d.entry("dsse", body, time.Now(), 43)}},
		"dsseEnvelope":         object{"payload": b64([]byte(statement)), "payloadType": kind, "signatures": []any{object{"sig": b64(sig)}}}}
}

func slsa1(data []byte, builder, from string) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"tool","digest":{"sha256":"%x"}}],"predicateType":"https://slsa.dev/provenance/v1","predicate":{"buildDefinition":{"externalParameters":{"workflow":{"repository":%q}}},"runDetails":{"builder":{"id":%q}}}}`, sum, from, builder)
}

func slsa02(data []byte, builder, from string) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v0.1","subject":[{"name":"tool","digest":{"sha256":"%x"}}],"predicateType":"https://slsa.dev/provenance/v0.2","predicate":{"builder":{"id":%q},"invocation":{"configSource":{"uri":%q}}}}`, sum, builder, from)
}

// ask puts one request to a verifier.
func ask(t *testing.T, r request.Request) request.Answer {
	t.Helper()
	v := &verifier.Verifier{Version: "test", Now: time.Now}
	a := v.Answer(r)
	t.Logf("%s %s: %s", a.Level, a.Reason, a.Detail)
	return a
}

func question(d *deployment, data []byte, signers []signer.Signer, signatures ...any) request.Request {
	sum := sha256.Sum256(data)
	r := request.Request{V: 1, ID: "1", Subject: request.Subject{Kind: "tool", Name: "tool", SHA256: hex.EncodeToString(sum[:])}, Signers: signers,
		Roots: []request.Root{{Name: "sigstore", Profile: "private", Data: d.root, Fetched: time.Now()}}}
	for _, s := range signatures {
		raw, ok := s.([]byte)
		if !ok {
			raw, _ = json.Marshal(s)
		}
		r.Signatures = append(r.Signatures, request.Signature{Format: "auto", Data: raw})
	}
	return r
}

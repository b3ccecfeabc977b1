package sigstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"

	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/verifier"
)

const (
	actions  = "https://token.actions.githubusercontent.com"
	workflow = "https://github.com/acme/tool/.github/workflows/release.yml@refs/tags/v1"
	shared   = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_generic_slsa3.yml@refs/tags/v2.1.0"
	source   = "https://github.com/acme/tool"
)

// deployment is a Sigstore of its own: the log and the clock are sigstore-go's virtual ones,
// the certificates ours, since the virtual ones carry no extensions.
type deployment struct {
	t         *testing.T
	virtual   *ca.VirtualSigstore
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	logID     string
	root      []byte
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{t: t}
	var err error
	if d.virtual, err = ca.NewVirtualSigstore(); err != nil {
		t.Fatal(err)
	}
	top, topKey, err := ca.GenerateRootCa()
	if err != nil {
		t.Fatal(err)
	}
	if d.authority, d.key, err = ca.GenerateFulcioIntermediate(top, topKey); err != nil {
		t.Fatal(err)
	}
	if d.logID, err = d.virtual.RekorLogID(); err != nil {
		t.Fatal(err)
	}
	logs := d.virtual.RekorLogs()
	for id, l := range logs {
		l.ID, _ = hex.DecodeString(id)
	}
	ctlogs := d.virtual.CTLogs()
	for id, l := range ctlogs {
		l.ID, _ = hex.DecodeString(id)
		l.SignatureHashFunc = 5
	}
	fulcio := &root.FulcioCertificateAuthority{Root: top, Intermediates: []*x509.Certificate{d.authority}, ValidityPeriodStart: time.Now().Add(-5 * time.Hour), URI: "https://fulcio.example"}
	tr, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{fulcio}, ctlogs, d.virtual.TimestampingAuthorities(), logs)
	if err != nil {
		t.Fatal(err)
	}
	if d.root, err = tr.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	return d
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
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
	der, err := x509.CreateCertificate(rand.Reader, template, d.authority, key.Public(), d.key)
	if err != nil {
		d.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		d.t.Fatal(err)
	}
	return leaf{cert, key}
}

type object = map[string]any

func b64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

func (l leaf) sign(t *testing.T, message []byte) []byte {
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

// entry logs a body at a time, with a promise and a proof.
func (d *deployment) entry(kind string, body object, at time.Time, index int64) object {
	d.t.Helper()
	raw, _ := json.Marshal(body)
	set, err := d.virtual.RekorSignPayload(tlog.RekorPayload{Body: b64(raw), IntegratedTime: at.Unix(), LogIndex: index, LogID: d.logID})
	if err != nil {
		d.t.Fatal(err)
	}
	proof, err := d.virtual.GetInclusionProof(raw)
	if err != nil {
		d.t.Fatal(err)
	}
	rootHash, _ := hex.DecodeString(*proof.RootHash)
	id, _ := hex.DecodeString(d.logID)
	return object{"logIndex": fmt.Sprint(index), "logId": object{"keyId": b64(id)}, "kindVersion": object{"kind": kind, "version": "0.0.1"}, "integratedTime": fmt.Sprint(at.Unix()),
		"inclusionPromise": object{"signedEntryTimestamp": b64(set)}, "canonicalizedBody": b64(raw),
		"inclusionProof": object{"logIndex": fmt.Sprint(*proof.LogIndex), "treeSize": fmt.Sprint(*proof.TreeSize), "rootHash": b64(rootHash), "hashes": []string{}, "checkpoint": object{"envelope": *proof.Checkpoint}}}
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

// stamped adds a timestamp of the virtual authority.
func (d *deployment) stamped(b object) object {
	d.t.Helper()
	sig, _ := base64.StdEncoding.DecodeString(b["messageSignature"].(object)["signature"].(string))
	stamp, err := d.virtual.TimestampResponse(sig)
	if err != nil {
		d.t.Fatal(err)
	}
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

package sigstore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/atip-dev/atip-exec/trust"
)

// legacy is what `cosign sign-blob --bundle` wrote before it knew Sigstore bundles.
type legacy struct {
	Signature string `json:"base64Signature"`
	Cert      string `json:"cert"`
	Rekor     *struct {
		SET     []byte `json:"SignedEntryTimestamp"`
		Payload struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		} `json:"Payload"`
	} `json:"rekorBundle"`
}

// fromLegacy rebuilds it as a bundle of version 0.1, the only one that takes a log's promise
// without a proof. Its digest is ours: the signature shows whether that is right. Without a
// bundle, the outcome says why.
func fromLegacy(raw []byte, sha256 string) (*bundle.Bundle, Outcome) {
	var l legacy
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, malformed("the bundle cannot be read: " + err.Error())
	}
	sig, err := base64.StdEncoding.DecodeString(l.Signature)
	if err != nil || len(sig) == 0 {
		return nil, malformed("base64Signature is none")
	}
	if l.Rekor == nil {
		return nil, found(trust.VerifyNoTime, "there is no rekorBundle: no time is proven")
	}
	id, err := hex.DecodeString(l.Rekor.Payload.LogID)
	if err != nil || len(id) != 32 {
		return nil, malformed("logID is not 64 hexadecimal digits")
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if json.Unmarshal(l.Rekor.Payload.Body, &kind) != nil {
		return nil, malformed("the body of the log entry cannot be read")
	}
	digest, err := hex.DecodeString(sha256)
	if err != nil {
		return nil, malformed("there is no digest to compare")
	}
	material := &protobundle.VerificationMaterial{TlogEntries: []*protorekor.TransparencyLogEntry{{
		LogIndex: l.Rekor.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: id}, KindVersion: &protorekor.KindVersion{Kind: kind.Kind, Version: kind.Version},
		IntegratedTime: l.Rekor.Payload.IntegratedTime, InclusionPromise: &protorekor.InclusionPromise{SignedEntryTimestamp: l.Rekor.SET}, CanonicalizedBody: l.Rekor.Payload.Body,
	}}}
	if why := leafOrKey(l.Cert, material); why != "" {
		return nil, malformed(why)
	}
	b, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1", VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: digest}, Signature: sig}},
	})
	if err != nil {
		return nil, malformed(err.Error())
	}
	return b, Outcome{}
}

// leafOrKey takes a certificate or a public key, as PEM or as base64 of that; neither is a
// key without a hint.
func leafOrKey(text string, m *protobundle.VerificationMaterial) (why string) {
	raw := []byte(text)
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		raw = decoded
	}
	block, _ := pem.Decode(raw)
	switch {
	case len(raw) == 0:
		m.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}
	case block == nil:
		return "cert is no PEM"
	case block.Type == "CERTIFICATE":
		m.Content = &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
			Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}}}}
	case block.Type == "PUBLIC KEY":
		_, id, err := PublicKey(pem.EncodeToMemory(block))
		if err != nil {
			return "cert holds a key that is not read: " + err.Error()
		}
		m.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: id}}
	default:
		return "cert is a PEM block of " + block.Type
	}
	return ""
}

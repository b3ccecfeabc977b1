package sigstore

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/digitorus/pkcs7"
	"github.com/digitorus/timestamp"
	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/x509util"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Input is one bundle and what it is held against.
type Input struct {
	Raw    []byte
	Legacy bool // cosign's older form
	Kind   string
	Tool   string
	SHA256 string // hex
	// Digest is the subject's in another algorithm, sha384 or sha512; nil if its bytes are
	// not at hand.
	Digest  func(algorithm string) []byte
	Data    []byte // of the subject, for keys that sign the bytes themselves; nil if not read
	Hint    request.Hint
	Signers []signer.Signer
	Filters [][]signer.Signer
	Revoked []signer.Revocation
	Roots   []*Root
	// Broken are roots that a signer names and that cannot be used.
	Broken     map[string]bool
	Source     string // a repository that provenance has to name, "" if none is demanded
	MaxRootAge time.Duration
	Now        time.Time
}

// Outcome is what was found of one bundle.
type Outcome struct {
	Bundle    trust.Bundle
	Verify    trust.Verify
	Evidence  *trust.Evidence
	Statement *Statement // of a DSSE envelope whose signature was verified
	Detail    string
	signer    *signer.Signer
	cert      signer.Certificate
}

func malformed(why string) Outcome { return Outcome{Bundle: trust.BundleUnreadable, Detail: why} }

func found(v trust.Verify, why string) Outcome {
	return Outcome{Bundle: trust.BundlePresent, Verify: v, Detail: why}
}

// media are the bundles we read. The library would take other spellings of a version.
var media = []string{
	"application/vnd.dev.sigstore.bundle+json;version=0.1",
	"application/vnd.dev.sigstore.bundle+json;version=0.2",
	"application/vnd.dev.sigstore.bundle+json;version=0.3",
	"application/vnd.dev.sigstore.bundle.v0.3+json",
}

// Check verifies one bundle.
func Check(in Input) Outcome {
	if len(in.Raw) > request.MaxBundle {
		return malformed("the bundle has more than 1 MiB")
	}
	if err := atip.ScanStrict(in.Raw, atip.ParseOptions{MaxBytes: request.MaxBundle}); err != nil {
		return malformed("the bundle is not strict JSON: " + err.Error())
	}
	var b *bundle.Bundle
	if in.Legacy {
		var out Outcome
		if b, out = fromLegacy(in.Raw, in.SHA256); b == nil {
			return out
		}
	} else {
		b = &bundle.Bundle{}
		if err := b.UnmarshalJSON(in.Raw); err != nil {
			return malformed(err.Error())
		}
		if !slices.Contains(media, b.MediaType) {
			return malformed("media type " + b.MediaType + " is not read")
		}
	}
	if n := len(b.GetVerificationMaterial().GetTlogEntries()); n > request.MaxEntries {
		return malformed("the bundle has more than 32 log entries")
	}
	if e := b.GetDsseEnvelope(); e != nil && len(e.GetSignatures()) != 1 {
		return malformed(fmt.Sprintf("the envelope has %d signatures, not one", len(e.GetSignatures())))
	}
	content, err := b.VerificationContent()
	if err != nil {
		return malformed(err.Error())
	}
	var out Outcome
	if leaf := content.Certificate(); leaf != nil {
		out = in.keyless(b, leaf)
	} else {
		out = in.keyed(b, content.PublicKey().Hint())
	}
	if out.Evidence != nil {
		sum := sha256.Sum256(in.Raw)
		out.Evidence.BundleSHA256 = hex.EncodeToString(sum[:])
	}
	return out
}

// times counts what a bundle has to prove its time with.
func times(b *bundle.Bundle) (promises, stamps int) {
	for _, e := range b.GetVerificationMaterial().GetTlogEntries() {
		if len(e.GetInclusionPromise().GetSignedEntryTimestamp()) > 0 {
			promises++
		}
	}
	return promises, len(b.GetVerificationMaterial().GetTimestampVerificationData().GetRfc3161Timestamps())
}

// knowsLogs reports whether the root has the log of any entry; a bundle without an entry
// names none.
func (r *Root) knowsLogs(b *bundle.Bundle) bool {
	entries := b.GetVerificationMaterial().GetTlogEntries()
	logs := r.material.RekorLogs()
	for _, e := range entries {
		if _, ok := logs[hex.EncodeToString(e.GetLogId().GetKeyId())]; ok {
			return true
		}
	}
	return len(entries) == 0
}

// unknown tells a root that is older than the signature from one of another deployment.
func (r *Root) unknown(what string, signed time.Time) Outcome {
	if !r.Fetched.IsZero() && !signed.IsZero() && r.Fetched.Before(signed) {
		return found(trust.VerifyRootStale, "the root "+r.Name+" is older than the signature and does not know its "+what)
	}
	return found(trust.VerifyRootUnknown, "the root "+r.Name+" does not know the "+what+" of the bundle")
}

// claimed is when a bundle says that it was made: good enough to guess why a log is unknown.
func claimed(b *bundle.Bundle, leaf *x509.Certificate) time.Time {
	if leaf != nil {
		return leaf.NotBefore
	}
	for _, e := range b.GetVerificationMaterial().GetTlogEntries() {
		if t := e.GetIntegratedTime(); t > 0 {
			return time.Unix(t, 0)
		}
	}
	return time.Time{}
}

func (in Input) keyless(b *bundle.Bundle, leaf *x509.Certificate) Outcome {
	if len(in.Roots) == 0 {
		if len(in.Broken) > 0 {
			return found(trust.VerifyRootInvalid, "no root can be used")
		}
		return found(trust.VerifyRootUnknown, "there is no root to check it against")
	}
	promises, stamps := times(b)
	if promises+stamps == 0 {
		return found(trust.VerifyNoTime, "the bundle has neither a signed log time nor a timestamp")
	}
	var first Outcome
	told := -1
	var decided []Outcome
	for _, r := range in.Roots {
		// Authorities are what tells roots apart: those that know them all decide. They are
		// several where one file replaces another of the same name.
		missing, signed := r.lacks(b, leaf, promises)
		if missing == "" {
			out := in.under(r, b, leaf)
			if out.Verify == trust.VerifyOK {
				return out
			}
			decided = append(decided, out)
			continue
		}
		out := r.unknown(missing, signed)
		// What to do about it is said of a root that a signer is checked against, and of one that
		// an update helps rather than of another.
		tells := 0
		if in.names(r) {
			tells += 2
		}
		if out.Verify == trust.VerifyRootStale {
			tells++
		}
		if tells > told {
			first, told = out, tells
		}
	}
	for _, out := range decided {
		// Signed well, and not by whom policy allows, says more than a bad signature.
		if out.Verify != trust.VerifySigInvalid {
			return out
		}
	}
	if decided != nil {
		return decided[0]
	}
	if len(in.Broken) > 0 {
		return found(trust.VerifyRootInvalid, first.Detail+"; another root cannot be used")
	}
	return first
}

// names reports whether any signer is checked against a root.
func (in Input) names(r *Root) bool {
	for i := range in.Signers {
		if s := &in.Signers[i]; s.Keyless() && s.RootName() == r.Name && r.visible(s) {
			return true
		}
	}
	return false
}

// lacks names an authority of the bundle that the root does not know and that its profile
// demands, with the time of which the bundle says that it was made, "" if it knows them all. The
// library's answer to a log that it does not know reads like the one to a bad signature.
func (r *Root) lacks(b *bundle.Bundle, leaf *x509.Certificate, promises int) (what string, signed time.Time) {
	switch {
	case !r.knowsCA(leaf):
		return "certificate authority", leaf.NotBefore
	case r.Profile != GitHub && !r.knowsLogs(b):
		return "log", claimed(b, leaf)
	case r.Profile == PublicGood && !r.knowsCertificateLogs(leaf):
		return "log of certificates", leaf.NotBefore
	case (promises == 0 || r.Profile == GitHub) && !r.knowsClocks(b):
		return "timestamp authority", leaf.NotBefore
	}
	return "", time.Time{}
}

// knowsCertificateLogs reports whether the root has any log that promised to take a certificate
// in; one without promises names none.
func (r *Root) knowsCertificateLogs(leaf *x509.Certificate) bool {
	promises, err := x509util.ParseSCTsFromCertificate(leaf.Raw)
	if err != nil || len(promises) == 0 {
		return true
	}
	logs := r.material.CTLogs()
	return slices.ContainsFunc(promises, func(p *ct.SignedCertificateTimestamp) bool {
		return logs[hex.EncodeToString(p.LogID.KeyID[:])] != nil
	})
}

// knowsClocks reports whether the root has the authority of any timestamp; what cannot be read
// names none.
func (r *Root) knowsClocks(b *bundle.Bundle) bool {
	stamps := b.GetVerificationMaterial().GetTimestampVerificationData().GetRfc3161Timestamps()
	for _, s := range stamps {
		stamp, err := timestamp.ParseResponse(s.GetSignedTimestamp())
		if err != nil {
			return true
		}
		token, err := pkcs7.Parse(stamp.RawToken)
		if err != nil {
			return true
		}
		for _, by := range token.Signers {
			if r.knowsClock(by.IssuerAndSerialNumber.IssuerName.FullBytes, by.IssuerAndSerialNumber.SerialNumber) {
				return true
			}
		}
	}
	return len(stamps) == 0
}

// knowsClock looks for the certificate with that issuer and serial number.
func (r *Root) knowsClock(issuer []byte, serial *big.Int) bool {
	for _, t := range r.material.TimestampingAuthorities() {
		a, ok := t.(*root.SigstoreTimestampingAuthority)
		if !ok {
			continue
		}
		if a.Leaf != nil {
			if bytes.Equal(a.Leaf.RawIssuer, issuer) && serial != nil && a.Leaf.SerialNumber.Cmp(serial) == 0 {
				return true
			}
			continue
		}
		for _, c := range append([]*x509.Certificate{a.Root}, a.Intermediates...) {
			if c != nil && bytes.Equal(c.RawSubject, issuer) {
				return true
			}
		}
	}
	return false
}

// summary reads the certificate as the library does.
func summary(leaf *x509.Certificate) (signer.Certificate, error) {
	s, err := certificate.SummarizeCertificate(leaf)
	if err != nil {
		return signer.Certificate{}, err
	}
	return certificateOf(s), nil
}

func certificateOf(s certificate.Summary) signer.Certificate {
	c := signer.Certificate{SAN: s.SubjectAlternativeName, Issuer: s.Issuer, SourceRepository: s.SourceRepositoryURI, SourceRepositoryID: s.SourceRepositoryIdentifier,
		SourceOwnerID: s.SourceRepositoryOwnerIdentifier, RunnerEnvironment: s.RunnerEnvironment, BuildConfig: s.BuildConfigURI}
	if c.SourceRepository == "" && s.GithubWorkflowRepository != "" {
		// Certificates from before 2023 name the repository only so.
		c.SourceRepository = "https://github.com/" + s.GithubWorkflowRepository
	}
	return c
}

func (in Input) under(r *Root, b *bundle.Bundle, leaf *x509.Certificate) Outcome {
	claim, err := summary(leaf)
	if err != nil {
		return found(trust.VerifySigInvalid, err.Error())
	}
	var opts []verify.VerifierOption
	switch r.Profile {
	case PublicGood:
		opts = []verify.VerifierOption{verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	case GitHub:
		opts = []verify.VerifierOption{verify.WithSignedTimestamps(1)}
	default:
		opts = []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	}
	// The library wants an identity. It gets the certificate's own, so that a signature that
	// is good and by somebody else is told from a bad one; who may sign is decided below.
	own, err := verify.NewShortCertificateIdentity(claim.Issuer, "", claim.SAN, "")
	if err != nil {
		return found(trust.VerifySigInvalid, "the certificate has no identity and issuer: "+err.Error())
	}
	result, out := in.prove(r.material, b, opts, verify.WithCertificateIdentity(own))
	if result == nil {
		return out
	}
	if why := r.retired(b); why != "" {
		return found(trust.VerifySigInvalid, why)
	}
	cert := certificateOf(*result.Signature.Certificate)
	out.cert = cert
	e := &trust.Evidence{Identity: cert.SAN, Issuer: cert.Issuer, SourceRepository: cert.SourceRepository, Root: r.Name, RootTime: r.Fetched}
	logged(e, b, result)
	out.Evidence = e
	out.signer, out.Verify, out.Detail = in.who(r, cert, e.SignedAt)
	if out.Verify == trust.VerifyOK {
		e.Signer = out.signer.Name
		in.aged(&out, r)
	}
	return out
}

// aged takes a root back that policy calls too old.
func (in Input) aged(out *Outcome, r *Root) {
	age := in.Now.Sub(r.Fetched)
	if r.Fetched.IsZero() {
		return
	}
	if in.MaxRootAge > 0 && age > in.MaxRootAge {
		out.Verify, out.Detail = trust.VerifyRootStale, fmt.Sprintf("the root %s is %d days old, more than trust.maxRootAge", r.Name, int(age.Hours()/24))
	} else if age > 90*24*time.Hour {
		out.Evidence.Warnings = append(out.Evidence.Warnings, fmt.Sprintf("the root %s is %d days old: %s", r.Name, int(age.Hours()/24), signer.UpdateRoot(r.Name)))
	}
}

// retired reports a log entry from outside the time in which its log was trusted, which the
// library does not look at.
func (r *Root) retired(b *bundle.Bundle) string {
	logs := r.material.RekorLogs()
	for _, e := range b.GetVerificationMaterial().GetTlogEntries() {
		l, ok := logs[hex.EncodeToString(e.GetLogId().GetKeyId())]
		if !ok || e.GetIntegratedTime() == 0 {
			continue
		}
		t := time.Unix(e.GetIntegratedTime(), 0)
		if t.Before(l.ValidityPeriodStart) || !l.ValidityPeriodEnd.IsZero() && t.After(l.ValidityPeriodEnd) {
			return "the log " + l.BaseURL + " was not trusted at the time of the entry"
		}
	}
	return ""
}

// prove lets the library verify everything but who signed. Without a result, the outcome says
// why.
func (in Input) prove(material root.TrustedMaterial, b *bundle.Bundle, opts []verify.VerifierOption, who verify.PolicyOption) (*verify.VerificationResult, Outcome) {
	v, err := verify.NewVerifier(material, append(opts, verify.WithoutStatementPredicate())...)
	if err != nil {
		return nil, found(trust.VerifyFailed, err.Error())
	}
	envelope := b.GetDsseEnvelope()
	statement, why := statementOf(envelope)
	if why != "" {
		return nil, malformed(why)
	}
	algorithm, digest := in.digest(b, statement)
	result, err := v.Verify(b, verify.NewPolicy(in.artifact(b, algorithm, digest), who))
	if err == nil {
		return result, Outcome{Bundle: trust.BundlePresent, Verify: trust.VerifyOK, Statement: statement}
	}
	out := found(trust.VerifySigInvalid, err.Error())
	// Good for something else, or not good at all? Its own digest tells.
	if algorithm, other := ownDigest(b, statement); other != nil && !bytes.Equal(other, digest) {
		if _, err := v.Verify(b, verify.NewPolicy(verify.WithArtifactDigest(algorithm, other), who)); err == nil {
			out = found(trust.VerifyOtherArtifact, "the signature is for "+algorithm+":"+hex.EncodeToString(other))
			out.Statement = statement
		}
	}
	return nil, out
}

// artifact is what the signature has to be about: the digest, and for keys that sign the
// message itself its bytes, where they are at hand.
func (in Input) artifact(b *bundle.Bundle, algorithm string, digest []byte) verify.ArtifactPolicyOption {
	if in.Data != nil && b.GetMessageSignature() != nil {
		return verify.WithArtifact(bytes.NewReader(in.Data))
	}
	return verify.WithArtifactDigest(algorithm, digest)
}

// digest is ours, in the algorithm that the bundle uses.
func (in Input) digest(b *bundle.Bundle, s *Statement) (algorithm string, digest []byte) {
	switch {
	case s != nil && !s.has("sha256") && s.has("sha512"):
		algorithm = "sha512"
	case b.GetMessageSignature().GetMessageDigest().GetAlgorithm() == protocommon.HashAlgorithm_SHA2_384:
		algorithm = "sha384"
	case b.GetMessageSignature().GetMessageDigest().GetAlgorithm() == protocommon.HashAlgorithm_SHA2_512:
		algorithm = "sha512"
	}
	if algorithm != "" && in.Digest != nil {
		return algorithm, in.Digest(algorithm)
	}
	raw, _ := hex.DecodeString(in.SHA256)
	return "sha256", raw
}

func ownDigest(b *bundle.Bundle, s *Statement) (algorithm string, digest []byte) {
	if m := b.GetMessageSignature(); m != nil {
		return "sha256", m.GetMessageDigest().GetDigest()
	}
	if s == nil {
		return "", nil
	}
	for _, algorithm := range []string{"sha256", "sha512"} {
		for _, subject := range s.Subject {
			if raw, err := hex.DecodeString(subject.Digest[algorithm]); err == nil && len(raw) > 0 {
				return algorithm, raw
			}
		}
	}
	return "", nil
}

// logged notes when and where the signature was recorded. The earliest proven time counts.
func logged(e *trust.Evidence, b *bundle.Bundle, result *verify.VerificationResult) {
	for _, t := range result.VerifiedTimestamps {
		if !e.SignedAt.IsZero() && !t.Timestamp.Before(e.SignedAt) {
			continue
		}
		e.SignedAt, e.TimeSource = t.Timestamp.UTC(), "log"
		if t.Type == "TimestampAuthority" {
			e.TimeSource = "tsa"
		}
	}
	if entries := b.GetVerificationMaterial().GetTlogEntries(); len(entries) > 0 {
		e.Logged, e.LogIndex = true, entries[0].GetLogIndex()
	}
}

// who finds the entry that allows this identity.
func (in Input) who(r *Root, cert signer.Certificate, signed time.Time) (*signer.Signer, trust.Verify, string) {
	at := signed
	if at.IsZero() {
		at = in.Now
	}
	if in.Hint.Identity != "" && in.Hint.Identity != cert.SAN || in.Hint.Issuer != "" && in.Hint.Issuer != cert.Issuer {
		return nil, trust.VerifyIdentity, "the document names another signer than " + cert.SAN
	}
	answer, why := trust.VerifyIdentity, cert.SAN+" (issuer "+cert.Issuer+") is not among the allowed signers"
	for i := range in.Signers {
		s := &in.Signers[i]
		if !s.Keyless() || !s.Is(cert) || !s.For(in.vouch(), in.Tool) || !s.During(at) {
			continue
		}
		if s.RootName() != r.Name || !r.visible(s) {
			why = cert.SAN + " was certified under the root " + r.Name + ", which the signer " + s.Name + " is not checked against"
			continue
		}
		switch s.Source(cert, in.Source) {
		case signer.SourceNotPinned:
			answer, why = trust.VerifySourceNotPinned, "any repository can call the workflow "+cert.SAN+": the signer must name sourceRepository"
			continue
		case signer.SourceOther:
			if answer == trust.VerifyIdentity {
				why = "the build was for " + cert.SourceRepository + ", which the signer " + s.Name + " does not allow"
			}
			continue
		}
		if !in.permitted(func(f *signer.Signer) bool {
			return f.Is(cert) && f.Source(cert, in.Source) == signer.SourceOK && f.During(at)
		}) {
			why = "a policy that tightens does not list " + cert.SAN
			continue
		}
		if in.revoked(signed, cert.SAN, s.Name) {
			return s, trust.VerifySignerRevoked, cert.SAN + " is revoked"
		}
		return s, trust.VerifyOK, ""
	}
	return nil, answer, why
}

func (in Input) vouch() string {
	if in.Kind == "metadata" {
		return signer.Metadata
	}
	return signer.Binary
}

func (in Input) permitted(ok func(*signer.Signer) bool) bool { return signer.Permitted(in.Filters, ok) }

func (in Input) revoked(signed time.Time, names ...string) bool {
	return slices.ContainsFunc(in.Revoked, func(v signer.Revocation) bool { return v.Hits(signed, names...) })
}

// keyed verifies a bundle that names a key: by a hint, which says nothing by itself.
func (in Input) keyed(b *bundle.Bundle, hint string) Outcome {
	var worst *Outcome
	note := func(out Outcome) {
		if worst == nil || out.Verify == trust.VerifySigInvalid || out.Verify == trust.VerifyOtherArtifact {
			worst = &out
		}
	}
	for i := range in.Signers {
		s := &in.Signers[i]
		if s.Type != signer.Cosign || len(s.Material) == 0 {
			continue
		}
		key, id, err := PublicKey(s.Material)
		if err != nil {
			note(found(trust.VerifyNoKey, "the key of "+s.Name+" cannot be read: "+err.Error()))
			continue
		}
		out := in.byKey(b, s, key)
		switch {
		case out.Verify == trust.VerifyOK:
			return in.keyHolder(out, s, id)
		case out.Bundle == trust.BundleUnreadable:
			return out
		case hint == "" || hint == id || hint == s.KeyID || out.Verify != trust.VerifySigInvalid:
			note(out)
		}
	}
	if worst != nil {
		return *worst
	}
	return found(trust.VerifyNoKey, "no allowed signer has the key "+hint)
}

func (in Input) keyHolder(out Outcome, s *signer.Signer, id string) Outcome {
	e := out.Evidence
	at := e.SignedAt
	if at.IsZero() {
		at = in.Now
	}
	refuse := func(v trust.Verify, why string) Outcome {
		out.Verify, out.Detail = v, why
		return out
	}
	switch {
	case in.Hint.Identity != "" && in.Hint.Identity != s.KeyID && in.Hint.Identity != id:
		return refuse(trust.VerifyIdentity, "the document names another signer than the key "+id)
	case !s.For(in.vouch(), in.Tool) || !s.During(at):
		return refuse(trust.VerifyIdentity, "the signer "+s.Name+" may not sign this")
	case in.revoked(e.SignedAt, id, s.KeyID, s.Name):
		return refuse(trust.VerifySignerRevoked, "the key "+id+" is revoked")
	case !in.permitted(func(f *signer.Signer) bool {
		_, other, err := PublicKey(f.Material)
		return err == nil && other == id || f.KeyID != "" && f.KeyID == s.KeyID
	}):
		return refuse(trust.VerifyIdentity, "a policy that tightens does not list the key "+id)
	}
	e.Signer, e.Identity = s.Name, id
	out.signer = s
	return out
}

// byKey verifies with one key, whatever the bundle calls it.
func (in Input) byKey(b *bundle.Bundle, s *signer.Signer, key crypto.PublicKey) Outcome {
	opts := []signature.LoadOption{}
	if b.GetMessageSignature() != nil && in.Data == nil {
		opts = append(opts, options.WithED25519ph())
	}
	verifier, err := signature.LoadDefaultVerifier(key, opts...)
	if err != nil {
		return found(trust.VerifyNoKey, "the key of "+s.Name+" is of a kind that is not read: "+err.Error())
	}
	holder := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, s.NotBefore, s.NotAfter), nil
	})
	if !s.Logged() {
		result, out := in.prove(holder, b, []verify.VerifierOption{verify.WithNoObserverTimestamps()}, verify.WithKey())
		if result != nil {
			out.Evidence = &trust.Evidence{}
		}
		return out
	}
	if in.Broken[s.RootName()] {
		return found(trust.VerifyRootInvalid, "the root "+s.RootName()+" cannot be used")
	}
	for _, r := range in.Roots {
		if r.Name != s.RootName() || !r.visible(s) {
			continue
		}
		if len(b.GetVerificationMaterial().GetTlogEntries()) == 0 {
			return found(trust.VerifyNoTime, "the signer "+s.Name+" must be logged, and the bundle has no log entry")
		}
		if !r.knowsLogs(b) {
			return r.unknown("log", claimed(b, nil))
		}
		if p, stamps := times(b); p+stamps == 0 {
			return found(trust.VerifyNoTime, "the bundle has neither a signed log time nor a timestamp")
		}
		result, out := in.prove(root.TrustedMaterialCollection{holder, r.material}, b,
			[]verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}, verify.WithKey())
		if result == nil {
			return out
		}
		if why := r.retired(b); why != "" {
			return found(trust.VerifySigInvalid, why)
		}
		out.Evidence = &trust.Evidence{Root: r.Name, RootTime: r.Fetched}
		logged(out.Evidence, b, result)
		in.aged(&out, r)
		return out
	}
	return found(trust.VerifyRootUnknown, "there is no root "+s.RootName()+" to check the log against")
}

// PublicKey reads a PEM public key and names it as a bundle's hint does: the base64 of the
// SHA-256 of its DER form.
func PublicKey(raw []byte) (key crypto.PublicKey, id string, err error) {
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, "", errors.New("it is not one PEM block PUBLIC KEY")
	}
	if key, err = cryptoutils.UnmarshalPEMToPublicKey(raw); err != nil {
		return nil, "", err
	}
	id, err = keyID(key)
	return key, id, err
}

func keyID(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}

func keyName(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

func sortAuthorities(list []Authority) {
	slices.SortFunc(list, func(a, b Authority) int {
		return strings.Compare(a.Kind+a.Start.Format(time.RFC3339)+a.Key, b.Kind+b.Start.Format(time.RFC3339)+b.Key)
	})
}

// visible reports whether an entry is checked against this file of a root.
func (r *Root) visible(s *signer.Signer) bool {
	if s.Managed {
		return r.Managed
	}
	return !r.Shadowed
}

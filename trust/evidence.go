package trust

import "time"

// Evidence is what a verifier has proven about a subject. Nothing in it is taken from the
// judged document's own words.
type Evidence struct {
	Signer           string    `json:"signer,omitempty"` // entry of local policy that allows it
	Identity         string    `json:"identity,omitempty"`
	Issuer           string    `json:"issuer,omitempty"`
	SourceRepository string    `json:"sourceRepository,omitempty"`
	Builder          string    `json:"builder,omitempty"`
	SLSALevel        int       `json:"slsaLevel,omitempty"` // computed, 0 to 3
	PredicateType    string    `json:"predicateType,omitempty"`
	SignedAt         time.Time `json:"signedAt,omitzero"`
	TimeSource       string    `json:"timeSource,omitempty"` // log, tsa, signature (stated by the signer)
	LogIndex         int64     `json:"logIndex,omitempty"`
	Logged           bool      `json:"logged"`
	Root             string    `json:"root,omitempty"`
	RootTime         time.Time `json:"rootTime,omitzero"` // when the root was fetched
	BundleSHA256     string    `json:"bundleSha256,omitempty"`
	Package          string    `json:"package,omitempty"` // of the distribution, if its database owns the file
	Warnings         []string  `json:"warnings,omitempty"`
}

// Settled is what is known of a subject's signature, provenance and history: from the
// verdict cache or from the verifier. The zero value is a subject without any evidence.
type Settled struct {
	Checksum    Checksum   `json:"checksum,omitempty"`
	SigType     SigType    `json:"sigType,omitempty"`
	SigConflict bool       `json:"sigConflict,omitempty"`
	Expected    bool       `json:"expected,omitempty"`
	Bundle      Bundle     `json:"bundle,omitempty"`
	Verify      Verify     `json:"verify,omitempty"`
	Provenance  Provenance `json:"provenance,omitempty"`
	SLSA        int        `json:"slsa,omitempty"`
	Offline     bool       `json:"offline,omitempty"`

	Changed     bool   `json:"changed,omitempty"`
	KnownDigest bool   `json:"knownDigest,omitempty"`
	Distro      Distro `json:"distro,omitempty"`
	// SignerLock says that a lock names another signer or builder than was found.
	SignerLock bool `json:"signerLock,omitempty"`

	Evidence *Evidence `json:"evidence,omitempty"`
}

// Facts adds what is settled to what the file itself shows. A mismatch on either side
// stays one.
func (s Settled) Facts(f Facts) Facts {
	if f.Checksum == ChecksumAbsent || s.Checksum == ChecksumMismatch {
		f.Checksum = s.Checksum
	}
	f.SigType, f.SigConflict, f.Expected, f.Bundle, f.Verify = s.SigType, s.SigConflict, s.Expected, s.Bundle, s.Verify
	f.Provenance, f.SLSA, f.Offline = s.Provenance, s.SLSA, s.Offline
	f.Changed, f.KnownDigest, f.Distro = s.Changed, s.KnownDigest, s.Distro
	f.LockMismatch = f.LockMismatch || s.SignerLock
	return f
}

// JudgeMetadata decides about a document by what is settled of it.
func JudgeMetadata(s Settled, p Policy) Verdict {
	v := Decide(s.Facts(Facts{Subject: Metadata}), p)
	v.Evidence = s.Evidence
	return v
}

// Proven reports whether a signature by an allowed signer was verified, whatever a missing
// provenance makes of it.
func (s Settled) Proven() bool {
	return s.Bundle == BundlePresent && s.Verify == VerifyOK && (s.Provenance == ProvenanceAbsent || s.Provenance == ProvenanceOK)
}

// NextStep is one command or change that would raise a verdict, "" where nothing is
// missing. The file is the one judged.
func (v Verdict) NextStep(file string) string {
	switch v.Reason {
	case "no_signature", "bundle_missing", "bundle_missing_offline", "bundle_incomplete", "downgrade":
		return "get the signature bundle of its publisher, then: atip verify --bundle FILE.sigstore.json " + file
	case "signer_not_allowed", "no_key_in_policy", "source_not_pinned":
		return "if you know the signer, allow it at a terminal: atip trust add-signer NAME --from-bundle FILE.sigstore.json"
	case "trust_root_stale", "trust_root_unknown":
		return "atip trust update"
	case "trust_root_invalid":
		return "atip trust status"
	case "verifier_missing":
		return "install atip-verify beside atip-exec"
	case "verifier_failed":
		return "atip verify " + file
	case "provenance_required", "provenance_unavailable", "provenance_unavailable_offline":
		return "get the provenance of its build, then: atip verify --provenance FILE.intoto.jsonl " + file
	case "changed_since_verified", "distro_db_mismatch", "hash_mismatch":
		return "install the file again from where it came from"
	}
	return ""
}

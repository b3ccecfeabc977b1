package trust

// Facts are what is known about a subject. In every enumeration the zero value
// means that nothing was found and nothing was checked, which never helps.
type Facts struct {
	Subject Subject

	Revoked     bool
	Checksum    Checksum // tool: what documents, pins and distribution chains say; metadata: its binary.hash
	Unreadable  bool     // no digest could be taken
	SigType     SigType
	SigConflict bool // two signature blocks of one document disagree
	Expected    bool // somebody is known to sign this subject
	Bundle      Bundle
	Verify      Verify
	Provenance  Provenance
	SLSA        int // the computed level of the provenance
	Offline     bool

	// Tool only.
	Changed      bool // other bytes stood at this place when it was last verified
	LockMismatch bool
	Pinned       bool
	KnownDigest  bool
	Distro       Distro
	SystemPath   bool
	OwnPath      bool
	Caps         []string
}

// Checksum compares a digest somebody stated with the bytes.
type Checksum uint8

// Checksum outcomes.
const (
	ChecksumAbsent Checksum = iota
	ChecksumMatch
	ChecksumMismatch
	ChecksumUnknown // of an algorithm that is not read: nothing is VERIFIED against it
)

// SigType is the kind of signature a document declares.
type SigType uint8

// Signature kinds.
const (
	SigNone SigType = iota
	SigCosign
	SigGPG
	SigMinisign
	SigSums
	SigUnknown
)

// Bundle says whether the signature's bytes are on this machine.
type Bundle uint8

// Bundle states.
const (
	BundleAbsent Bundle = iota
	BundlePresent
	BundleUnreadable // malformed, over a limit, an unknown version or field
	BundleIncomplete // a bare DSSE line: no certificate, no log entry
)

// Verify is what the verifier said.
type Verify uint8

// Verifier outcomes. The zero value is a verifier that was not asked.
const (
	VerifyMissing Verify = iota
	VerifyFailed         // it crashed, was late or is another version
	VerifyOK
	VerifySigInvalid
	VerifyOtherArtifact
	VerifyIdentity // valid, but not by whom the policy allows
	VerifySourceNotPinned
	VerifySignerRevoked
	VerifyNoTime
	VerifyRootUnknown
	VerifyRootStale
	VerifyRootInvalid
	VerifyNoKey
)

// Provenance is what is known of how the subject was built.
type Provenance uint8

// Provenance outcomes.
const (
	ProvenanceAbsent Provenance = iota
	ProvenanceUnavailable
	ProvenanceInvalid
	ProvenanceSubjectMismatch
	ProvenanceBuilderDenied
	ProvenanceSourceMismatch
	ProvenanceOK
)

// Distro is the answer of the distribution's package database.
type Distro uint8

// Distro answers.
const (
	DistroUnknown Distro = iota
	DistroMatch
	DistroMismatch
)

// Override replaces the action "confirm" of a level. The zero value leaves it.
type Override uint8

// Overrides.
const (
	OverrideUnset Override = iota
	OverrideDeny
	OverrideConfirm
	OverrideAllow
)

func (o Override) apply(a Action) Action {
	if a != Confirm {
		return a
	}
	switch o {
	case OverrideDeny:
		return Deny
	case OverrideAllow:
		return Allow
	}
	return a
}

// Policy is what Decide needs of the "trust" object of a policy. Its zero value
// requires no signature and allows nothing more for it.
type Policy struct {
	RequireTool      bool
	RequireMetadata  bool
	MinimumSLSALevel int
	Pins             map[string][]string // name or path: sha256 hex digests
	Revoked          []string            // sha256 hex digests
	Locked           map[string]string   // name: sha256 hex digest of the user's lock, which vouches
	LockedByProject  map[string]string   // of a project's lock, which only asks
	OnUnsigned       Override
	OnUnverified     Override
}

func (p Policy) required(s Subject) bool {
	if s == Metadata {
		return p.RequireMetadata
	}
	return p.RequireTool
}

// OverrideByName reads the names used in policies; anything else, also "", leaves
// the action alone.
func OverrideByName(name string) Override {
	switch name {
	case "deny":
		return OverrideDeny
	case "confirm":
		return OverrideConfirm
	case "allow":
		return OverrideAllow
	}
	return OverrideUnset
}

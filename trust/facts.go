package trust

import (
	"slices"
	"time"
)

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

// Form is what the kernel will do with a file, told from its first bytes.
type Form uint8

// Forms of executables. The zero value is a file nobody has looked at.
const (
	FormUnknown Form = iota
	FormELF
	FormMachO
	FormPE
	FormAppImage
	FormScript     // "#!"
	FormForeign    // no magic we know, but binfmt_misc runs it
	FormUnreadable // execute permission only
	formCount
)

// String returns the name used in plans and records.
func (f Form) String() string {
	if f >= formCount {
		f = FormUnknown
	}
	return [...]string{"unknown", "elf", "mach-o", "pe", "appimage", "script", "foreign", "unreadable"}[f]
}

// MarshalText implements encoding.TextMarshaler.
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Class says what keeps the content of a file from changing between hashing and
// starting it. The zero value is the file nothing holds.
type Class uint8

// Classes in ascending order of safety.
const (
	ClassLoose  Class = iota // other owner, or a file system without leases: hashed every time
	ClassLeased              // we hold a read lease: a writer waits or gets EAGAIN
	ClassFixed               // only root can write, and we are not root
)

// String returns the name used in plans and records.
func (c Class) String() string {
	switch c {
	case ClassLeased:
		return "leased"
	case ClassFixed:
		return "fixed"
	}
	return "loose"
}

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Roles of the parts of a chain.
const (
	RoleFile        = "file"
	RoleScript      = "script"
	RoleInterpreter = "interpreter"
	RoleProgram     = "program"  // what "env NAME" in a "#!" line finds in PATH
	RoleTarget      = "target"   // what a version-manager shim will start
	RoleArgument    = "argument" // a file that an interpreter was told to run
)

// Caps: reasons why an executable can never count as verified, whatever
// signature it carries.
const (
	CapMutableFile       = "mutable_file"
	CapMutablePath       = "mutable_path"
	CapCodeArgument      = "executes_code_argument"
	CapIndirectStart     = "indirect_start"
	CapFetchesCode       = "fetches_code"
	CapManagerShim       = "version_manager_shim"
	CapLauncherImage     = "launcher_image"
	CapForeignFormat     = "foreign_format"
	CapLoaderEnvironment = "loader_environment"
	CapUnresolvedProgram = "unresolved_program" // "#!/usr/bin/env NAME" with no NAME in PATH
)

// Part is one file of the chain that will run.
type Part struct {
	Role       string `json:"role"`
	Path       string `json:"path"`             // canonical
	Digest     string `json:"sha256,omitempty"` // hex; empty if it could not be read
	Form       Form   `json:"form"`
	Class      Class  `json:"class"`
	SystemPath bool   `json:"system_path,omitempty"`
	OwnPath    bool   `json:"own_path,omitempty"` // no run writes there, and only root and this user can
	Swappable  bool   `json:"swappable,omitempty"`
}

// Identity is what an executable file is. All of it was read from one open
// descriptor, never by name twice.
type Identity struct {
	Word      string `json:"word"`
	Argv0     string `json:"argv0"`
	Found     string `json:"found"`            // the path the word led to, links unresolved
	Canonical string `json:"canonical"`        // the path of the descriptor, all links resolved
	Place     string `json:"place"`            // resolved directory and the name as found: stable over versioned link targets
	Digest    string `json:"sha256,omitempty"` // hex; empty for an unreadable file
	Size      int64  `json:"size"`
	Dev       uint64 `json:"dev"`
	Ino       uint64 `json:"ino"`
	Form      Form   `json:"form"`
	Class     Class  `json:"class"`
	// Chain has the file first, then what its "#!" line starts.
	Chain      []Part   `json:"chain"`
	Caps       []string `json:"caps,omitempty"`
	Swappable  bool     `json:"swappable,omitempty"`
	SystemPath bool     `json:"system_path,omitempty"`
	// Effective is the base name of the canonical path, Invoked that of the word.
	Effective string `json:"effective"`
	Invoked   string `json:"invoked"`
	// Manager is the version manager whose shim this is, ManagerTarget the
	// program the shim will start, if that could be told without running it.
	Manager       string `json:"manager,omitempty"`
	ManagerTarget string `json:"manager_target,omitempty"`
	// SkippedPath lists PATH entries that were passed over because they are
	// empty or relative: they mean another directory for every cwd.
	SkippedPath []string `json:"skipped_path,omitempty"`
	CacheHit    bool     `json:"cache_hit"` // every digest of the chain came from the cache
}

// HasCap reports whether the identity carries the cap.
func (id Identity) HasCap(name string) bool {
	return slices.Contains(id.Caps, name)
}

// Target returns the part a version-manager shim will start.
func (id Identity) Target() (Part, bool) {
	for _, p := range id.Chain {
		if p.Role == RoleTarget {
			return p, true
		}
	}
	return Part{}, false
}

package trust

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Decide is the pure decision: the same facts and policy always give the same
// verdict. Offline changes reasons, never level or action.
func Decide(f Facts, p Policy) Verdict {
	required := p.required(f.Subject)
	v := signature(f, min(max(p.MinimumSLSALevel, 0), 3)) // there is no level 4 in SLSA 1.0
	v.Subject = f.Subject
	if required && v.Action == Confirm && v.Reason != reasonProvenanceUnavailable && v.Reason != reasonProvenanceOffline {
		v.Action = Deny
	}
	if f.Subject == Tool {
		v = tool(v, f, required)
	}
	override := OverrideUnset
	switch v.Level {
	case Unsigned:
		override = p.OnUnsigned
	case Unverified:
		override = p.OnUnverified
	}
	// A preference about unsigned tools speaks neither against a demand for
	// signatures nor for a file that the user's own lock contradicts.
	if override == OverrideAllow && (required || v.Reason == reasonLockMismatch) {
		override = OverrideUnset
	}
	v.Action = override.apply(v.Action)
	return v
}

const (
	reasonProvenanceUnavailable = "provenance_unavailable"
	reasonProvenanceOffline     = "provenance_unavailable_offline"
	reasonLockMismatch          = "lock_mismatch"
)

// Stages at which a row decides.
const (
	stagePolicy     = "policy"
	stageArtifact   = "artifact"
	stageBundle     = "bundle"
	stageRoot       = "root"
	stageVerify     = "verify"
	stageProvenance = "provenance"
)

// signature is the table; the first row that applies decides.
func signature(f Facts, minimum int) Verdict {
	row := func(level Level, action Action, stage, reason string) Verdict {
		return Verdict{Level: level, Action: action, Stage: stage, Reason: reason}
	}
	switch {
	case f.Revoked:
		return row(Compromised, Deny, stagePolicy, "revoked")
	case f.Checksum == ChecksumMismatch:
		return row(Compromised, Deny, stageArtifact, "hash_mismatch")
	case f.SigConflict:
		return row(Unsigned, Deny, stageBundle, "signature_conflict")
	case f.SigType == SigNone && f.Expected:
		return row(Unsigned, Deny, stagePolicy, "downgrade")
	case f.SigType == SigNone && f.Unreadable:
		return row(Unsigned, Confirm, stageArtifact, "unreadable")
	case f.SigType == SigNone:
		return row(Unsigned, Confirm, stageBundle, "no_signature")
	case f.SigType >= SigUnknown:
		return row(Unverified, Confirm, stageBundle, "signature_type_unsupported")
	}
	switch f.Bundle {
	case BundlePresent:
	case BundleIncomplete:
		return row(Unverified, Confirm, stageBundle, "bundle_incomplete")
	case BundleAbsent:
		return row(Unverified, Confirm, stageBundle, offline("bundle_missing", f.Offline))
	default:
		return row(Unsigned, Deny, stageBundle, "bundle_malformed")
	}
	switch f.Verify {
	case VerifyOK:
		return provenance(f, minimum)
	case VerifySigInvalid:
		return row(Unsigned, Deny, stageVerify, "signature_invalid")
	case VerifyOtherArtifact:
		return row(Unsigned, Deny, stageArtifact, "signature_for_other_artifact")
	case VerifyIdentity:
		return row(Unsigned, Deny, stagePolicy, "signer_not_allowed")
	case VerifySourceNotPinned:
		return row(Unsigned, Deny, stagePolicy, "source_not_pinned")
	case VerifySignerRevoked:
		return row(Unsigned, Deny, stagePolicy, "signer_revoked")
	case VerifyNoTime:
		return row(Unsigned, Deny, stageVerify, "no_trusted_time")
	case VerifyRootUnknown:
		return row(Unverified, Confirm, stageRoot, "trust_root_unknown")
	case VerifyRootStale:
		return row(Unverified, Confirm, stageRoot, "trust_root_stale")
	case VerifyRootInvalid:
		return row(Unverified, Confirm, stageRoot, "trust_root_invalid")
	case VerifyNoKey:
		return row(Unverified, Confirm, stageRoot, "no_key_in_policy")
	case VerifyFailed:
		return row(Unverified, Confirm, stageVerify, "verifier_failed")
	}
	return row(Unverified, Confirm, stageVerify, "verifier_missing")
}

// provenance decides once the signature is good.
func provenance(f Facts, minimum int) Verdict {
	row := func(level Level, action Action, reason string) Verdict {
		return Verdict{Level: level, Action: action, Stage: stageProvenance, Reason: reason}
	}
	switch f.Provenance {
	case ProvenanceAbsent:
		if minimum > 0 {
			return row(ProvenanceFail, Deny, "provenance_required")
		}
		return Verdict{Level: Verified, Action: Allow, Stage: stageVerify, Reason: "signature"}
	case ProvenanceUnavailable:
		reason := offline(reasonProvenanceUnavailable, f.Offline)
		if minimum > 0 {
			return row(ProvenanceFail, Deny, reason)
		}
		return row(Unverified, Confirm, reason)
	case ProvenanceSubjectMismatch:
		return row(ProvenanceFail, Deny, "provenance_subject_mismatch")
	case ProvenanceBuilderDenied:
		return row(ProvenanceFail, Deny, "provenance_builder_denied")
	case ProvenanceSourceMismatch:
		return row(ProvenanceFail, Deny, "provenance_source_mismatch")
	case ProvenanceOK:
		if f.SLSA < minimum {
			return row(ProvenanceFail, Deny, "slsa_level_below_minimum")
		}
		return row(Verified, Allow, "signature+provenance")
	}
	return row(ProvenanceFail, Deny, "provenance_invalid")
}

func offline(reason string, is bool) string {
	if is {
		return reason + "_offline"
	}
	return reason
}

// tool adds what is known of executables without a signature.
func tool(v Verdict, f Facts, required bool) Verdict {
	v.Caps = f.Caps
	if f.Changed && v.Level != Verified && v.Level != Compromised {
		v.Action, v.Reason, v.Stage = Deny, "changed_since_verified", stageArtifact
	}
	switch {
	case v.Action == Deny:
	case f.Distro == DistroMismatch:
		v.Action, v.Reason, v.Stage = Deny, "distro_db_mismatch", stageArtifact
	case f.LockMismatch:
		v.Action, v.Reason, v.Stage = Confirm, reasonLockMismatch, stagePolicy
		if required && v.Level != Verified {
			v.Action = Deny
		}
	case v.Action == Confirm && !required:
		if reason := vouched(f); reason != "" {
			v.Action, v.Reason, v.Stage = Allow, reason, stagePolicy
		}
	}
	if len(f.Caps) > 0 {
		v = v.capped(f.Caps[0], required)
	}
	return v
}

// capped is v of an executable that can never count as verified.
func (v Verdict) capped(why string, required bool) Verdict {
	if v.Level == Verified {
		v.Level, v.Reason = Unverified, why
		if required {
			v.Action = Deny
		}
	}
	return v
}

// Limited is the verdict on an executable of which its command line tells that it runs what no
// signature of it covers: one of the caps.
func (v Verdict) Limited(why string, p Policy) Verdict {
	v.Caps = append(v.Caps[:len(v.Caps):len(v.Caps)], why)
	return v.capped(why, p.RequireTool)
}

// vouched names what stands in for a signature. None of them raises the level.
func vouched(f Facts) string {
	switch {
	case f.Pinned:
		return "pinned"
	case f.KnownDigest:
		return "known_digest"
	case f.Distro == DistroMatch:
		return "distro_db_match"
	case f.SystemPath:
		return "system_path"
	case f.OwnPath:
		return "own_path"
	}
	return ""
}

// Judge decides about every part of the chain and returns the weakest level with
// the strictest action. settled is what is known of the parts' signatures, in the order
// of the chain; parts without an entry have none.
func Judge(id Identity, p Policy, settled ...Settled) Verdict {
	verdicts := make([]Verdict, 0, len(id.Chain))
	for i, part := range id.Chain {
		var s Settled
		if i < len(settled) {
			s = settled[i]
		}
		v := Decide(evaluatePart(id, i, p, s), p)
		v.Part, v.Evidence = part.Path, s.Evidence
		verdicts = append(verdicts, v)
	}
	v := Combine(verdicts...)
	v.Caps = id.Caps
	return v
}

// WithArgument adds the last part of the chain, a file that the program was told to run. Nobody signs
// those, so that it counts only if it is condemned: revoked, or other bytes than a pin or a lock says.
func (v Verdict) WithArgument(id Identity, p Policy) Verdict {
	last := len(id.Chain) - 1
	f := evaluatePart(id, last, p, Settled{})
	if !f.Revoked && !f.LockMismatch && f.Checksum != ChecksumMismatch {
		return v
	}
	w := Decide(f, p)
	w.Part = id.Chain[last].Path
	return Combine(v, w)
}

func evaluatePart(id Identity, i int, p Policy, s Settled) Facts {
	part := id.Chain[i]
	f := s.Facts(Facts{Unreadable: part.Digest == "", SystemPath: part.SystemPath, OwnPath: part.OwnPath})
	if i == 0 {
		f.Caps = id.Caps
	}
	if part.Digest != "" && contains(p.Revoked, part.Digest) {
		f.Revoked = true
	}
	// All shims of a version manager have equal bytes: the tool's name belongs to
	// the program behind the shim, if that is known.
	_, behind := id.Target()
	names := []string{part.Path}
	switch {
	case i == 0 && behind:
		names = append(names, id.Place)
	case i == 0:
		names = append(names, id.Place, id.Invoked, id.Effective)
	case part.Role == RoleTarget:
		names = append(names, id.Invoked, filepath.Base(part.Path))
	default:
		names = append(names, filepath.Base(part.Path))
	}
	// A pinned name with other bytes is a mismatch wherever it was found; several
	// pins on one file must all hold.
	for _, name := range names {
		digests, ok := p.Pins[name]
		if !ok {
			continue
		}
		if part.Digest == "" || !contains(digests, part.Digest) {
			f.Checksum, f.Pinned = ChecksumMismatch, false
			return f
		}
		f.Pinned = true
	}
	for _, name := range names {
		if digest, ok := p.Locked[name]; ok {
			if part.Digest == "" || digest != part.Digest {
				f.LockMismatch = true
			} else {
				f.Pinned = true
			}
		}
		if digest, ok := p.LockedByProject[name]; ok && digest != part.Digest {
			f.LockMismatch = true
		}
	}
	return f
}

// contains compares digests: hex in any case, with or without "sha256:".
func contains(digests []string, hex string) bool {
	for _, d := range digests {
		d, _ = strings.CutPrefix(d, "sha256:")
		if strings.EqualFold(d, hex) {
			return true
		}
	}
	return false
}

// Level is how far a subject is believed: the five levels of ATIP 0.6. Their
// numbers are not their order; use Weaker.
type Level uint8

// Levels. The zero value is the worst.
const (
	Compromised Level = iota
	Unsigned
	Unverified
	ProvenanceFail
	Verified
)

// String returns the name of the protocol.
func (l Level) String() string {
	return [...]string{"COMPROMISED", "UNSIGNED", "UNVERIFIED", "PROVENANCE_FAIL", "VERIFIED"}[l]
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// rank orders levels: failed provenance is worse than none at all.
func (l Level) rank() int {
	return [...]int{Compromised: 0, ProvenanceFail: 1, Unsigned: 2, Unverified: 3, Verified: 4}[l]
}

// Weaker reports whether l is believed less than other.
func (l Level) Weaker(other Level) bool { return l.rank() < other.rank() }

// Action is what a verdict asks for. The zero value denies.
type Action uint8

// Actions from the strictest to the loosest. Confirm means: ask if the call has,
// or may have, an effect beyond reading that this run's sandbox does not prevent.
const (
	Deny Action = iota
	Confirm
	Allow
)

// String returns the name used in policies and records.
func (a Action) String() string { return [...]string{"deny", "confirm", "allow"}[a] }

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Subject is what a verdict is about.
type Subject uint8

// Subjects: the bytes that run, and the document about them.
const (
	Tool Subject = iota
	Metadata
)

// String returns the name used in plans and records.
func (s Subject) String() string {
	if s == Metadata {
		return "metadata"
	}
	return "tool"
}

// MarshalText implements encoding.TextMarshaler.
func (s Subject) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Verdict is the answer about one subject.
type Verdict struct {
	Subject Subject `json:"subject"`
	Level   Level   `json:"level"`
	Reason  string  `json:"reason"`
	// Stage is where it was decided: policy, artifact, bundle, root, verify or
	// provenance.
	Stage  string   `json:"stage,omitempty"`
	Action Action   `json:"action"`
	Caps   []string `json:"caps,omitempty"`
	Part   string   `json:"part,omitempty"` // path of the chain part that set the action
	// Evidence is what was proven; nil if nothing was looked at.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Combine judges a chain: its weakest level, its strictest action, and the reason
// of the first part that set the action. Without verdicts it denies.
func Combine(verdicts ...Verdict) Verdict {
	if len(verdicts) == 0 {
		return Verdict{Reason: "nothing_judged"}
	}
	out := verdicts[0]
	for _, v := range verdicts[1:] {
		level := out.Level
		if v.Level.Weaker(level) {
			level = v.Level
		}
		if v.Action < out.Action {
			caps := out.Caps
			out = v
			out.Caps = caps
		}
		out.Level = level
	}
	return out
}

// Err returns the refusal of a verdict that denies, nil otherwise.
func (v Verdict) Err(id Identity) error {
	if v.Action != Deny {
		return nil
	}
	return &errcode.Error{Code: errcode.NotTrusted, Msg: "executable \"" + id.Place + "\" is not trusted: " + v.Level.String() + " (" + v.Reason + ")",
		Details: map[string]any{"level": v.Level.String(), "reason": v.Reason, "subject": v.Subject.String(), "digest": id.Digest, "place": id.Place, "part": v.Part}}
}

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
func (c Class) String() string { return [...]string{"loose", "leased", "fixed"}[c] }

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

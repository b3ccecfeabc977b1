package trust

import (
	"path/filepath"
	"strings"

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
	switch l {
	case Unsigned:
		return "UNSIGNED"
	case Unverified:
		return "UNVERIFIED"
	case ProvenanceFail:
		return "PROVENANCE_FAIL"
	case Verified:
		return "VERIFIED"
	}
	return "COMPROMISED"
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// rank orders levels: failed provenance is worse than none at all.
func (l Level) rank() int {
	switch l {
	case ProvenanceFail:
		return 1
	case Unsigned:
		return 2
	case Unverified:
		return 3
	case Verified:
		return 4
	}
	return 0
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
func (a Action) String() string {
	switch a {
	case Confirm:
		return "confirm"
	case Allow:
		return "allow"
	}
	return "deny"
}

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

// DeniedError says that trust alone refuses a run.
type DeniedError struct {
	Verdict Verdict
	Place   string
	Digest  string
}

// Err returns the refusal of a verdict that denies, nil otherwise.
func (v Verdict) Err(id Identity) error {
	if v.Action != Deny {
		return nil
	}
	return &DeniedError{Verdict: v, Place: id.Place, Digest: id.Digest}
}

func (e *DeniedError) Error() string {
	return "executable \"" + e.Place + "\" is not trusted: " + e.Verdict.Level.String() + " (" + e.Verdict.Reason + ")"
}

// FaultCode implements fault.Coded.
func (e *DeniedError) FaultCode() string { return errcode.NotTrusted }

// FaultDetails implements fault.Coded.
func (e *DeniedError) FaultDetails() map[string]any {
	return map[string]any{"level": e.Verdict.Level.String(), "reason": e.Verdict.Reason, "subject": e.Verdict.Subject.String(),
		"digest": e.Digest, "place": e.Place, "part": e.Verdict.Part}
}

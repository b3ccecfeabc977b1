package trust

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

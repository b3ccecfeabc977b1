package trust

import (
	"strings"
	"testing"
)

func TestDecideRows(t *testing.T) {
	signed := Facts{SigType: SigCosign, Bundle: BundlePresent, Verify: VerifyOK}
	with := func(f Facts, edit func(*Facts)) Facts { edit(&f); return f }
	verify := func(v Verify) Facts { return with(signed, func(f *Facts) { f.Verify = v }) }
	prov := func(p Provenance, slsa int) Facts {
		return with(signed, func(f *Facts) { f.Provenance, f.SLSA = p, slsa })
	}
	require := Policy{RequireTool: true}
	slsa := func(m int) Policy { return Policy{MinimumSLSALevel: m} }
	for _, row := range []struct {
		name   string
		facts  Facts
		policy Policy
		level  Level
		action Action
		reason string
	}{
		{"0", Facts{Revoked: true, Pinned: true, SystemPath: true}, Policy{OnUnsigned: OverrideAllow}, Compromised, Deny, "revoked"},
		{"1", Facts{Checksum: ChecksumMismatch, Pinned: true}, Policy{}, Compromised, Deny, "hash_mismatch"},
		{"1 before a good signature", with(signed, func(f *Facts) { f.Checksum = ChecksumMismatch }), Policy{}, Compromised, Deny, "hash_mismatch"},
		{"matching checksum raises nothing", Facts{Checksum: ChecksumMatch}, Policy{}, Unsigned, Confirm, "no_signature"},
		{"2", Facts{SigConflict: true, SigType: SigCosign}, Policy{}, Unsigned, Deny, "signature_conflict"},
		{"3", Facts{Expected: true, SystemPath: true}, Policy{}, Unsigned, Deny, "downgrade"},
		{"4", Facts{}, Policy{}, Unsigned, Confirm, "no_signature"},
		{"4 required", Facts{SystemPath: true}, require, Unsigned, Deny, "no_signature"},
		{"unreadable", Facts{Unreadable: true}, Policy{}, Unsigned, Confirm, "unreadable"},
		{"5", Facts{SigType: SigUnknown}, Policy{}, Unverified, Confirm, "signature_type_unsupported"},
		{"5 required", Facts{SigType: SigUnknown}, require, Unverified, Deny, "signature_type_unsupported"},
		{"6", Facts{SigType: SigGPG}, Policy{}, Unverified, Confirm, "bundle_missing"},
		{"6 offline", Facts{SigType: SigGPG, Offline: true}, Policy{}, Unverified, Confirm, "bundle_missing_offline"},
		{"7", Facts{SigType: SigCosign, Bundle: BundleUnreadable}, Policy{}, Unsigned, Deny, "bundle_malformed"},
		{"8", Facts{SigType: SigCosign, Bundle: BundleIncomplete}, Policy{}, Unverified, Confirm, "bundle_incomplete"},
		{"9", verify(VerifySigInvalid), Policy{}, Unsigned, Deny, "signature_invalid"},
		{"10", verify(VerifyOtherArtifact), Policy{}, Unsigned, Deny, "signature_for_other_artifact"},
		{"11", verify(VerifyIdentity), Policy{}, Unsigned, Deny, "signer_not_allowed"},
		{"11 source", verify(VerifySourceNotPinned), Policy{}, Unsigned, Deny, "source_not_pinned"},
		{"11 revoked", verify(VerifySignerRevoked), Policy{}, Unsigned, Deny, "signer_revoked"},
		{"12", verify(VerifyNoTime), Policy{}, Unsigned, Deny, "no_trusted_time"},
		{"13", verify(VerifyRootUnknown), Policy{}, Unverified, Confirm, "trust_root_unknown"},
		{"13 stale", verify(VerifyRootStale), Policy{}, Unverified, Confirm, "trust_root_stale"},
		{"13 invalid", verify(VerifyRootInvalid), Policy{}, Unverified, Confirm, "trust_root_invalid"},
		{"13 key", verify(VerifyNoKey), require, Unverified, Deny, "no_key_in_policy"},
		{"14", verify(VerifyMissing), Policy{}, Unverified, Confirm, "verifier_missing"},
		{"14 failed", verify(VerifyFailed), require, Unverified, Deny, "verifier_failed"},
		{"15", signed, require, Verified, Allow, "signature"},
		{"15 minimum", signed, slsa(1), ProvenanceFail, Deny, "provenance_required"},
		{"16", prov(ProvenanceUnavailable, 0), require, Unverified, Confirm, "provenance_unavailable"},
		{"16 minimum", prov(ProvenanceUnavailable, 0), slsa(1), ProvenanceFail, Deny, "provenance_unavailable"},
		{"17", prov(ProvenanceInvalid, 3), Policy{}, ProvenanceFail, Deny, "provenance_invalid"},
		{"17 builder", prov(ProvenanceBuilderDenied, 3), Policy{}, ProvenanceFail, Deny, "provenance_builder_denied"},
		{"18", prov(ProvenanceOK, 1), slsa(2), ProvenanceFail, Deny, "slsa_level_below_minimum"},
		{"19", prov(ProvenanceOK, 2), slsa(2), Verified, Allow, "signature+provenance"},
		{"19 level 4 reads as 3", prov(ProvenanceOK, 3), slsa(4), Verified, Allow, "signature+provenance"},

		{"other bytes at a verified place", Facts{Changed: true, Expected: true, Pinned: true}, Policy{}, Unsigned, Deny, "changed_since_verified"},
		{"a verified update", with(signed, func(f *Facts) { f.Changed = true }), Policy{}, Verified, Allow, "signature"},
		{"pinned", Facts{Pinned: true}, Policy{}, Unsigned, Allow, "pinned"},
		{"known", Facts{KnownDigest: true}, Policy{}, Unsigned, Allow, "known_digest"},
		{"distribution", Facts{Distro: DistroMatch}, Policy{}, Unsigned, Allow, "distro_db_match"},
		{"distribution differs", Facts{Distro: DistroMismatch, SystemPath: true}, Policy{}, Unsigned, Deny, "distro_db_mismatch"},
		{"system path", Facts{SystemPath: true}, Policy{}, Unsigned, Allow, "system_path"},
		{"own path", Facts{OwnPath: true}, Policy{}, Unsigned, Allow, "own_path"},
		{"own path, required", Facts{OwnPath: true}, require, Unsigned, Deny, "no_signature"},
		{"own path, expected", Facts{OwnPath: true, Expected: true}, Policy{}, Unsigned, Deny, "downgrade"},
		{"own path, distribution differs", Facts{OwnPath: true, Distro: DistroMismatch}, Policy{}, Unsigned, Deny, "distro_db_mismatch"},
		{"own path, lock", Facts{OwnPath: true, LockMismatch: true}, Policy{}, Unsigned, Confirm, "lock_mismatch"},
		{"metadata is not judged by the user's path", Facts{Subject: Metadata, OwnPath: true}, Policy{}, Unsigned, Confirm, "no_signature"},
		{"lock", Facts{LockMismatch: true, SystemPath: true, Pinned: true}, Policy{OnUnsigned: OverrideAllow}, Unsigned, Confirm, "lock_mismatch"},
		{"lock against a signature", with(signed, func(f *Facts) { f.LockMismatch = true }), Policy{}, Verified, Confirm, "lock_mismatch"},
		{"cap", with(signed, func(f *Facts) { f.Caps = []string{CapMutablePath} }), Policy{}, Unverified, Allow, CapMutablePath},
		{"cap required", with(signed, func(f *Facts) { f.Caps = []string{CapMutablePath} }), require, Unverified, Deny, CapMutablePath},
		{"onUnsigned deny", Facts{}, Policy{OnUnsigned: OverrideDeny}, Unsigned, Deny, "no_signature"},
		{"onUnsigned allow", Facts{}, Policy{OnUnsigned: OverrideAllow}, Unsigned, Allow, "no_signature"},
		{"onUnsigned does not forgive a bad signature", verify(VerifySigInvalid), Policy{OnUnsigned: OverrideAllow}, Unsigned, Deny, "signature_invalid"},
		{"onUnverified deny", Facts{SigType: SigGPG}, Policy{OnUnverified: OverrideDeny}, Unverified, Deny, "bundle_missing"},
		{"metadata is not judged by its path", Facts{Subject: Metadata, SystemPath: true, Pinned: true}, Policy{}, Unsigned, Confirm, "no_signature"},
		{"metadata required", Facts{Subject: Metadata}, Policy{RequireMetadata: true}, Unsigned, Deny, "no_signature"},
	} {
		v := Decide(row.facts, row.policy)
		if v.Level != row.level || v.Action != row.action || v.Reason != row.reason {
			t.Errorf("%s: %v %v %s, want %v %v %s", row.name, v.Level, v.Action, v.Reason, row.level, row.action, row.reason)
		}
	}
}

// Properties over all combinations: being offline changes neither level nor
// action, a demand for signatures never loosens, removing a signature gains
// nothing where one is demanded or expected, and nothing is VERIFIED or allowed
// without a reason.
func TestDecideProperties(t *testing.T) {
	rows := 0
	each := func(f Facts, m int) {
		rows++
		free, required := Policy{MinimumSLSALevel: m}, Policy{MinimumSLSALevel: m, RequireTool: true}
		v, r := Decide(f, free), Decide(f, required)
		off := f
		off.Offline = !f.Offline
		if o := Decide(off, free); o.Level != v.Level || o.Action != v.Action {
			t.Fatalf("offline changes %+v: %+v, %+v", f, v, o)
		}
		if r.Action > v.Action {
			t.Fatalf("required loosens %+v: %+v, %+v", f, v, r)
		}
		stripped := f
		stripped.SigType, stripped.Bundle, stripped.Verify, stripped.Provenance = SigNone, BundleAbsent, VerifyMissing, ProvenanceAbsent
		if s := Decide(stripped, required); s.Action > r.Action {
			t.Fatalf("stripping loosens %+v: %+v, %+v", f, r, s)
		}
		if f.Expected {
			if s := Decide(stripped, free); s.Action > v.Action {
				t.Fatalf("stripping loosens %+v: %+v, %+v", f, v, s)
			}
		}
		if (v.Level == Verified || v.Action == Allow) && (f.Verify != VerifyOK || f.Bundle != BundlePresent || f.Checksum == ChecksumMismatch) {
			t.Fatalf("believed without proof %+v: %+v", f, v)
		}
		if v.Reason == "" || v.Stage == "" {
			t.Fatalf("no reason for %+v", f)
		}
	}
	for checksum := ChecksumAbsent; checksum <= ChecksumMismatch; checksum++ {
		for sig := SigNone; sig <= SigUnknown; sig++ {
			for bundle := BundleAbsent; bundle <= BundleIncomplete; bundle++ {
				for verify := VerifyMissing; verify <= VerifyNoKey; verify++ {
					for prov := ProvenanceAbsent; prov <= ProvenanceOK; prov++ {
						for m := range 4 {
							for _, expected := range []bool{false, true} {
								each(Facts{Checksum: checksum, SigType: sig, Bundle: bundle, Verify: verify, Provenance: prov, SLSA: 2, Expected: expected}, m)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d rows", rows)
}

func TestCombine(t *testing.T) {
	v := func(l Level, a Action, reason string) Verdict { return Verdict{Level: l, Action: a, Reason: reason} }
	script := v(Unsigned, Confirm, "script")
	interp := v(Unsigned, Allow, "system_path")
	if got := Combine(script, interp); got.Reason != "script" || got.Action != Confirm {
		t.Errorf("%+v", got)
	}
	if got := Combine(interp, script); got.Reason != "script" || got.Action != Confirm {
		t.Errorf("%+v", got)
	}
	if got := Combine(v(Verified, Allow, "a"), v(ProvenanceFail, Deny, "b"), v(Unsigned, Deny, "c")); got.Level != ProvenanceFail || got.Reason != "b" {
		t.Errorf("%+v", got)
	}
	if got := Combine(v(Unsigned, Deny, "a"), v(Compromised, Deny, "b")); got.Level != Compromised || got.Reason != "a" {
		t.Errorf("%+v", got)
	}
	if got := Combine(); got.Action != Deny || got.Level != Compromised {
		t.Errorf("%+v", got)
	}
	if (Verdict{}).Action != Deny || (Verdict{}).Level != Compromised {
		t.Error("the zero verdict is not the strictest")
	}
}

func TestJudge(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	other := strings.Repeat("cd", 32)
	tool := Identity{Invoked: "tool", Effective: "tool-1", Place: "/w/tool", Canonical: "/w/tool-1",
		Chain: []Part{{Role: RoleScript, Path: "/w/tool-1", Digest: digest}, {Role: RoleInterpreter, Path: "/usr/bin/python3.11", Digest: other, SystemPath: true}}}
	shim := Identity{Invoked: "python3", Effective: "python3", Place: "/s/python3", Canonical: "/s/python3", Manager: "pyenv",
		Chain: []Part{{Role: RoleScript, Path: "/s/python3", Digest: digest, SystemPath: true}, {Role: RoleTarget, Path: "/v/bin/python3", Digest: other}}}
	pins := func(name string, digests ...string) Policy { return Policy{Pins: map[string][]string{name: digests}} }
	for _, row := range []struct {
		name   string
		id     Identity
		p      Policy
		level  Level
		action Action
		reason string
		part   string
	}{
		{"unsigned script under a system interpreter", tool, Policy{}, Unsigned, Confirm, "no_signature", "/w/tool-1"},
		{"pinned by name", tool, pins("tool", other, digest), Unsigned, Allow, "pinned", "/w/tool-1"},
		{"pinned by place", tool, pins("/w/tool", "sha256:"+strings.ToUpper(digest)), Unsigned, Allow, "pinned", "/w/tool-1"},
		{"pinned to other bytes", tool, pins("tool", other), Compromised, Deny, "hash_mismatch", "/w/tool-1"},
		{"interpreter pinned to other bytes", tool, pins("python3.11", digest), Compromised, Deny, "hash_mismatch", "/usr/bin/python3.11"},
		{"empty pin", tool, pins("tool"), Compromised, Deny, "hash_mismatch", "/w/tool-1"},
		{"revoked interpreter", tool, Policy{Revoked: []string{other}}, Compromised, Deny, "revoked", "/usr/bin/python3.11"},
		{"shim: the name is the target's", shim, pins("python3", other), Unsigned, Allow, "system_path", "/s/python3"},
		{"shim: the name is not the shim's", shim, pins("python3", digest), Compromised, Deny, "hash_mismatch", "/v/bin/python3"},
		{"nothing identified", Identity{}, Policy{}, Compromised, Deny, "nothing_judged", ""},
	} {
		v := Judge(row.id, row.p)
		if v.Level != row.level || v.Action != row.action || v.Reason != row.reason || v.Part != row.part {
			t.Errorf("%s: %+v", row.name, v)
		}
		if err := v.Err(row.id); (err != nil) != (row.action == Deny) {
			t.Errorf("%s: error %v", row.name, err)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	f := Facts{SystemPath: true}
	b.ReportAllocs()
	for b.Loop() {
		Decide(f, Policy{})
	}
}

func BenchmarkJudge(b *testing.B) {
	id := Identity{Invoked: "tool", Chain: []Part{{Role: RoleFile, Path: "/usr/bin/tool", Digest: strings.Repeat("ab", 32), SystemPath: true}}}
	b.ReportAllocs()
	for b.Loop() {
		Judge(id, Policy{})
	}
}

package authority

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Version is that of the programs, which the verifier must have, too; the command line sets
// it before anything runs.
var Version string

// Session settles signatures on this machine under a trust policy.
func Session(m caller.Machine, dirs place.Dirs, t policy.TrustPolicy) *settle.Session {
	return &settle.Session{
		Dirs:  settle.Dirs{Managed: filepath.Join(place.Managed, "trust"), User: filepath.Join(dirs.Config, "trust")},
		State: dirs.State, Helper: settle.HelperBeside(m.Self), Version: Version, Environ: m.Environ,
		Offline: m.Getenv("ATIP_OFFLINE") != "" && m.Getenv("ATIP_OFFLINE") != "0", Nested: m.Getenv("ATIP_EXEC_SANDBOX") != "",
		Stated: settle.Stated{Signers: t.Signers, Filters: t.SignerFilters, Builders: t.Builders, Revoked: t.RevokedSigners, MinimumSLSALevel: t.MinimumSLSALevel,
			RequireTool: t.RequireTool, RequireMetadata: t.RequireMetadata, MaxRootAge: t.MaxRootAge, Distro: t.DistroTrust, Recheck: t.Recheck, ExpectationsOff: t.ExpectationsOff},
	}
}

// TrustPolicyOf is what trust.Decide needs of a policy, without locks.
func TrustPolicyOf(t policy.TrustPolicy) trust.Policy {
	out := trust.Policy{RequireTool: t.RequireTool, RequireMetadata: t.RequireMetadata, MinimumSLSALevel: t.MinimumSLSALevel, Pins: t.Pins, Revoked: t.Revoked}
	out.OnUnsigned, out.OnUnverified = trust.OverrideByName(t.OnUnsigned), trust.OverrideByName(t.OnUnverified)
	return out
}

// evidence is the session of a plan, made once.
func (a *Authority) evidence() *settle.Session {
	if a.settles == nil {
		a.settles = Session(a.Machine, a.Dirs, a.Policy)
		a.settles.Warn = a.Warn
	}
	return a.settles
}

// Verdict decides about an identified file by its bytes and by the evidence about them.
func (a *Authority) Verdict(id trust.Identity) (trust.Verdict, error) {
	queries := make([]settle.Query, len(id.Chain))
	for i := range id.Chain {
		queries[i] = settle.PartQuery(a.Shims, id, i)
	}
	settled, err := a.evidence().Settle(queries...)
	if err != nil {
		return trust.Verdict{}, err
	}
	a.Locks.Signers(id, settled)
	return trust.Judge(id, a.TrustPolicy(), settled...), nil
}

// Limited applies what policy demands of verified programs to one whose signature is not enough.
func (a *Authority) Limited(v trust.Verdict, why string) trust.Verdict {
	return v.Limited(why, a.TrustPolicy())
}

// Argument adds what is known against the file that an interpreter was told to run, the last of the chain.
func (a *Authority) Argument(v trust.Verdict, id trust.Identity) trust.Verdict {
	return v.WithArgument(id, a.TrustPolicy())
}

// judgeDocument decides about the document that was found, and what it makes of the verdict
// on the executable: a checksum in it can condemn the file, a signer who vouches for binaries
// can stand in for the file's own signature.
func (a *Authority) judgeDocument(s *step.Step, found *shims.Found) error {
	if s.Missing != nil || found.Document == nil {
		return nil
	}
	channel, path, ok := strings.Cut(found.Provenance.Source, ":")
	if channel == "builtin" {
		return nil
	}
	if !ok || !filepath.IsAbs(path) {
		s.DocumentVerdict = trust.JudgeMetadata(trust.Settled{}, a.TrustPolicy())
		return nil
	}
	key := ""
	if found.Provenance.Binding == "hash" {
		key = s.ID.Digest
	}
	q := settle.DocumentQuery(found.Document, path, found.Provenance.Digest, key, nil)
	t := a.TrustPolicy()
	meta, fetched := shims.Fetched(path)
	if fetched {
		q.Place = meta.Registry + "#" + s.ID.Digest
		from, err := settle.RegistryOf(a.Shims, meta.Registry, a.Machine.Getenv)
		if err != nil {
			return err
		}
		if !from.Configured {
			a.refuseDocument(found, "it came from "+meta.Registry+", which is not configured any more (atip sync drops it)")
			return nil
		}
		q.Signers, t.RequireMetadata = from.Signers, t.RequireMetadata || from.Required
	}
	if q.Claims.Type == "" && q.Signatures == nil && q.Place == "" {
		s.DocumentVerdict = trust.JudgeMetadata(trust.Settled{}, t)
		return a.claimed(s, found, trust.Settled{})
	}
	settled, err := a.evidence().Settle(q)
	if err != nil {
		return err
	}
	s.DocumentVerdict = trust.JudgeMetadata(settled[0], t)
	switch {
	case s.DocumentVerdict.Action == trust.Deny:
		why := s.DocumentVerdict.Reason
		if detail := a.evidence().Why(q.SHA256); detail != "" {
			why += ", " + detail
		}
		a.refuseDocument(found, why)
		return nil
	case s.DocumentVerdict.Action == trust.Allow && settled[0].Proven() && !a.Shims.CallerSupplied:
		// Where the caller chose the directory, it chose which of the signed documents is there.
		found.Provenance.Rank = a.signedRank(found, settled[0].Evidence, meta.Registry, s.ID.Effective)
	}
	return a.claimed(s, found, settled[0])
}

// refuseDocument makes no document of one that is refused: the tool is unknown.
func (a *Authority) refuseDocument(found *shims.Found, why string) {
	warning := "metadata_refused: " + found.Provenance.Source + ": " + why
	a.Warn(warning)
	found.Document, found.Raise = nil, nil
	found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none", Warnings: []string{warning}}
}

// signedRank is how far a document with a proven signer is believed: as the organisation's
// if policy or the trust directory names the signer, as the vendor's if it names this tool
// too; a signer that only a registry's entry names counts as much as that entry says.
func (a *Authority) signedRank(found *shims.Found, e *trust.Evidence, registry, tool string) atip.Rank {
	declared, says := found.Document.DeclaredSource()
	top := atip.Org
	c, err := a.evidence().Config()
	if err != nil || e == nil {
		return found.Provenance.Rank
	}
	local := false
	for i := range c.Signers {
		if s := &c.Signers[i]; s.Name == e.Signer && s.For(signer.Metadata, tool) {
			local = true
			if len(s.Tools) > 0 && says && declared == atip.Vendor {
				top = atip.Vendor
			}
		}
	}
	if !local {
		from, err := settle.RegistryOf(a.Shims, registry, a.Machine.Getenv)
		if err != nil {
			return found.Provenance.Rank
		}
		top = from.Rank
	}
	if says {
		top = min(top, declared)
	}
	return max(found.Provenance.Rank, top)
}

// claimed decides again about the executable if its document says something about it.
func (a *Authority) claimed(s *step.Step, found *shims.Found, document trust.Settled) error {
	claims := settle.ToolClaims(found.Document)
	known := document.Proven() && a.vouches(document.Evidence, s.ID.Effective)
	if claims.Checksum == "" && claims.Type == "" && !claims.Provenance && !known || len(s.ID.Chain) == 0 {
		return nil
	}
	queries := make([]settle.Query, len(s.ID.Chain))
	for i := range s.ID.Chain {
		queries[i] = settle.PartQuery(a.Shims, s.ID, i)
	}
	queries[0].Claims = claims
	if queries[0].Signatures == nil && s.File.SystemPath {
		// The distribution's file: what its document declares of a publisher's signature was
		// never about these bytes.
		queries[0].Claims.Type = ""
	}
	settled, err := a.evidence().Settle(queries...)
	if err != nil {
		return err
	}
	settled[0].KnownDigest = settled[0].KnownDigest || known
	a.Locks.Signers(s.ID, settled)
	s.Verdict = trust.Judge(s.ID, a.TrustPolicy(), settled...)
	s.File.Believed, s.Trust = step.Believed(s.Verdict), step.TrustFacts(s.Verdict)
	c := found.Provenance
	if c.Channel == "native" && s.Verdict.Level == trust.Verified {
		found.Provenance.Rank = atip.Vendor
	}
	return nil
}

// vouches reports whether the signer of a document counts for the file that it describes.
func (a *Authority) vouches(e *trust.Evidence, tool string) bool {
	c, err := a.evidence().Config()
	if err != nil || e == nil {
		return false
	}
	for i := range c.Signers {
		s := &c.Signers[i]
		// To vouch for a file by a document must be said: it is more than a signer of documents does.
		if s.Name == e.Signer && len(s.VouchesFor) > 0 && s.For(signer.Binary, tool) {
			return true
		}
	}
	return false
}

// Package authority says what registries, signatures and locks know of executables and of the
// documents about them.
package authority

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/memo"
	"github.com/atip-dev/atip-exec/internal/outside"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Authority answers for one run. It is the effects.Authority of a Site. Its methods are called by
// one goroutine.
type Authority struct {
	Machine caller.Machine
	Dirs    place.Dirs
	Shims   shims.Dirs
	Policy  policy.TrustPolicy
	Locks   toollock.Locks
	Memo    *memo.Memo // what plans have looked up together; nil for nothing
	Began   time.Time  // of the run: what had expired then is old
	Starts  bool       // something will be started, so that registries may be asked
	Refresh bool       // registries are asked again
	Warn    func(string)
	Pending func(string) // is told what a run would still ask

	askUntil time.Time       // when registries must have answered; zero until one is asked
	settles  *settle.Session // what is known of signatures; nil until one is asked about
}

// Document is what is known about a tool, if it may be believed.
func (a *Authority) Document(s *step.Step, q shims.Query) (shims.Found, error) {
	found, err := a.metadata(q)
	if err == nil {
		err = a.judgeDocument(s, &found)
	}
	return found, err
}

// Locked makes a step ask whose file or document is another than the lock says.
func (a *Authority) Locked(s *step.Step) {
	if s.Missing == nil && s.Verdict.Action >= trust.Confirm && a.Locks.Differs(s.ID, s.Call.Provenance.Digest) {
		s.Verdict.Action, s.Verdict.Reason, s.Verdict.Stage = trust.Confirm, "lock_mismatch", "policy"
		s.Trust = step.TrustFacts(s.Verdict)
	}
}

// TrustPolicy is what trust.Decide needs, with the locks.
func (a *Authority) TrustPolicy() trust.Policy { return a.Locks.Trust(TrustPolicyOf(a.Policy)) }

// registryPatience bounds the one look-up on the path of a command.
const registryPatience = 3 * time.Second

// Exit statuses of `atip fetch-shim` that mean something here.
const (
	fetchRefused     = 65 // an answer came and cannot be believed
	fetchUnavailable = 69
)

// metadata looks up what is known about a tool, first here, then in a registry.
func (a *Authority) metadata(q shims.Query) (shims.Found, error) {
	found, err := a.Memo.Lookup(q, a.Shims)
	if err != nil {
		return found, err
	}
	again, unknown := a.askRegistries(q, found)
	switch {
	case unknown:
		found.Document, found.Raise = nil, nil
		found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none"}
	case again:
		return shims.Lookup(q, a.Shims)
	}
	return found, nil
}

// askRegistries fetches the metadata of a digest that no local source knows, if the
// user configured a registry. It is done by the program beside ours, because an HTTP
// client would cost every command its start. It reports whether to look again;
// unknown means that no lower source may answer either.
func (a *Authority) askRegistries(q shims.Query, found shims.Found) (again, unknown bool) {
	if q.Digest == "" || q.NameOnly || !a.Memo.Holds("registries", a.registries) {
		return false, false
	}
	path := a.Shims.ShimPath(q.Digest)
	if !a.refresh() || !a.Starts {
		if found.Provenance.Binding == "hash" {
			return false, false
		}
		if miss, missed := shims.Missed(path, a.Began); missed {
			if miss.Kind == shims.Refused {
				a.Warn(refusedAnswer(q.Digest) + ": " + miss.Why)
				return false, true
			}
			return false, false
		}
	} else if _, meta, fetched := shims.Cached(path); found.Provenance.Binding == "hash" && (!fetched || meta.Registry == "") {
		return false, false // a person or the tool itself wrote it: no registry is asked
	}
	if a.offline() {
		return false, false
	}
	if !a.Starts {
		a.Pending("a registry would be asked for the metadata of sha256:" + q.Digest)
		return false, false
	}
	var more []string
	if a.refresh() {
		more = []string{"--refresh"}
	}
	cmd, cancel, why := a.fetcher(q.Digest, more...)
	if why != "" {
		a.Warn(why)
		return false, false
	}
	defer cancel()
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, false
	case errors.As(err, &exit) && exit.ExitCode() == fetchRefused:
		a.Warn(refusedAnswer(q.Digest))
		return false, true
	case errors.As(err, &exit) && exit.ExitCode() == fetchUnavailable:
		a.Warn("registry_unavailable: local metadata is used")
	default:
		a.Warn("registry_unavailable: " + err.Error())
	}
	return false, false
}

func refusedAnswer(digest string) string {
	return "a registry's answer about sha256:" + digest + " was refused; the tool counts as unknown"
}

// fetcher is the program beside ours that asks registries about a digest; why says that
// it cannot be started.
func (a *Authority) fetcher(digest string, more ...string) (cmd *exec.Cmd, cancel func(), why string) {
	helper := filepath.Join(filepath.Dir(a.Machine.Self), "atip")
	if info, err := os.Stat(helper); err != nil || owner.ForeignWriter(helper, info, a.Machine.UID) != "" {
		return nil, nil, "registry_unavailable: " + helper + " is not there or can be written by others"
	}
	// All look-ups of one command share the time.
	if a.askUntil.IsZero() {
		a.askUntil = time.Now().Add(registryPatience)
	}
	ctx, cancel := context.WithDeadline(context.Background(), a.askUntil)
	cmd = outside.Command(ctx, a.Dirs, a.Machine.Getenv, a.fetching(), helper, append([]string{"fetch-shim", digest, "-o", "json"}, more...)...)
	return cmd, cancel, ""
}

// fetching lists what the caller's environment may say to the helper: which registries, whose
// answers are judged by their signatures, and the way to them. A proxy sees no more than
// that, as certificates are checked against the system's own.
func (a *Authority) fetching() []string {
	var out []string
	for _, name := range [...]string{"ATIP_REGISTRIES", "ATIP_CACHE_DIR", "ATIP_REFRESH", "ATIP_OFFLINE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		if value := a.Machine.Getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	// registries.json names the variable that holds the token of a registry.
	for _, entry := range a.Machine.Environ {
		if name, _, ok := strings.Cut(entry, "="); ok && filter.CredentialName(name) {
			out = append(out, entry)
		}
	}
	return out
}

// refresh reports whether what registries said before is to be asked for again.
func (a *Authority) refresh() bool {
	v := a.Machine.Getenv("ATIP_REFRESH")
	return a.Refresh || v != "" && v != "0"
}

func (a *Authority) offline() bool {
	v := a.Machine.Getenv("ATIP_OFFLINE")
	return v != "" && v != "0"
}

// registries reports whether the user or the administrator configured one.
func (a *Authority) registries() bool {
	if a.Machine.Getenv("ATIP_REGISTRIES") != "" {
		return true
	}
	for _, dir := range [...]string{a.Shims.Config, a.Shims.Managed} {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "registries.json")); err == nil {
			return true
		}
	}
	return false
}

// approvalGrace is how long an approval at hand stays good after its time while the
// registry cannot be asked.
const approvalGrace = 7 * 24 * time.Hour

// Approval says why one file is not approved, "" if it is.
func (a *Authority) Approval(list policy.Allowlist, part trust.Part) (string, error) {
	id, name := registryOf(list)
	if id == "" {
		return "cannot be approved: " + list.File + " demands it and names no registry.url", nil
	}
	path := a.Shims.ApprovalPath(id, part.Digest)
	_, meta, approved := shims.Cached(path)
	again := a.refresh() && a.Starts && !a.offline()
	if approved && a.Began.Before(meta.Expires) && !again {
		return "", nil
	}
	miss, missed := shims.Missed(path, a.Began)
	if (!missed || again) && a.Starts && !a.offline() {
		a.askApproval(id, part.Digest)
		_, meta, approved = shims.Cached(path)
		miss, missed = shims.Missed(path, time.Now())
	}
	switch {
	case missed && miss.Kind == shims.Absent:
		return "is not approved by " + name, nil
	case missed && miss.Kind == shims.Refused:
		return "is not approved by " + name + ": " + miss.Why, nil
	case approved && a.Began.Before(meta.Expires.Add(approvalGrace)):
		if !a.Began.Before(meta.Expires) {
			a.Warn("registry_unavailable: the approval of " + part.Path + " is old and " + name + " was not asked")
		}
		return "", nil
	case !a.Starts:
		a.Pending(name + " would be asked whether it approves sha256:" + part.Digest)
		return "is not known to be approved by " + name, nil
	case a.offline():
		return "", fault.New(errcode.Offline, "offline, and it is not known whether "+name+" approves "+part.Path).With("digest", part.Digest).With("policy", list.File)
	}
	message := name + " must approve " + part.Path + " and cannot be asked"
	if missed {
		message += ": " + miss.Why
	}
	return "", fault.New(errcode.RegistryUnavailable, message).With("digest", part.Digest).With("policy", list.File)
}

// registryOf names the registry of a demand: the one in whose folder the document lies,
// or the one that it names.
func registryOf(list policy.Allowlist) (id, name string) {
	if list.Layer == policy.LayerOrg {
		id = filepath.Base(filepath.Dir(list.File))
		if _, meta, ok := shims.Cached(list.File); ok && meta.Registry != "" {
			return id, "registry " + meta.Registry
		}
		return id, "the registry of " + list.File
	}
	if list.Registry == "" {
		return "", ""
	}
	url := strings.TrimRight(list.Registry, "/")
	return shims.RegistryID(url), "registry " + url
}

// askApproval lets the program beside ours ask; the answer lies in files.
func (a *Authority) askApproval(id, digest string) {
	more := []string{"--approved-by", id}
	if a.refresh() {
		more = append(more, "--refresh")
	}
	cmd, cancel, why := a.fetcher(digest, more...)
	if why != "" {
		a.Warn(why)
		return
	}
	defer cancel()
	_ = cmd.Run() // whatever its status, only what it kept counts
}

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
			MaxRootAge: t.MaxRootAge, Distro: t.DistroTrust, Recheck: t.Recheck, ExpectationsOff: t.ExpectationsOff},
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

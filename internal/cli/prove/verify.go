package prove

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/authority"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/sigstore"
)

// verified is the report on one subject.
type verified struct {
	trust.Verdict
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"`
	SHA256 string `json:"sha256"`
	Detail string `json:"detail,omitempty"`
	Next   string `json:"next,omitempty"`
}

// verifyVerb verifies a tool or a file and exits 0 for VERIFIED, 77 for anything less.
func verifyVerb(c *cli.Console, v *cli.Values) (int, error) {
	if v.Has("decide") {
		if v.Get("decide") != "-" {
			return 0, fault.New(errcode.Arguments, "--decide reads standard input: write --decide -")
		}
		return 0, decide(os.Stdin, c.Out)
	}
	if v.Has("request") {
		return 0, fault.New(errcode.Arguments, "verify --request - takes no other word").WithFix("write it alone", "atip verify --request -")
	}
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "verify needs one tool or file").WithFix("name it", "atip verify gh")
	}
	s, err := session(v)
	if err != nil {
		return 0, err
	}
	s.Warn = c.Warn
	list, keep, err := subjects(v, s)
	if err != nil {
		return 0, err
	}
	queries := make([]settle.Query, len(list))
	for i := range list {
		queries[i] = list[i].Query
	}
	settled, err := s.Settle(queries...)
	if err != nil {
		return 0, err
	}
	reports := make([]verified, len(list))
	for i, q := range list {
		reports[i] = q.report(s, settled[i])
		s.KeepDistro(q.Query, settled[i])
	}
	whole := reports[0]
	for _, r := range reports[1:] {
		if r.Subject == whole.Subject && r.Level.Weaker(whole.Level) {
			whole = r
		}
	}
	if whole.Level == trust.Verified && v.Has("keep") {
		if keep == nil {
			return 0, fault.New(errcode.Arguments, "--keep needs a tool or an executable, verified by policy").WithFix("leave out --identity, --key and --trusted-root, and add the signer with `atip trust add-signer`", "")
		}
		if err := keep(); err != nil {
			return 0, err
		}
	}
	code := 0
	if whole.Level != trust.Verified {
		code = 77
	}
	text := ""
	for _, r := range reports {
		text += r.text()
	}
	return code, c.Answer(map[string]any{"kind": "atip-exec.verify/1", "ok": code == 0, "level": whole.Level, "reason": whole.Reason, "subjects": reports}, text)
}

func (r verified) text() string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "%s  %s %s: %s\n", r.Level, r.Subject, r.Name, r.Reason)
	line("file", r.Path)
	line("sha256", r.SHA256)
	if e := r.Evidence; e != nil {
		line("signer", e.Signer)
		line("identity", e.Identity)
		line("issuer", e.Issuer)
		line("source", e.SourceRepository)
		if e.Builder != "" {
			line("builder", fmt.Sprintf("%s (SLSA level %d)", e.Builder, e.SLSALevel))
		}
		if !e.SignedAt.IsZero() {
			line("signed", e.SignedAt.Format(time.RFC3339)+", "+map[string]string{"log": "by the log", "tsa": "by a timestamp authority", "signature": "by the signer's own word"}[e.TimeSource])
		}
		if e.Root != "" {
			line("root", e.Root)
		}
		if e.Signer != "" && !e.Logged {
			line("log", "not recorded in any")
		}
		line("package", e.Package)
		for _, w := range e.Warnings {
			line("warning", w)
		}
	}
	line("because", r.Detail)
	line("next", r.Next)
	return b.String()
}

// item is one subject with what the verdict needs beside the evidence.
type item struct {
	settle.Query
	part *trust.Part
	id   *trust.Identity
	t    trust.Policy
}

func (q item) report(s *settle.Session, settled trust.Settled) verified {
	r := verified{Name: q.Name, Path: q.Path, SHA256: q.SHA256, Detail: s.Why(q.SHA256)}
	switch {
	case q.Kind == "metadata":
		r.Verdict = trust.JudgeMetadata(settled, q.t)
	case q.id != nil:
		one := *q.id
		one.Chain = []trust.Part{*q.part}
		r.Verdict = trust.Judge(one, q.t, settled)
		r.Verdict.Part = ""
	default:
		r.Verdict = trust.Decide(settled.Facts(trust.Facts{Subject: trust.Tool}), q.t)
		r.Verdict.Evidence = settled.Evidence
	}
	if r.Verdict.Evidence == nil {
		r.Verdict.Evidence = settled.Evidence
	}
	if r.Level != trust.Verified {
		name := q.Path
		name = cmp.Or(name, q.Name)
		r.Next = r.Verdict.NextStep(name)
	}
	return r
}

// session is the configuration under which is verified: that of this machine, or what the
// command line says, which then stands alone.
func session(v *cli.Values) (*settle.Session, error) {
	m := caller.Here()
	dirs, err := m.Dirs()
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error())
	}
	policies, err := plan.Policies(m)
	if err != nil {
		return nil, err
	}
	s := authority.Session(m, dirs, policies.TrustPolicy())
	s.Helper, s.Again = m.Self, true
	if level := v.IntOf("minimum-slsa"); level > 0 {
		s.Stated.MinimumSLSALevel = max(s.Stated.MinimumSLSALevel, level)
	}
	for _, id := range v.All("builder") {
		s.Stated.Builders = append(s.Stated.Builders, signer.Builder{ID: id})
	}
	own, err := named(v)
	if err != nil {
		return nil, err
	}
	if own == nil && !v.Has("trusted-root") {
		return s, nil
	}
	// Who the caller names is asked for this once, and leaves no trace.
	s.State = ""
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	if own != nil {
		config.Signers, config.Filters = []signer.Signer{*own}, nil
	}
	if file := v.Get("trusted-root"); file != "" {
		raw, err := unreadable(input(file, request.MaxRoot))
		if err != nil {
			return nil, err
		}
		r := request.Root{Name: "command-line", Data: raw, Profile: v.Get("profile"), Managed: true}
		if info, err := os.Stat(file); err == nil {
			r.Fetched = info.ModTime()
		}
		config.Roots = []request.Root{r}
		for i := range config.Signers {
			config.Signers[i].Root = r.Name
		}
	}
	return s, nil
}

// unreadable gives an input that cannot be read the status of one that is malformed.
func unreadable(raw []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fault.New(errcode.MetadataStructure, fault.From(err).Message).WithFix("name a file that can be read", "")
	}
	return raw, nil
}

// named is the signer of the command line, nil if none is named.
func named(v *cli.Values) (*signer.Signer, error) {
	bad := func(msg string) error {
		return fault.New(errcode.TrustConfig, msg).WithFix("see `atip verify --help`", "")
	}
	if key := v.Get("key"); key != "" {
		if v.Has("identity") && !strings.Contains(key, ".asc") && !v.Has("fingerprint") || v.Has("identity-pattern") {
			return nil, bad("--key and --identity name two signers")
		}
		raw, err := unreadable(input(key, 1<<20))
		if err != nil {
			return nil, err
		}
		return keySigner(v, key, raw)
	}
	if !v.Has("identity") && !v.Has("identity-pattern") {
		return nil, nil
	}
	s := signer.Signer{Name: "command line", Type: signer.Cosign, Identity: v.Get("identity"), IdentityPattern: v.Get("identity-pattern"), Issuer: v.Get("issuer"),
		SourceRepository: v.Get("source-repository"), AnySource: v.Has("any-source")}
	switch {
	case s.Issuer == "":
		return nil, bad("--identity needs --issuer, the authority that confirmed the identity")
	case s.Identity != "" && s.IdentityPattern != "":
		return nil, bad("--identity and --identity-pattern name two signers")
	case s.IdentityPattern != "":
		if _, err := signer.Anchored(s.IdentityPattern); err != nil {
			return nil, bad(err.Error())
		}
	}
	return &s, nil
}

// keySigner tells the kind of a key by what its file holds.
func keySigner(v *cli.Values, file string, raw []byte) (*signer.Signer, error) {
	text := strings.TrimSpace(string(raw))
	switch {
	case strings.HasPrefix(text, "-----BEGIN PUBLIC KEY-----"):
		if _, _, err := sigstore.PublicKey(raw); err != nil {
			return nil, fault.New(errcode.TrustConfig, file+": "+err.Error())
		}
		log := "none"
		if v.Has("trusted-root") {
			log = "required"
		}
		return &signer.Signer{Name: "command line", Type: signer.Cosign, Key: file, Material: raw, Log: log}, nil
	case strings.HasPrefix(text, "-----BEGIN PGP PUBLIC KEY BLOCK-----"), len(raw) > 0 && raw[0]&0x80 != 0:
		print := strings.ToLower(strings.ReplaceAll(v.Get("fingerprint"), " ", ""))
		if len(print) != 40 && len(print) != 64 {
			return nil, fault.New(errcode.TrustConfig, "an OpenPGP key is named by its whole fingerprint: --fingerprint")
		}
		return &signer.Signer{Name: "command line", Type: signer.GPG, Fingerprint: print, Keyring: file, Material: raw}, nil
	}
	lines := strings.Split(text, "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if key, err := base64.StdEncoding.DecodeString(last); err == nil && len(key) == 42 {
		return &signer.Signer{Name: "command line", Type: signer.Minisign, PublicKey: last}, nil
	}
	return nil, fault.New(errcode.TrustConfig, file+" holds neither a PEM public key, nor one of OpenPGP or minisign")
}

// subjects finds what is verified, and how its evidence is kept.
func subjects(v *cli.Values, s *settle.Session) (list []item, keep func() error, err error) {
	word := v.Rest[0]
	policies, err := plan.Policies(caller.Here())
	if err != nil {
		return nil, nil, err
	}
	t := authority.TrustPolicyOf(policies.TrustPolicy())
	t.MinimumSLSALevel = s.Stated.MinimumSLSALevel // which a flag can raise
	sigs, prov, err := evidence(v)
	if err != nil {
		return nil, nil, err
	}
	claims, err := claimed(v)
	if err != nil {
		return nil, nil, err
	}
	if !strings.ContainsRune(word, '/') {
		if info, err := os.Stat(word); err != nil || !info.Mode().IsRegular() {
			return tool(v, s, t, word, sigs, prov, claims)
		}
	}
	q, err := fileQuery(word)
	if err != nil {
		return nil, nil, err
	}
	if sigs == nil {
		sigs = beside(word)
	}
	q.Signatures, q.Provenance, q.Source = sigs, prov, v.Get("source-repository")
	q.Predicate = v.Get("predicate-type")
	q.Claims = claims
	if info, err := os.Stat(word); err == nil && info.Mode()&0o111 != 0 && q.Kind == "tool" {
		q.Distro = true
		if s.State != "" {
			keep = func() error { return keepEvidence(q) }
		}
	}
	return []item{{Query: q, t: t}}, keep, nil
}

// fileQuery reads a file: a document of ours counts as metadata, anything else as a tool.
func fileQuery(path string) (settle.Query, error) {
	q := settle.Query{Kind: "tool", Name: filepath.Base(path)}
	bad := func(err error) (settle.Query, error) {
		return q, fault.New(errcode.MetadataStructure, path+": "+plainError(err)).With("file", path).WithFix("name a file that can be read", "")
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return bad(err)
	}
	f, err := regular.Open(abs)
	if err != nil {
		return bad(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return bad(err)
	}
	q.SHA256, q.Path = hex.EncodeToString(h.Sum(nil)), abs
	if strings.HasSuffix(path, ".json") {
		if raw, err := regular.Read(abs, 4<<20); err == nil {
			if d, err := atip.Parse(raw, atip.ParseOptions{MaxBytes: 4 << 20}); err == nil {
				q.Kind, q.Name = "metadata", d.Name()
			}
		}
	}
	return q, nil
}

// beside finds the signature that lies beside a file.
func beside(file string) []request.Signature {
	for _, ending := range [...]string{".sigstore.json", ".bundle", ".sigstore", ".minisig", ".asc", ".sig"} {
		raw, err := input(file+ending, request.MaxBundle+64<<10)
		if err == nil {
			return []request.Signature{{Format: "auto", Data: raw}}
		}
	}
	return nil
}

// evidence reads what the flags name.
func evidence(v *cli.Values) (sigs, prov []request.Signature, err error) {
	if file := v.Get("bundle"); file != "" {
		// One byte more than is read of a bundle, so that a larger one is refused as such.
		raw, err := unreadable(input(file, 8<<20))
		if err != nil {
			return nil, nil, err
		}
		sig := request.Signature{Format: "auto", Data: raw, Line: v.IntOf("bundle-line")}
		if len(raw) > 4*request.MaxBundle {
			sig.Data = raw[:4*request.MaxBundle]
		}
		if sums := v.Get("sums"); sums != "" {
			if sig.Sums, err = unreadable(input(sums, request.MaxSums)); err != nil {
				return nil, nil, err
			}
			sig.Format = "sums"
		}
		sigs = []request.Signature{sig}
	}
	if file := v.Get("provenance"); file != "" {
		raw, err := unreadable(input(file, 4*request.MaxBundle))
		if err != nil {
			return nil, nil, err
		}
		prov = []request.Signature{{Format: "auto", Data: raw}}
	}
	return sigs, prov, nil
}

// claimed is what --digest and --metadata say about the subject.
func claimed(v *cli.Values) (request.Claims, error) {
	var c request.Claims
	if d := v.Get("digest"); d != "" {
		c.Checksum = d
		if !strings.Contains(d, ":") {
			c.Checksum = "sha256:" + d
		}
	}
	if file := v.Get("metadata"); file != "" {
		raw, err := unreadable(input(file, 4<<20))
		if err != nil {
			return c, err
		}
		d, err := atip.Parse(raw, atip.ParseOptions{MaxBytes: 4 << 20})
		if err != nil {
			return c, fault.New(errcode.MetadataStructure, file+": "+err.Error()).With("file", file)
		}
		own := settle.ToolClaims(d)
		own.Checksum = cmp.Or(own.Checksum, c.Checksum)
		c = own
	}
	return c, nil
}

// tool identifies a command word and verifies each file of its chain, and the document that
// describes it.
func tool(v *cli.Values, s *settle.Session, t trust.Policy, word string, sigs, prov []request.Signature, claims request.Claims) ([]item, func() error, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return nil, nil, fault.New(errcode.NoInputFile, err.Error())
	}
	at := shims.DirsOf(dirs.Config, dirs.Data, dirs.State, os.Getenv)
	cwd, _ := os.Getwd()
	opener := trust.Opener{CacheDir: filepath.Join(dirs.State, "digest"), Home: dirs.Home, TmpDirs: []string{os.TempDir()}, Getenv: os.Getenv}
	file, err := opener.Open(word, filepath.SplitList(caller.Here().Getenv("PATH")), cwd)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	id := file.Identity()
	var list []item
	for i := range id.Chain {
		part := &id.Chain[i]
		q := settle.PartQuery(at, id, i)
		if i == 0 {
			if sigs != nil {
				q.Signatures = sigs
			}
			if prov != nil {
				q.Provenance = prov
			}
			q.Claims = claims
		}
		q.Source, q.Predicate, q.Distro = v.Get("source-repository"), v.Get("predicate-type"), true
		list = append(list, item{Query: q, part: part, id: &id, t: t})
	}
	doc, err := documentQuery(at, id)
	if err != nil {
		return nil, nil, err
	}
	if doc != nil {
		list = append(list, item{Query: *doc, t: t})
	}
	var keep func() error
	if s.State != "" {
		q := list[0].Query
		keep = func() error { return keepEvidence(q) }
	}
	return list, keep, nil
}

// documentQuery finds the document about a file, if it comes from a file itself.
func documentQuery(at shims.Dirs, id trust.Identity) (*settle.Query, error) {
	found, err := shims.Lookup(shims.Query{Digest: id.Digest, Effective: id.Effective, Invoked: id.Invoked, NameOnly: id.Manager != ""}, at)
	if err != nil {
		return nil, err
	}
	_, path, ok := strings.Cut(found.Provenance.Source, ":")
	if !ok || found.Document == nil || !filepath.IsAbs(path) {
		return nil, nil
	}
	q := settle.DocumentQuery(found.Document, path, found.Provenance.Digest, id.Digest, nil)
	return &q, nil
}

// keepEvidence puts the bundle where runs find it: beside the documents, under the digest of
// the file.
func keepEvidence(q settle.Query) error {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return fault.New(errcode.NoInputFile, err.Error())
	}
	at := shims.DirsOf(dirs.Config, dirs.Data, dirs.State, os.Getenv)
	dir := filepath.Join(at.Data, "shims", "sha256")
	for ending, list := range map[string][]request.Signature{".tool.bundle": q.Signatures, ".tool.intoto.jsonl": q.Provenance} {
		if len(list) == 0 {
			continue
		}
		if len(list[0].Sums) > 0 {
			return fault.New(errcode.Arguments, "--keep does not keep signed sums").WithFix("pin the file instead: trust.pins in your policy", "")
		}
		if err := shims.WriteFile(filepath.Join(dir, q.SHA256+ending), list[0].Data); err != nil {
			return err
		}
	}
	return nil
}

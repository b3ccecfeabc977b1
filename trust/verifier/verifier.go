// Package verifier answers verification requests: it tells what kind of signature it is
// given, has it checked, and says what is settled. It reads the file that a request names
// and nothing else, and decides nothing: trust.Decide does. trust.md section 7.
package verifier

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/detached"
	"github.com/atip-dev/atip-exec/trust/distro"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/sigstore"
)

// Verifier answers the requests of one conversation; it keeps parsed roots.
type Verifier struct {
	Version string
	Now     func() time.Time
	// Distro asks the database of the distribution; nil if there is none.
	Distro func(path, sha256 string) distro.Answer

	roots map[string]*rootEntry
}

type rootEntry struct {
	root *sigstore.Root
	err  error
}

// Answer settles one request.
func (v *Verifier) Answer(r request.Request) request.Answer {
	c := &call{v: v, r: r, now: r.Now}
	if c.now.IsZero() {
		c.now = v.Now()
	}
	s := c.settle()
	return r.Answered(s, c.detail, v.Version)
}

// call is one request being answered.
type call struct {
	v       *Verifier
	r       request.Request
	now     time.Time
	roots   []*sigstore.Root
	broken  map[string]bool
	detail  string
	digests map[string][]byte // by algorithm
}

func (c *call) say(text string) {
	c.detail = cmp.Or(c.detail, text)
}

func (c *call) settle() trust.Settled {
	s := trust.Settled{Offline: c.r.Offline, Expected: c.r.Claims.Expected, SigConflict: c.r.Claims.SigConflict}
	s.Checksum = c.checksum()
	if c.r.Distro != "" && c.v.Distro != nil && c.r.Subject.Kind == "tool" {
		a := c.v.Distro(c.r.Subject.Path, c.r.Subject.SHA256)
		s.Distro = a.Distro
		if a.Package != "" {
			s.Evidence = &trust.Evidence{Package: a.Package}
		}
		if a.Distro == trust.DistroMismatch {
			c.say(a.Why)
		}
	}
	c.openRoots()
	c.signatures(&s)
	if s.Verify == trust.VerifyOK && s.Bundle == trust.BundlePresent {
		c.provenance(&s)
	}
	return s
}

// checksum compares what documents say with the bytes. A match raises nothing; a mismatch
// condemns. An algorithm that is not known here says nothing, and nothing can be VERIFIED
// against it.
func (c *call) checksum() trust.Checksum {
	if key := c.r.Claims.LookupKey; key != "" && c.r.Claims.BinaryHash != "" && c.r.Claims.BinaryHash != key {
		return trust.ChecksumMismatch
	}
	algorithm, want, ok := strings.Cut(strings.ToLower(c.r.Claims.Checksum), ":")
	if !ok {
		return trust.ChecksumAbsent
	}
	have := ""
	switch algorithm {
	case "sha256":
		have = c.r.Subject.SHA256
	case "sha512":
		have = hex.EncodeToString(c.other("sha512"))
	default:
		c.say("the checksum has the algorithm " + algorithm + ", which is not read")
		return trust.ChecksumUnknown
	}
	switch {
	case have == "":
		return trust.ChecksumAbsent
	case have == want:
		return trust.ChecksumMatch
	}
	return trust.ChecksumMismatch
}

// open gives the subject's bytes.
func (c *call) open() (io.ReadCloser, error) {
	if c.r.Subject.Data != nil {
		return io.NopCloser(bytes.NewReader(c.r.Subject.Data)), nil
	}
	return regular.Open(c.r.Subject.Path)
}

// other is the subject's digest in another algorithm: npm's attestations use sha512, some
// keys sha384. nil if the bytes are not at hand, or are not those that are judged.
func (c *call) other(algorithm string) []byte {
	if algorithm == "sha512" && c.r.Subject.SHA512 != "" {
		raw, _ := hex.DecodeString(c.r.Subject.SHA512)
		return raw
	}
	if have, ok := c.digests[algorithm]; ok || c.r.Subject.Path == "" && c.r.Subject.Data == nil {
		return have
	}
	f, err := c.open()
	if err != nil {
		return nil
	}
	defer f.Close()
	ours, h := sha256.New(), sha512.New()
	if algorithm == "sha384" {
		h = sha512.New384()
	}
	if c.digests == nil {
		c.digests = map[string][]byte{}
	}
	c.digests[algorithm] = nil
	if _, err := io.Copy(io.MultiWriter(ours, h), f); err == nil && hex.EncodeToString(ours.Sum(nil)) == c.r.Subject.SHA256 {
		c.digests[algorithm] = h.Sum(nil)
	}
	return c.digests[algorithm]
}

func (c *call) openRoots() {
	c.broken = map[string]bool{}
	for _, r := range c.r.Roots {
		sum := sha256.Sum256(append([]byte(r.Name+"\x00"+r.Profile+"\x00"+r.Fetched.String()+"\x00"+fmt.Sprint(r.Managed, r.Shadowed)), r.Data...))
		key := string(sum[:])
		if c.v.roots == nil {
			c.v.roots = map[string]*rootEntry{}
		}
		e := c.v.roots[key]
		if e == nil {
			e = &rootEntry{}
			e.root, e.err = sigstore.ParseRoot(r)
			c.v.roots[key] = e
		}
		if e.err != nil {
			c.broken[r.Name] = true
			c.say("the root " + r.Name + ": " + e.err.Error())
			continue
		}
		c.roots = append(c.roots, e.root)
	}
}

// result is one signature's outcome, of whichever kind.
type result struct {
	sig      trust.SigType
	bundle   trust.Bundle
	verify   trust.Verify
	evidence *trust.Evidence
	detail   string
	sigstore *sigstore.Outcome
}

// deny reports an outcome that cannot be confirmed, which outweighs one that can: a
// second signature must not make a bad one look like an unknown one.
func (r result) rank() int {
	switch {
	case r.bundle == trust.BundlePresent && r.verify == trust.VerifyOK:
		return 0
	case r.bundle == trust.BundleUnreadable:
		return 1
	case r.bundle != trust.BundlePresent, r.verify == trust.VerifyMissing, r.verify == trust.VerifyFailed:
		return 3
	case r.verify >= trust.VerifyRootUnknown:
		return 2
	}
	return 1
}

func best(list []result) (out result, ok bool) {
	for _, r := range list {
		if !ok || r.rank() < out.rank() {
			out, ok = r, true
		}
	}
	return out, ok
}

// signatures settles the signature: one good one suffices.
func (c *call) signatures(s *trust.Settled) {
	s.SigType = declared(c.r.Claims.Type)
	var list []result
	for _, sig := range c.r.Signatures {
		list = append(list, c.one(sig)...)
	}
	r, ok := best(list)
	if !ok {
		return // declared perhaps, and not here
	}
	s.SigType, s.Bundle, s.Verify = r.sig, r.bundle, r.verify
	if r.evidence != nil {
		if s.Evidence != nil {
			r.evidence.Package = s.Evidence.Package
		}
		s.Evidence = r.evidence
	}
	if r.detail != "" && r.rank() > 0 {
		c.say(r.detail)
	}
	if s.Checksum == trust.ChecksumUnknown && r.rank() == 0 {
		s.Verify = trust.VerifyFailed
	}
	if r.rank() == 0 && r.sigstore != nil && r.sigstore.Statement.SLSA() {
		c.built(s, *r.sigstore)
	}
}

func (c *call) built(s *trust.Settled, out sigstore.Outcome) {
	b := sigstore.Build(out, c.r.Builders, c.r.Require)
	s.Provenance, s.SLSA = b.Provenance, b.Level
	if s.Evidence == nil {
		s.Evidence = &trust.Evidence{}
	}
	s.Evidence.PredicateType = out.Statement.PredicateType
	if b.Provenance == trust.ProvenanceOK {
		s.Evidence.Builder, s.Evidence.SLSALevel = b.Builder, b.Level
		return
	}
	c.say(b.Detail)
}

// provenance settles where and how the subject was built.
func (c *call) provenance(s *trust.Settled) {
	if len(c.r.Provenance) == 0 {
		if s.Provenance == trust.ProvenanceAbsent && c.r.Claims.Provenance {
			s.Provenance = trust.ProvenanceUnavailable
		}
		return
	}
	worst := trust.ProvenanceAbsent
	detail := ""
	for _, p := range c.r.Provenance {
		for _, line := range lines(p) {
			kind, outcome := c.provenanceLine(line)
			if kind != trust.ProvenanceOK {
				if worst == trust.ProvenanceAbsent || worst == trust.ProvenanceUnavailable {
					worst, detail = kind, outcome.Detail
				}
				continue
			}
			var mine trust.Settled
			c2 := *c
			c2.detail = ""
			c2.built(&mine, outcome)
			if mine.Provenance == trust.ProvenanceOK {
				s.Provenance, s.SLSA = mine.Provenance, mine.SLSA
				s.Evidence.PredicateType, s.Evidence.Builder, s.Evidence.SLSALevel = mine.Evidence.PredicateType, mine.Evidence.Builder, mine.Evidence.SLSALevel
				if s.Evidence.SourceRepository == "" {
					s.Evidence.SourceRepository = outcome.Evidence.SourceRepository
				}
				return
			}
			worst, detail = mine.Provenance, c2.detail
		}
	}
	s.Provenance = worst
	c.say(detail)
}

// provenanceLine verifies one attestation; OK means that its signature is good.
func (c *call) provenanceLine(raw []byte) (trust.Provenance, sigstore.Outcome) {
	switch kind, unsigned := kindOf(raw); {
	case kind == dsseLine && unsigned:
		return trust.ProvenanceInvalid, sigstore.Outcome{Detail: "the envelope has no signature"}
	case kind == dsseLine:
		return trust.ProvenanceUnavailable, sigstore.Outcome{Detail: "the envelope has neither a certificate nor a log entry"}
	}
	out := sigstore.Check(c.input(raw, false))
	switch {
	case out.Bundle != trust.BundlePresent:
		return trust.ProvenanceInvalid, out
	case out.Verify == trust.VerifyOK:
		return trust.ProvenanceOK, out
	case out.Verify == trust.VerifyOtherArtifact:
		return trust.ProvenanceSubjectMismatch, out
	case out.Verify >= trust.VerifyRootUnknown:
		return trust.ProvenanceUnavailable, out
	}
	return trust.ProvenanceInvalid, out
}

func declared(kind string) trust.SigType {
	switch kind {
	case "":
		return trust.SigNone
	case "cosign", "sigstore":
		return trust.SigCosign
	case "gpg", "openpgp":
		return trust.SigGPG
	case "minisign":
		return trust.SigMinisign
	case "sums":
		return trust.SigSums
	}
	return trust.SigUnknown
}

// one verifies one signature, or each line of one: then each is checked alone.
func (c *call) one(sig request.Signature) []result {
	var out []result
	format := sig.Format
	if format == "" || format == "auto" {
		format = guess(sig)
	}
	switch format {
	case "sigstore", "cosign-legacy":
		for _, raw := range lines(sig) {
			out = append(out, c.bundle(raw, sig))
		}
		if out == nil {
			out = []result{{sig: trust.SigCosign, bundle: trust.BundleUnreadable, detail: "more lines than are read, or none of that number"}}
		}
	case detached.OpenPGP, detached.Minisign, detached.Sums:
		out = append(out, c.detached(format, sig))
	default:
		out = append(out, result{sig: trust.SigCosign, bundle: trust.BundleUnreadable, detail: "it is no signature of a kind that is read"})
	}
	return out
}

func (c *call) detached(format string, sig request.Signature) result {
	o := detached.Check(detached.Input{Raw: sig.Data, Format: format, Kind: c.r.Subject.Kind, Tool: c.r.Subject.Name, SHA256: c.r.Subject.SHA256, Open: c.open, Sums: sig.Sums,
		Signers: c.r.Signers, Filters: c.r.Filters, Revoked: c.r.Revoked, Now: c.now})
	kind := map[string]trust.SigType{detached.OpenPGP: trust.SigGPG, detached.Minisign: trust.SigMinisign, detached.Sums: trust.SigSums}[format]
	return result{sig: kind, bundle: o.Bundle, verify: o.Verify, evidence: o.Evidence, detail: o.Detail}
}

// Kinds of JSON signatures.
const (
	otherJSON = iota
	bundleJSON
	legacyJSON
	dsseLine
)

// kindOf tells a JSON signature by its members; unsigned is an envelope without signatures.
func kindOf(raw []byte) (kind int, unsigned bool) {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil {
		return otherJSON, false
	}
	switch {
	case top["base64Signature"] != nil:
		return legacyJSON, false
	case top["mediaType"] != nil:
		return bundleJSON, false
	case top["payloadType"] != nil:
		var list []json.RawMessage
		return dsseLine, json.Unmarshal(top["signatures"], &list) != nil || len(list) == 0
	}
	return otherJSON, false
}

func (c *call) input(raw []byte, legacy bool) sigstore.Input {
	return sigstore.Input{Raw: raw, Legacy: legacy, Kind: c.r.Subject.Kind, Tool: c.r.Subject.Name, SHA256: c.r.Subject.SHA256, Digest: c.other, Data: c.r.Subject.Data,
		Signers: c.r.Signers, Filters: c.r.Filters, Revoked: c.r.Revoked, Roots: c.roots, Broken: c.broken, Source: c.r.Require.SourceRepository, MaxRootAge: c.r.Require.MaxRootAge, Now: c.now}
}

func (c *call) bundle(raw []byte, sig request.Signature) result {
	if len(raw) > request.MaxBundle {
		return result{sig: trust.SigCosign, bundle: trust.BundleUnreadable, detail: "the bundle has more than 1 MiB"}
	}
	if err := atip.ScanStrict(raw, atip.ParseOptions{MaxBytes: request.MaxBundle}); err != nil {
		return result{sig: trust.SigCosign, bundle: trust.BundleUnreadable, detail: "the bundle is not strict JSON: " + err.Error()}
	}
	kind, _ := kindOf(raw)
	switch kind {
	case dsseLine:
		return result{sig: trust.SigCosign, bundle: trust.BundleIncomplete, detail: "the envelope has neither a certificate nor a log entry"}
	case otherJSON:
		return result{sig: trust.SigCosign, bundle: trust.BundleUnreadable, detail: "it is no bundle"}
	}
	in := c.input(raw, kind == legacyJSON)
	in.Hint = sig.Hint
	out := sigstore.Check(in)
	return result{sig: trust.SigCosign, bundle: out.Bundle, verify: out.Verify, evidence: out.Evidence, detail: out.Detail, sigstore: &out}
}

// guess tells a signature of the kind "auto".
func guess(sig request.Signature) string {
	if len(sig.Sums) > 0 {
		return detached.Sums
	}
	if kind := detached.Guess(sig.Data); kind != "" {
		return kind
	}
	return "sigstore"
}

// lines are the objects of a .jsonl, or the one object of anything else; nil if there are
// more than 64, or none of the number that is asked for.
func lines(sig request.Signature) [][]byte {
	raw := bytes.TrimSpace(sig.Data)
	parts := bytes.Split(raw, []byte("\n"))
	first := bytes.TrimSpace(parts[0])
	several := len(parts) > 1 && len(first) > 1 && first[0] == '{' && first[len(first)-1] == '}' && json.Valid(first)
	if !several {
		if sig.Line > 1 {
			return nil
		}
		return [][]byte{raw}
	}
	var out [][]byte
	for _, p := range parts {
		if p = bytes.TrimSpace(p); len(p) > 0 {
			out = append(out, p)
		}
	}
	switch {
	case len(out) > request.MaxLines, sig.Line > len(out):
		return nil
	case sig.Line > 0:
		return out[sig.Line-1 : sig.Line]
	}
	return out
}

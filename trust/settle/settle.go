package settle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/excerpt"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Session settles subjects under one configuration. It is not for several goroutines.
type Session struct {
	Dirs    Dirs
	State   string // directory of our own state; "" caches nothing
	Stated  Stated
	Helper  string // path of the verifier
	Version string // of it and of us
	Environ []string
	Offline bool
	// Nested marks a run inside another one: it believes no record and leaves none.
	Nested bool
	// Again ignores what is cached.
	Again bool
	// Warn takes what a person should know.
	Warn func(string)

	config      *Config
	fingerprint string
	scanned     int
	why         map[string]string // of the last answers, by subject digest
}

// Query is one subject with the evidence that was found for it.
type Query struct {
	Kind       string // tool, metadata
	Name       string
	Place      string // where expectations are kept for; "" keeps none
	SHA256     string
	Path       string // of the bytes
	Data       []byte // or the bytes
	Claims     request.Claims
	Signatures []request.Signature
	Provenance []request.Signature
	Signers    []signer.Signer   // beside those of policy: a registry's own
	Filters    [][]signer.Signer // lists that only remove: a registry's manifest
	Source     string            // repository that provenance must name
	Predicate  string            // type that provenance must have
	// Distro asks the package database in any case.
	Distro bool
}

// Config reads the trust directories, once.
func (s *Session) Config() (*Config, error) {
	if s.config == nil {
		c, err := Load(s.Dirs, s.Stated)
		if err != nil {
			return nil, err
		}
		s.config = c
		for _, w := range c.Warnings {
			s.warn(w)
		}
	}
	return s.config, nil
}

func (s *Session) warn(text string) {
	if s.Warn != nil {
		s.Warn(text)
	}
}

// Why is the detail behind the last answer about a subject, "" if there is none.
func (s *Session) Why(sha256 string) string { return s.why[sha256] }

// Settle answers each query, in order: from the cache, or by one start of the verifier for
// all that are new. An error means that the trust configuration is invalid; whatever goes
// wrong with the verifier is an answer.
func (s *Session) Settle(queries ...Query) ([]trust.Settled, error) {
	out := make([]trust.Settled, len(queries))
	var ask []request.Request
	var of []int
	var keys []string
	for i, q := range queries {
		e, has := s.expected(q.Place)
		if err := s.implied(q, &has); err != nil {
			return nil, err
		}
		if q.silent() && !s.asksDistro(q) {
			out[i] = trust.Settled{Offline: s.Offline, Expected: has, Changed: has && e.Digest != "" && e.Digest != q.SHA256, SigConflict: q.Claims.SigConflict}
			out[i].SigType, out[i].Checksum = q.declared(), q.checksum()
			if s.distroCached(q) {
				out[i].Distro = s.distro(q)
			}
			continue
		}
		key, err := s.key(q)
		if err != nil {
			return nil, err
		}
		if r, ok := s.cached(key); ok && !s.Again && !(s.Stated.Recheck == "always" && r.Settled.Proven()) {
			out[i] = r.Settled
			s.note(q, r.Detail)
		} else {
			r, err := s.request(q, len(ask))
			if err != nil {
				return nil, err
			}
			ask, of, keys = append(ask, r), append(of, i), append(keys, key)
		}
		out[i].Expected, out[i].Changed, out[i].Offline = has, has && e.Digest != "" && e.Digest != q.SHA256, s.Offline
	}
	for start := 0; start < len(ask); start += request.MaxLines {
		end := min(start+request.MaxLines, len(ask))
		s.asked(ask[start:end], of[start:end], keys[start:end], queries, out)
	}
	for i, q := range queries {
		if out[i].Proven() && out[i].Evidence != nil && out[i].Checksum != trust.ChecksumMismatch && q.Place != "" {
			if e, ok := s.expected(q.Place); !ok || e.Digest != q.SHA256 || e.Signer != out[i].Evidence.Signer {
				s.expect(q.Place, q.SHA256, out[i].Evidence.Signer)
			}
		}
	}
	return out, nil
}

// silent reports that there is nothing the verifier could look at.
func (q Query) silent() bool {
	return len(q.Signatures) == 0 && len(q.Provenance) == 0 && !q.Distro && (q.Claims.Checksum == "" || q.checksum() != trust.ChecksumUnknown)
}

// declared is the kind of signature that is declared and not here.
func (q Query) declared() trust.SigType {
	switch q.Claims.Type {
	case "":
		return trust.SigNone
	case "cosign":
		return trust.SigCosign
	case "gpg":
		return trust.SigGPG
	case "minisign":
		return trust.SigMinisign
	}
	return trust.SigUnknown
}

// checksum compares without the bytes, which SHA-256 needs no more; Unknown if another
// algorithm is used.
func (q Query) checksum() trust.Checksum {
	if q.Claims.LookupKey != "" && q.Claims.BinaryHash != "" && q.Claims.LookupKey != q.Claims.BinaryHash {
		return trust.ChecksumMismatch
	}
	return Checksum(q.Claims.Checksum, q.SHA256)
}

// Checksum compares the statement ALGORITHM:HEX with a SHA-256.
func Checksum(stated, sha256 string) trust.Checksum {
	if stated == "" {
		return trust.ChecksumAbsent
	}
	algorithm, hex := cutLower(stated)
	switch {
	case algorithm != "sha256":
		return trust.ChecksumUnknown
	case hex == sha256:
		return trust.ChecksumMatch
	}
	return trust.ChecksumMismatch
}

// implied adds what signers say: one with tools expects a signature on them.
func (s *Session) implied(q Query, has *bool) error {
	if *has || q.Name == "" {
		return nil
	}
	vouch := signer.Binary
	if q.Kind == "metadata" {
		vouch = signer.Metadata
	}
	for i := range s.Stated.Signers {
		*has = *has || s.Stated.Signers[i].Implies(vouch, q.Name)
	}
	if *has || !s.anySignerFile() {
		return nil
	}
	c, err := s.Config()
	if err != nil {
		return err
	}
	for i := range c.Signers {
		*has = *has || c.Signers[i].Implies(vouch, q.Name)
	}
	return nil
}

// anySignerFile reports whether there is a directory of signers at all, which most machines
// have not.
func (s *Session) anySignerFile() bool {
	if s.config != nil {
		return true
	}
	for _, dir := range [...]string{s.Dirs.Managed, s.Dirs.User} {
		if dir != "" {
			if _, err := os.Stat(filepath.Join(dir, "signers")); err == nil {
				return true
			}
		}
	}
	return false
}

func (s *Session) note(q Query, detail string) {
	if s.why == nil {
		s.why = map[string]string{}
	}
	s.why[q.SHA256] = detail
}

// key is the digest of everything that the verdict rests on.
func (s *Session) key(q Query) (string, error) {
	print, err := s.configPrint()
	if err != nil {
		return "", err
	}
	k := newKey()
	claims, err := json.Marshal(q.Claims)
	if err != nil {
		return "", err
	}
	more, err := json.Marshal(q.Signers)
	if err != nil {
		return "", err
	}
	filters, err := json.Marshal(q.Filters)
	if err != nil {
		return "", err
	}
	k.add("verdict/1", q.Kind, q.Name, q.SHA256, string(claims), string(more), string(filters), q.Source, q.Predicate, print, s.Version)
	for _, list := range [...][]request.Signature{q.Signatures, q.Provenance} {
		for _, sig := range list {
			k.add(sig.Format, strconv.Itoa(sig.Line), sig.Hint.Identity, sig.Hint.Issuer)
			k.bytes(sig.Data, sig.Sums)
		}
		k.add("end")
	}
	if s.asksDistro(q) {
		k.add(s.distroKey(q))
	}
	return k.sum(), nil
}

// configPrint changes with the policies and with every file of the trust directories. The
// files themselves are read only if something has to be verified.
func (s *Session) configPrint() (string, error) {
	if s.fingerprint != "" {
		return s.fingerprint, nil
	}
	stated, err := json.Marshal(s.Stated)
	if err != nil {
		return "", err
	}
	k := newKey()
	k.add(string(stated))
	for _, dir := range [...]string{s.Dirs.Managed, s.Dirs.User} {
		for _, sub := range [...]string{"signers", "roots", "keys"} {
			printDir(k, filepath.Join(dir, sub))
		}
	}
	print := func(list []signer.Signer) {
		for i := range list {
			if path := list[i].Key + list[i].Keyring; path != "" {
				for _, dir := range [...]string{s.Dirs.Managed, s.Dirs.User} {
					printFile(k, absolute(path, dir))
				}
			}
		}
	}
	print(s.Stated.Signers)
	for _, list := range s.Stated.Filters {
		print(list)
	}
	// A key may lie anywhere in the trust directory, as its signer's file says.
	if s.anySignerFile() {
		c, err := s.Config()
		if err != nil {
			return "", err
		}
		for i := range c.Signers {
			k.bytes(c.Signers[i].Material)
		}
	}
	s.fingerprint = k.sum()
	return s.fingerprint, nil
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

func printDir(k keyed, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		k.add("none")
		return
	}
	k.add(dir)
	for _, e := range entries {
		printFile(k, filepath.Join(dir, e.Name()))
	}
}

func printFile(k keyed, path string) {
	info, err := os.Stat(path)
	if err != nil {
		k.add(path, "none")
		return
	}
	dev, ino, mtime, ctime := identity(info)
	var b [48]byte
	for i, v := range [...]uint64{dev, ino, uint64(info.Size()), mtime, ctime, uint64(info.Mode())} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	k.add(path, string(b[:]))
}

// request makes the question of a query.
func (s *Session) request(q Query, n int) (request.Request, error) {
	c, err := s.Config()
	if err != nil {
		return request.Request{}, err
	}
	extra, err := c.Extra(s.Dirs, q.Signers)
	if err != nil {
		return request.Request{}, err
	}
	r := request.Request{V: request.Version, ID: strconv.Itoa(n + 1), Offline: s.Offline,
		Subject: request.Subject{Kind: q.Kind, Name: q.Name, Place: q.Place, SHA256: q.SHA256, Path: q.Path, Data: q.Data},
		Claims:  q.Claims, Signatures: q.Signatures, Provenance: q.Provenance,
		Signers: append(append([]signer.Signer{}, c.Signers...), extra...), Filters: append(append([][]signer.Signer{}, c.Filters...), q.Filters...), Builders: s.Stated.Builders, Revoked: s.Stated.Revoked, Roots: c.Roots,
		Require: request.Require{MinimumSLSALevel: s.Stated.MinimumSLSALevel, MaxRootAge: s.Stated.MaxRootAge, SourceRepository: q.Source, PredicateType: q.Predicate}}
	if s.asksDistro(q) {
		r.Distro = "db"
		if s.Stated.Distro == "chain" {
			r.Distro = "chain"
		}
	}
	return r, nil
}

// A verdict record holds what was settled about one subject with one set of evidence under
// one configuration: its name is the digest of all of that, so that it never goes stale.
// Expectations stand beside them, by place: what was VERIFIED there once.

// record is a file of the verdict cache.
type record struct {
	V       int           `json:"v"`
	Settled trust.Settled `json:"settled"`
	Detail  string        `json:"detail,omitempty"`
}

const maxRecord = 64 << 10

// keyed hashes the parts of a cache key; each is preceded by its length.
type keyed struct{ hash.Hash }

func newKey() keyed { return keyed{sha256.New()} }

func (k keyed) add(parts ...string) {
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		k.Write(n[:])
		k.Write([]byte(p))
	}
}

func (k keyed) bytes(parts ...[]byte) {
	for _, p := range parts {
		sum := sha256.Sum256(p)
		k.Write(sum[:])
	}
}

func (k keyed) sum() string { return hex.EncodeToString(k.Sum(nil)) }

func (s *Session) verdictPath(key string) string {
	return filepath.Join(s.State, "verdict", key[:2], key[2:]+".json")
}

// cached reads a record that nobody but this user can have written.
func (s *Session) cached(key string) (record, bool) {
	var r record
	if s.State == "" || s.Nested {
		return r, false
	}
	raw, ok := readOwn(s.verdictPath(key))
	if !ok || json.Unmarshal(raw, &r) != nil || r.V != 1 {
		return record{}, false
	}
	return r, true
}

// store keeps a record. A failure costs the next run some time and nothing else.
func (s *Session) store(key string, r record) {
	if s.State == "" || s.Nested {
		return
	}
	r.V = 1
	// These are no facts about the evidence: they are looked up each time.
	r.Settled.Expected, r.Settled.Changed, r.Settled.KnownDigest, r.Settled.Offline, r.Settled.SignerLock = false, false, false, false, false
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > maxRecord {
		return
	}
	path := s.verdictPath(key)
	if private(filepath.Join(s.State, "verdict")) && private(filepath.Dir(path)) {
		_ = shims.WriteFile(path, raw)
	}
}

// private makes a directory of our own, or says that there is none.
func private(dir string) bool {
	return os.MkdirAll(dir, 0o700) == nil && ownDir(dir)
}

// Expectation is what was VERIFIED at a place.
type Expectation struct {
	V      int       `json:"v"`
	Place  string    `json:"place"`
	Digest string    `json:"digest"`
	Signer string    `json:"signer"`
	Time   time.Time `json:"time"`
}

func (s *Session) expectPath(place string) string {
	sum := sha256.Sum256([]byte(place))
	return filepath.Join(s.State, "verdict", "expect", hex.EncodeToString(sum[:])+".json")
}

// expected reads the expectation of a place. One that is there and cannot be read still
// expects a signature: taken for nothing, whoever damages it could strip one.
func (s *Session) expected(place string) (e Expectation, ok bool) {
	if s.State == "" || s.Nested || place == "" || s.Stated.ExpectationsOff {
		return e, false
	}
	path := s.expectPath(place)
	raw, ok := readOwn(path)
	if !ok {
		_, err := os.Lstat(path)
		return e, err == nil
	}
	if json.Unmarshal(raw, &e) != nil || e.V != 1 || e.Place != place {
		return Expectation{}, true
	}
	return e, true
}

// expect remembers that a place was VERIFIED.
func (s *Session) expect(place, digest, signer string) {
	if s.State == "" || s.Nested || place == "" || s.Stated.ExpectationsOff {
		return
	}
	raw, err := json.Marshal(Expectation{V: 1, Place: place, Digest: digest, Signer: signer, Time: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return
	}
	path := s.expectPath(place)
	if private(filepath.Join(s.State, "verdict")) && private(filepath.Dir(path)) {
		_ = shims.WriteFile(path, raw)
	}
}

// Forget drops the expectation of a place: a person says that what lies there need not be
// signed any more.
func (s *Session) Forget(place string) (bool, error) {
	err := os.Remove(s.expectPath(place))
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// HelperName is the program that verifies. It lies beside our own executable and is never
// looked up in PATH.
const HelperName = "atip-verify"

// HelperBeside is its path for the program at self.
func HelperBeside(self string) string { return filepath.Join(filepath.Dir(self), HelperName) }

// HelperMissing says why the verifier is not started, "" if it would be: it is a program that nobody but this user
// and root can replace.
func HelperMissing(path string) string {
	if path == "" || !filepath.IsAbs(path) {
		return "its path is not known"
	}
	for _, p := range [...]string{path, filepath.Dir(path)} {
		info, err := os.Stat(p)
		if err != nil {
			return p + ": " + err.Error()
		}
		if why := owner.ForeignWriter(p, info, os.Geteuid()); why != "" {
			return p + " " + why
		}
		if p == path && !info.Mode().IsRegular() {
			return p + " is not a regular file"
		}
	}
	return ""
}

// asked puts questions to the verifier and fills in what is settled.
func (s *Session) asked(list []request.Request, of []int, keys []string, queries []Query, out []trust.Settled) {
	fail := func(v trust.Verify, why string) {
		s.warn(why)
		for n, i := range of {
			o := &out[i]
			o.SigType, o.Bundle, o.Verify = trust.SigCosign, trust.BundlePresent, v
			if len(queries[i].Signatures) == 0 {
				// Only a checksum or the package database was to be asked about.
				o.SigType, o.Bundle = queries[i].declared(), trust.BundleAbsent
			}
			o.Checksum = queries[i].checksum()
			s.note(queries[i], why)
			_ = n
		}
	}
	if why := HelperMissing(s.Helper); why != "" {
		fail(trust.VerifyMissing, "verifier_missing: "+HelperName+" cannot be started: "+why)
		return
	}
	answers, err := Ask(s.Helper, s.Version, s.Environ, list)
	if err != nil {
		fail(trust.VerifyFailed, "verifier_failed: "+err.Error())
		return
	}
	for n, a := range answers {
		i := of[n]
		expected, changed := out[i].Expected, out[i].Changed
		out[i] = a.Settled
		out[i].Expected, out[i].Changed, out[i].Offline = expected, changed, s.Offline
		s.note(queries[i], a.Detail)
		if a.Cacheable && out[i].Verify != trust.VerifyFailed {
			s.store(keys[n], record{Settled: a.Settled, Detail: a.Detail})
		}
	}
}

// A verifier that runs, or waits for the machine to run it, when its time is over gets as many
// stretches more as it makes use of.
const (
	stretch   = 500 * time.Millisecond
	stretches = 16
)

// Ask starts the verifier once for at most 64 questions. It gets two seconds for each, no
// variable but those that name directories, and its output is bounded. The time of a machine
// that is too busy to run it does not count, for eight seconds at most: it would fail for
// nothing that it did.
func Ask(helper, version string, environ []string, list []request.Request) ([]request.Answer, error) {
	input, err := request.Encode(list)
	if err != nil {
		return nil, err
	}
	if len(input) > request.MaxInput {
		return nil, errors.New("the evidence has more than 8 MiB")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, helper, "verify", "--request", "-")
	cmd.Env = []string{"GOMEMLIMIT=256MiB"}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); name == "HOME" || strings.HasPrefix(name, "XDG_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Dir = "/"
	cmd.WaitDelay = 200 * time.Millisecond
	// One that answers without end is not waited for.
	stdout, stderr := excerpt.Head{Limit: request.MaxOutput, Full: cancel}, excerpt.Head{Limit: 4 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err = cmd.Start(); err == nil {
		go func() {
			wait, used := request.Patience*time.Duration(len(list))-stretch, 0
			for n := range 1 + stretches {
				select {
				case <-ctx.Done():
					return
				case <-time.After(wait):
				}
				now, waiting := progress(cmd.Process.Pid)
				if n > 0 && now == used && !waiting {
					break
				}
				wait, used = stretch, now
			}
			cancel()
		}()
		err = cmd.Wait()
	}
	switch {
	case stdout.Over:
		return nil, errors.New("the verifier answered with more than 256 KiB")
	case ctx.Err() != nil:
		return nil, errors.New("the verifier gave no answer in time")
	case err != nil:
		return nil, errors.New("the verifier ended with " + err.Error())
	}
	return request.Answers(stdout.Kept, list, version)
}

// progress returns how much of a processor a process has used, in clock ticks, and whether one
// of its threads waits for a processor or a disk now (proc_pid_stat(5)). Both are zero where
// there is no /proc.
func progress(pid int) (used int, waiting bool) {
	s, err := procstat.Of(pid)
	if err != nil {
		return 0, false
	}
	threads, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	return s.Int(procstat.User) + s.Int(procstat.System), slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
		tid, _ := strconv.Atoi(thread.Name())
		s, err := procstat.Of(tid)
		return err == nil && (s.Fields[procstat.State] == "R" || s.Fields[procstat.State] == "D")
	})
}

func cutLower(stated string) (algorithm, hex string) {
	algorithm, hex, _ = strings.Cut(strings.ToLower(stated), ":")
	return algorithm, hex
}

// Evidence lies in files beside the documents, under the digest of the executable:
//
//	shims/sha256/HEX.json.bundle        signature of the document HEX.json
//	shims/sha256/HEX.tool.bundle        signature of the executable
//	shims/sha256/HEX.tool.intoto.jsonl  provenance of the executable

// evidenceFile reads a file of evidence, nil if there is none. One that is too large, or no
// regular file, is evidence that cannot be read, not none.
func evidenceFile(path string) []byte {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	raw, err := regular.ReadNoFollow(path, request.MaxBundle*4)
	if err != nil || len(raw) == 0 {
		return []byte{0}
	}
	return raw
}

// PartQuery is the query about one file of a chain, with the evidence that lies in the
// directories of metadata.
func PartQuery(d shims.Dirs, id trust.Identity, i int) Query {
	part := id.Chain[i]
	q := Query{Kind: "tool", Name: filepath.Base(part.Path), SHA256: part.Digest, Path: part.Path}
	if i == 0 {
		q.Name, q.Place = id.Effective, id.Place
	} else {
		q.Place = part.Path
	}
	if part.Digest == "" {
		return q
	}
	for _, dir := range append([]string{d.Data}, d.DataDirs...) {
		if dir == "" {
			continue
		}
		at := dir + "/shims/sha256/" + part.Digest
		if raw := evidenceFile(at + ".tool.bundle"); raw != nil {
			q.Signatures = append(q.Signatures, request.Signature{Format: "auto", Data: raw})
		}
		if raw := evidenceFile(at + ".tool.intoto.jsonl"); raw != nil {
			q.Provenance = append(q.Provenance, request.Signature{Format: "auto", Data: raw})
		}
		if q.Signatures != nil {
			break // the first directory that knows the file decides, as for documents
		}
	}
	return q
}

// ToolClaims is what a document says about the executable that it describes.
func ToolClaims(d *atip.Document) request.Claims {
	c := d.TrustClaims()
	return request.Claims{Checksum: c.Checksum, Type: c.Tool.Type, Provenance: c.Provenance}
}

// DocumentQuery is the query about a document that lies in a file. key is the digest by which
// it was found, "" if it was found by name; bundle is the signature, nil to look beside the
// file.
func DocumentQuery(d *atip.Document, path, sum, key string, bundle []byte) Query {
	c := d.TrustClaims()
	q := Query{Kind: "metadata", Name: d.Name(), SHA256: sum, Path: path, Claims: request.Claims{Type: c.Document.Type, SigConflict: c.Conflict}}
	if d.BinaryHash() != "" && key != "" {
		q.Claims.BinaryHash, q.Claims.LookupKey = d.BinaryHash(), key
	}
	if bundle == nil {
		bundle = evidenceFile(path + ".bundle")
	}
	if bundle != nil {
		sig := request.Signature{Format: "auto", Data: bundle}
		if c.Document.Type == "cosign" {
			sig.Hint = request.Hint{Identity: c.Document.Identity, Issuer: c.Document.Issuer}
		}
		q.Signatures = []request.Signature{sig}
	}
	return q
}

// The package database is slow to ask. An answer holds for a file as it is and for the
// database as it is: both are in the key.

// databases change their time whenever a package is installed or removed.
var databases = [...]string{"/var/lib/dpkg/status", "/var/lib/dpkg/info", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/lib/apk/db/installed", "/var/lib/pacman/local"}

// asksDistro reports whether the verifier is asked about the package of a file.
func (s *Session) asksDistro(q Query) bool {
	return q.Kind == "tool" && q.Path != "" && (q.Distro || s.Stated.Distro == "db" || s.Stated.Distro == "chain")
}

// distroCached reports whether an answer that a scan stored counts.
func (s *Session) distroCached(q Query) bool {
	if q.Kind != "tool" || q.Path == "" || s.Stated.Distro != "" && s.Stated.Distro != "cached" || s.State == "" || s.Nested {
		return false
	}
	if s.scanned == unknown {
		s.scanned = never
		if _, err := os.Stat(s.distroDir()); err == nil {
			s.scanned = once
		}
	}
	return s.scanned == once
}

// Whether a scan has stored anything: most machines ask for one directory and no more.
const (
	unknown = iota
	never
	once
)

func (s *Session) distroDir() string { return filepath.Join(s.State, "verdict", "distro") }

func (s *Session) distroPath(q Query) string {
	return filepath.Join(s.distroDir(), s.distroKey(q)+".json")
}

func (s *Session) distroKey(q Query) string {
	k := newKey()
	k.add("distro/1", q.Path, q.SHA256)
	printFile(k, q.Path)
	for _, path := range databases {
		if info, err := os.Stat(path); err == nil {
			dev, ino, mtime, ctime := identity(info)
			k.add(path, strconv.Itoa(int(dev)), strconv.Itoa(int(ino)), strconv.Itoa(int(mtime)), strconv.Itoa(int(ctime)))
		}
	}
	return k.sum()
}

// distro is the stored answer about a file.
func (s *Session) distro(q Query) trust.Distro {
	raw, ok := readOwn(s.distroPath(q))
	if !ok {
		return trust.DistroUnknown
	}
	var r record
	if json.Unmarshal(raw, &r) != nil || r.V != 1 {
		return trust.DistroUnknown
	}
	return r.Settled.Distro
}

// HasDistro reports whether an answer is stored for the file as it is.
func (s *Session) HasDistro(q Query) bool { return s.distro(q) != trust.DistroUnknown }

// KeepDistro stores an answer of the package database for later runs.
func (s *Session) KeepDistro(q Query, answer trust.Settled) {
	if answer.Distro == trust.DistroUnknown || s.State == "" || s.Nested {
		return
	}
	raw, err := json.Marshal(record{V: 1, Settled: trust.Settled{Distro: answer.Distro}})
	if err == nil && private(filepath.Join(s.State, "verdict")) && private(s.distroDir()) {
		_ = shims.WriteFile(s.distroPath(q), raw)
	}
}

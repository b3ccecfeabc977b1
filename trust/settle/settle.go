package settle

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"

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
			k.add(sig.Format, itoa(sig.Line), sig.Hint.Identity, sig.Hint.Issuer)
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
	r := request.Request{V: request.Version, ID: itoa(n + 1), Offline: s.Offline,
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

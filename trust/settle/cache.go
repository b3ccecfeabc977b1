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
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
)

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

// HelperMissing says why the verifier is not started, "" if it would be.
func HelperMissing(path string) string {
	if path == "" || !filepath.IsAbs(path) {
		return "its path is not known"
	}
	return safeProgram(path)
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

// Ask starts the verifier once for at most 64 questions. It gets two seconds for each, no
// variable but those that name directories, and its output is bounded.
func Ask(helper, version string, environ []string, list []request.Request) ([]request.Answer, error) {
	input, err := request.Encode(list)
	if err != nil {
		return nil, err
	}
	if len(input) > request.MaxInput {
		return nil, errors.New("the evidence has more than 8 MiB")
	}
	ctx, cancel := context.WithTimeout(context.Background(), request.Patience*time.Duration(len(list)))
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
	var stdout, stderr limited
	stdout.limit, stderr.limit = request.MaxOutput, 4<<10
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("the verifier gave no answer in time")
	case err != nil:
		return nil, errors.New("the verifier ended with " + err.Error())
	case stdout.over:
		return nil, errors.New("the verifier answered with more than 256 KiB")
	}
	return request.Answers(stdout.kept, list, version)
}

// limited keeps the first bytes of a stream.
type limited struct {
	kept  []byte
	limit int
	over  bool
}

func (l *limited) Write(p []byte) (int, error) {
	room := max(l.limit-len(l.kept), 0)
	if len(p) > room {
		l.over = true
		l.kept = append(l.kept, p[:room]...)
		return len(p), nil
	}
	l.kept = append(l.kept, p...)
	return len(p), nil
}

func cutLower(stated string) (algorithm, hex string) {
	algorithm, hex, _ = strings.Cut(strings.ToLower(stated), ":")
	return algorithm, hex
}

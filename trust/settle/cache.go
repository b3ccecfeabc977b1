package settle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
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
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	return ownDir(dir)
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

package approve

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/newfile"
)

// denialLife is how long a "no" answers the same request without asking again.
const denialLife = time.Hour

// NewGrant prepares the grant of a request, to be signed: times is 1 for a grant that
// counts once.
func NewGrant(r Request, approver string, times int) Grant {
	now := time.Now().UTC().Truncate(time.Second)
	g := Grant{V: 1, ID: newGrantID(), Kind: "once", Digest: r.Digest, Created: now, Expires: now.Add(onceLife), Approver: approver}
	if times > 1 {
		g.Kind, g.Times, g.Expires = "times", times, now.Add(timesLife)
	}
	return g
}

// MaxTimes is how often one grant may count at most.
const MaxTimes = maxTimes

func newGrantID() string {
	const letters = "0123456789abcdefghjkmnpqrstvwxyz"
	var id [16]byte
	rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	for i := range id {
		id[i] = letters[id[i]%32]
	}
	return string(id[:])
}

// CheckGrant verifies a grant as the run will, so that whoever made it learns at once
// that it will not count.
func CheckGrant(g Grant, rules Rules) error { return g.check(rules, time.Now()) }

// WriteGrant stores a signed grant where runs look for it.
func WriteGrant(dir string, g Grant) error {
	if err := PrepareGrants(dir); err != nil {
		return err
	}
	sweepGrants(dir, time.Now())
	raw, err := json.Marshal(g)
	if err != nil {
		return &Error{"encode grant for", dir, err}
	}
	return Replace(filepath.Join(dir, g.ID+".json"), append(raw, '\n'))
}

// PrepareGrants makes the directory of grants and tries that it can be written. Inside
// a sandbox of ours it never can.
func PrepareGrants(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{"create", dir, err}
	}
	if err := private(dir); err != nil {
		return &Error{"use", dir, err}
	}
	f, err := os.CreateTemp(dir, newfile.Pattern)
	if err != nil {
		return &Error{"write in", dir, err}
	}
	f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return &Error{"write in", dir, err}
	}
	return nil
}

// sweepGrants removes grants that ended long ago. The marks of spent ones stay: they
// are all that keeps a copied grant from counting after the clock was set back.
func sweepGrants(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > lifetime {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Pending returns the grants that are signed by one of the approvers, valid now and
// not spent, whatever they are for. A run uses them only to say what has changed.
func Pending(dir string, approvers []Approver) []Grant {
	entries, err := os.ReadDir(dir)
	if err != nil || private(dir) != nil {
		return nil
	}
	rules := Rules{Approvers: approvers, Idempotent: true}
	var out []Grant
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		g, err := readGrant(filepath.Join(dir, e.Name()))
		if err != nil || g.ID != name || g.check(rules, time.Now()) != nil || g.left(dir) == 0 {
			continue
		}
		out = append(out, *g)
	}
	return out
}

// RequestOf returns the request with this digest, expired or not.
func RequestOf(dir, digest string) (Request, bool) {
	r, err := read(filepath.Join(dir, idOf(digest)+".json"))
	return r, err == nil && r.Digest == digest
}

// ReadRequest returns the open request with this id.
func ReadRequest(dir, id string) (Request, error) {
	if !validGrantID(id) {
		return Request{}, &Error{"read", id, errors.New("not the id of a request")}
	}
	file := filepath.Join(dir, id+".json")
	r, err := read(file)
	if err == nil && (r.ID != id || !time.Now().Before(r.Expires)) {
		err = &Error{"read", file, errors.New("the request has expired")}
	}
	return r, err
}

// Done removes a request that was answered.
func Done(dir, digest string) { os.Remove(filepath.Join(dir, idOf(digest)+".json")) }

// Deny answers a request with "no".
func Deny(dir string, r Request) error {
	denied := filepath.Join(dir, "denied")
	if err := os.MkdirAll(denied, 0o700); err != nil {
		return &Error{"create", denied, err}
	}
	if err := os.WriteFile(filepath.Join(denied, r.ID), []byte(r.Digest+"\n"), 0o600); err != nil {
		return &Error{"deny in", denied, err}
	}
	Done(dir, r.Digest)
	return nil
}

// Denied reports whether a person said "no" to this plan within the last hour. The
// mark is not signed: it can only make a run stricter.
func Denied(dir, digest string) bool {
	info, err := os.Lstat(filepath.Join(dir, "denied", idOf(digest)))
	return err == nil && time.Since(info.ModTime()) < denialLife
}

// Undeny forgets a "no", when a person approves after all.
func Undeny(dir, digest string) { os.Remove(filepath.Join(dir, "denied", idOf(digest))) }

// StoreGrant stores a grant that another program made. Whether it counts is decided
// by its signature, when a run looks for it.
func StoreGrant(dir string, raw []byte) error {
	g, err := decodeGrant(raw)
	if err != nil {
		return &Error{"read grant for", dir, err}
	}
	if !validGrantID(g.ID) {
		return &Error{"read grant for", dir, errors.New("its id is malformed")}
	}
	return WriteGrant(dir, *g)
}

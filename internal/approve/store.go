package approve

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/newfile"
)

// Bounds of the request directory.
const (
	maxOpen    = 64 // in all
	maxSession = 16 // of one session
	lifetime   = 24 * time.Hour
	maxBytes   = 1 << 20
)

// WriteRequest stores r in dir and returns its id, and the ids of those that made room for it:
// an older request of the same command in the same session, and beyond a bound the oldest of
// the session, or of the session that has the most. So no session keeps another from being
// heard. ID, Created, Expires and Digest are filled in; an open request with the same digest
// is kept as it is. The requests with one of the granted digests stay: they alone can tell
// what has changed since a person permitted them.
func WriteRequest(dir string, r Request, granted ...string) (id string, replaced []string, err error) {
	return writeRequest(dir, r, granted, time.Now())
}

func writeRequest(dir string, r Request, granted []string, now time.Time) (id string, replaced []string, err error) {
	digest, err := Digest(r.Bound)
	if err != nil {
		return "", nil, &Error{"digest for", dir, err}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, &Error{"create", dir, err}
	}
	if err := private(dir); err != nil {
		return "", nil, &Error{"use", dir, err}
	}
	r.V, r.Digest, r.ID = 1, digest, idOf(digest)
	r.Created, r.Expires = now.UTC().Truncate(time.Second), now.UTC().Add(lifetime).Truncate(time.Second)
	file := filepath.Join(dir, r.ID+".json")
	if old, err := read(file); err == nil && old.Digest == digest && now.Before(old.Expires) {
		return old.ID, nil, nil
	}
	open, err := sweep(dir, now)
	if err != nil {
		return "", nil, err
	}
	open = slices.DeleteFunc(open, func(old Request) bool { return slices.Contains(granted, old.Digest) })
	for _, old := range displaced(open, r) {
		if os.Remove(filepath.Join(dir, old.ID+".json")) == nil {
			replaced = append(replaced, old.ID)
		}
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", replaced, &Error{"encode", file, err}
	}
	if len(raw) > maxBytes {
		return "", replaced, &Error{"store", file, fmt.Errorf("%d bytes are too many", len(raw))}
	}
	if err := Replace(file, append(raw, '\n')); err != nil {
		return "", replaced, err
	}
	return r.ID, replaced, nil
}

// sessionOf tells requesters apart: by what an agent calls its session, else by the kernel's.
func sessionOf(r Requester) string {
	if r.Session != "" {
		return r.Session
	}
	return "\x00" + strconv.Itoa(r.SID)
}

// displaced lists which of the open requests make room for r.
func displaced(open []Request, r Request) []Request {
	var out []Request
	sessions, all := map[string][]Request{}, 0
	sortRequests(open)
	for _, old := range open {
		if s := sessionOf(old.Requester); s == sessionOf(r.Requester) && sameCommand(old.Bound, r.Bound) {
			out = append(out, old)
		} else {
			sessions[s] = append(sessions[s], old)
			all++
		}
	}
	drop := func(session string) {
		out, sessions[session] = append(out, sessions[session][0]), sessions[session][1:]
		all--
	}
	for own := sessionOf(r.Requester); len(sessions[own]) >= maxSession; {
		drop(own)
	}
	for all >= maxOpen {
		most := ""
		for s, list := range sessions {
			if have := sessions[most]; len(list) > len(have) || len(list) == len(have) && len(list) > 0 && list[0].Created.Before(have[0].Created) {
				most = s
			}
		}
		drop(most)
	}
	return out
}

// sameCommand reports the same words in the same directory.
func sameCommand(a, b map[string]any) bool {
	if a["argv"] == nil {
		return false
	}
	x, err := Digest(map[string]any{"argv": a["argv"], "cwd": a["cwd"]})
	y, err2 := Digest(map[string]any{"argv": b["argv"], "cwd": b["cwd"]})
	return err == nil && err2 == nil && x == y
}

// sortRequests puts the oldest first.
func sortRequests(list []Request) {
	sort.Slice(list, func(i, j int) bool {
		if !list[i].Created.Equal(list[j].Created) {
			return list[i].Created.Before(list[j].Created)
		}
		return list[i].ID < list[j].ID
	})
}

// idOf derives the id from the digest, so that two processes which ask for the
// same at once write the same file.
func idOf(digest string) string {
	sum := sha256.Sum256([]byte("request\x00" + digest))
	// Without letters that look like digits, as people read ids aloud.
	const letters = "0123456789abcdefghjkmnpqrstvwxyz"
	id := make([]byte, 12)
	for i := range id {
		id[i] = letters[sum[i]%32]
	}
	return string(id)
}

// Replace writes a file of ours in one step.
func Replace(file string, raw []byte) error {
	if err := newfile.Replace(file, raw, 0o600); err != nil {
		return &Error{"write", file, err}
	}
	return nil
}

// sweep removes what has expired or is no request, and lists what is open.
func sweep(dir string, now time.Time) (open []Request, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &Error{"list", dir, err}
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		old := now.Sub(info.ModTime()) > lifetime
		switch {
		case strings.HasPrefix(e.Name(), ".new-"):
			if old {
				os.Remove(file) // its writer died
			}
		case strings.HasSuffix(e.Name(), ".json"):
			r, err := read(file)
			if old && (err != nil || !now.Before(r.Expires)) {
				os.Remove(file)
			} else if err == nil && r.ID+".json" == e.Name() {
				open = append(open, r)
			}
		}
	}
	return open, nil
}

// List returns the open requests of dir, oldest first. A file that is not a request
// of ours is left out: it cannot be shown, so it cannot be granted.
func List(dir string) ([]Request, error) { return list(dir, time.Now()) }

func list(dir string, now time.Time) ([]Request, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{"list", dir, err}
	}
	var out []Request
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		r, err := read(filepath.Join(dir, e.Name()))
		if err != nil || r.ID+".json" != e.Name() || !now.Before(r.Expires) {
			continue
		}
		out = append(out, r)
	}
	sortRequests(out)
	return out, nil
}

// read loads one request: a regular file of ours that nobody else can write, whose
// id, digest and bound object agree.
func read(file string) (Request, error) {
	var r Request
	f, err := openOurs(file)
	if err != nil {
		return r, &Error{"open", file, err}
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+2))
	if err != nil {
		return r, &Error{"read", file, err}
	}
	if len(raw) > maxBytes+1 {
		return r, &Error{"read", file, errors.New("too large")}
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		return r, &Error{"read", file, err}
	}
	bound, err := restore(r.Bound)
	if err != nil {
		return r, &Error{"read", file, err}
	}
	r.Bound = bound.(map[string]any)
	digest, err := Digest(r.Bound)
	if err != nil || digest != r.Digest || r.ID != idOf(digest) || r.V != 1 {
		return r, &Error{"read", file, errors.New("the request does not agree with its digest")}
	}
	return r, nil
}

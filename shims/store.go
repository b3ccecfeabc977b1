package shims

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// Meta is the side file of a document that was fetched or probed. It says what the
// document's own bytes must not: adding to them would break their signature.
type Meta struct {
	V            int       `json:"v"`
	SHA256       string    `json:"sha256"` // of the document's bytes
	Registry     string    `json:"registry,omitempty"`
	URL          string    `json:"url,omitempty"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"lastModified,omitempty"`
	FetchedAt    time.Time `json:"fetchedAt,omitzero"`
	Expires      time.Time `json:"expires,omitzero"`
	AskedBefore  []string  `json:"askedBefore,omitempty"` // registries of higher priority that had none
	ProbedAt     time.Time `json:"probedAt,omitzero"`
}

// Miss is a negative answer that is remembered for a while.
type Miss struct {
	V       int       `json:"v"`
	Kind    MissKind  `json:"kind"`
	Why     string    `json:"why"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
}

// MissKind says what a negative answer means for a tool.
type MissKind string

// Kinds of negative answers. One without a kind is not remembered at all.
const (
	Absent      MissKind = "absent"      // there is no document: lower sources are asked
	Unavailable MissKind = "unavailable" // nobody could say: lower sources are asked
	Refused     MissKind = "refused"     // one came and is not believed: the tool is unknown
)

// NativePath is where the answer of a tool to --agent is kept.
func (d Dirs) NativePath(digest string) string { return d.Data + "/tools/sha256-" + digest + ".json" }

// ShimPath is where the shim of a file is kept.
func (d Dirs) ShimPath(digest string) string { return d.Data + "/shims/sha256/" + digest + ".json" }

// IsDigest reports whether s is a lower-case hexadecimal SHA-256, and so can stand in
// a path.
func IsDigest(s string) bool { return isDigest(s) }

// Store keeps a document under path with its side file, bundle beside it if there is
// one. It is the exact bytes that are kept. Each file is replaced whole and the side
// file comes last, so that whatever interrupts this leaves either the old document or
// one that is believed less.
func Store(path string, raw, bundle []byte, m Meta) error {
	if err := WriteFile(path, raw); err != nil {
		return err
	}
	if bundle != nil {
		if err := WriteFile(path+".bundle", bundle); err != nil {
			return err
		}
	} else if err := remove(path + ".bundle"); err != nil {
		return err
	}
	return StoreMeta(path, raw, m)
}

// StoreMeta renews the side file of a document whose bytes are raw.
func StoreMeta(path string, raw []byte, m Meta) error {
	sum := sha256.Sum256(raw)
	m.V, m.SHA256 = 1, hex.EncodeToString(sum[:])
	side, err := json.Marshal(m)
	if err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path + ".meta", Msg: "cannot be written: " + err.Error(), Err: err}
	}
	if err := WriteFile(path+".meta", append(side, '\n')); err != nil {
		return err
	}
	return remove(path + ".miss")
}

// Cached reads a document that Store kept, with its side file. ok is false unless
// both are there and belong together.
func Cached(path string) (raw []byte, m Meta, ok bool) {
	raw, _, err := readSafe(path)
	if err != nil {
		return nil, m, false
	}
	side, _, err := readSafe(path + ".meta")
	if err != nil || len(side) > 64<<10 || json.Unmarshal(side, &m) != nil || m.V != 1 {
		return nil, Meta{}, false
	}
	sum := sha256.Sum256(raw)
	return raw, m, m.SHA256 == hex.EncodeToString(sum[:])
}

// Fetched reads the side file of a document that came from a registry; ok is false for any
// other document. Whether the bytes are those that came is Cached's answer.
func Fetched(path string) (m Meta, ok bool) {
	side, _, err := readSafe(path + ".meta")
	if err != nil || len(side) > 64<<10 || json.Unmarshal(side, &m) != nil {
		return Meta{}, false
	}
	return m, m.V == 1 && m.Registry != ""
}

// StoreMiss remembers why there is no document for path.
func StoreMiss(path string, kind MissKind, why string, at time.Time, keep time.Duration) error {
	side, err := json.Marshal(Miss{V: 1, Kind: kind, Why: why, At: at.UTC(), Expires: at.UTC().Add(keep)})
	if err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path + ".miss", Msg: "cannot be written: " + err.Error(), Err: err}
	}
	return WriteFile(path+".miss", append(side, '\n'))
}

// Missed reads a negative answer that is still fresh.
func Missed(path string, now time.Time) (Miss, bool) {
	var m Miss
	side, _, err := readSafe(path + ".miss")
	if err != nil || len(side) > 64<<10 || json.Unmarshal(side, &m) != nil || m.V != 1 || m.Kind == "" {
		return Miss{}, false
	}
	// A clock that was wrong once must not keep an answer for ever.
	return m, now.Before(m.Expires) && !now.Before(m.At.Add(-time.Minute))
}

// Forget removes what was fetched or probed for a file: documents that carry a side
// file, and negative answers. What a person wrote stays.
func Forget(d Dirs, digest string) (removed []string, err error) {
	if d.Data == "" || !isDigest(digest) {
		return nil, nil
	}
	paths := []string{d.NativePath(digest), d.ShimPath(digest)}
	if named, err := filepath.Glob(d.Data + "/tools/*-" + digest + ".json"); err == nil {
		paths = append(paths, named...)
	}
	for _, path := range paths {
		gone, err := Drop(path)
		if removed = append(removed, gone...); err != nil {
			return removed, err
		}
		if d.Index != "" && len(gone) > 0 {
			if err := remove(docIndexPath(d.Index, path)); err != nil {
				return removed, err
			}
		}
		if _, err := os.Lstat(path + ".miss"); err == nil {
			if err := remove(path + ".miss"); err != nil {
				return removed, err
			}
			removed = append(removed, path+".miss")
		}
	}
	return removed, nil
}

// Drop removes a document that Store kept. One without a side file was written by a
// person and stays. The side file goes last, so that what is left after a crash still
// counts as fetched.
func Drop(path string) (removed []string, err error) {
	if _, err := os.Lstat(path + ".meta"); err != nil {
		return nil, nil
	}
	for _, file := range []string{path, path + ".bundle", path + ".meta"} {
		if _, err := os.Lstat(file); err != nil {
			continue
		}
		if err := remove(file); err != nil {
			return removed, err
		}
		removed = append(removed, file)
	}
	return removed, nil
}

// Admit checks an answer before it is kept: strict JSON, of a version we read, and
// for this file or, where that is not needed, for no file in particular.
func Admit(raw []byte, digest string, needHash bool) (*atip.Document, error) {
	f := file{path: digest, raw: raw, hash: digest, hashNeeded: needHash}
	return f.parse()
}

// AdmitHere is Admit for a document that is to be used on this machine.
func AdmitHere(raw []byte, digest string) (*atip.Document, error) {
	f := file{path: digest, raw: raw, hash: digest, hashNeeded: true, here: true}
	return f.parse()
}

// RegistryID names the folder of what a registry says about itself.
func RegistryID(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:8])
}

// RegistryDir is where the manifest, the policy and the approvals of a registry are kept.
func (d Dirs) RegistryDir(id string) string { return d.Registries() + "/" + id }

// Registries is where the folders of all registries are.
func (d Dirs) Registries() string {
	if d.Own == "" {
		return d.Data + "/registries"
	}
	return d.Own + "/registries"
}

// ApprovalPath is where a registry's approval of a file is kept: its document about it.
func (d Dirs) ApprovalPath(id, digest string) string {
	return d.RegistryDir(id) + "/approved/" + digest + ".json"
}

// ReadOwned returns the content of a configuration file. Unlike a document it may be
// reached through a link, as those who keep their configuration in a repository do; what
// it leads to must be a file that nobody but this user and root can write.
func ReadOwned(file string, limit int64) ([]byte, error) {
	f, err := regular.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if _, there := os.Lstat(file); there == nil {
			return nil, unsafeFile(file, "is a link to nothing", err)
		}
		return nil, fs.ErrNotExist
	case errors.Is(err, regular.ErrNot):
		return nil, unsafeFile(file, "is not a regular file", nil)
	case err != nil:
		return nil, unsafeFile(file, "cannot be opened: "+err.Error(), err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unsafeFile(file, "cannot be examined: "+err.Error(), err)
	}
	uid, gid, told := owner.Of(info)
	switch mode := info.Mode().Perm(); {
	case told && uid != os.Geteuid() && uid != 0:
		return nil, unsafeFile(file, "belongs to another user", nil)
	case told && (mode&0o002 != 0 || mode&0o020 != 0 && gid != uid): // a user-private group has the number of its user
		return nil, unsafeFile(file, "is writable by others", nil)
	case info.Size() > limit:
		return nil, unsafeFile(file, "is larger than "+strconv.FormatInt(limit>>10, 10)+" KiB", nil)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(raw)) > limit {
		return nil, unsafeFile(file, "changed while it was read", err)
	}
	return raw, nil
}

func unsafeFile(file, msg string, err error) *Error {
	return &Error{Code: errcode.MetadataUnsafe, File: file, Msg: msg, Err: err}
}

// WriteFile replaces a file of ours in one step, and makes its directory.
func WriteFile(path string, raw []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = newfile.Replace(path, raw, 0o600)
	}
	if err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path, Msg: "cannot be written: " + err.Error(), Err: err}
	}
	return nil
}

// Locked calls f while no other process holds the lock of path.
func Locked(path string, f func() error) error {
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path + ".lock", Msg: "cannot be locked: " + err.Error(), Err: err}
	}
	defer unlock()
	return f()
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{Code: errcode.MetadataUnsafe, File: path, Msg: "cannot be removed: " + err.Error(), Err: err}
	}
	return nil
}

// Sweep removes what writers that were killed left behind: new files that were never
// put in place. An hour is far longer than any write.
func Sweep(d Dirs, now time.Time) error {
	if d.Data == "" {
		return nil
	}
	for _, dir := range [...]string{d.Data, d.Data + "/tools", d.Data + "/shims/sha256", d.Registries() + "/*", d.Registries() + "/*/approved"} {
		left, err := filepath.Glob(dir + "/" + newfile.Pattern)
		if err != nil {
			return &Error{Code: errcode.MetadataUnsafe, File: d.Data, Msg: "cannot be listed: " + err.Error(), Err: err}
		}
		for _, file := range left {
			if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > time.Hour {
				if err := remove(file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

package filter

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/newfile"
)

// TagKey keys the tags of placeholders: equal values get equal tags within a
// login, and nobody without the key can test a guess against a tag.
type TagKey [32]byte

const (
	keyDir  = "atip-exec"
	keyFile = "redact.key"
	// keyAge is how long a key lives where no runtime directory ends it.
	keyAge = 24 * time.Hour
)

// noTagKey says that no key could be kept: tags are good for this run only.
func noTagKey(path string, err error) error {
	return &errcode.Error{Code: errcode.CommandNotFound, Msg: fmt.Sprintf("tag key %s: %v; tags of this run are not comparable with others", path, err), Details: map[string]any{"path": path}, Err: err}
}

// LoadTagKey reads the key of this login or makes one. runtimeDir is
// $XDG_RUNTIME_DIR, stateDir $XDG_STATE_HOME; the second is used only if the first
// is empty. On error it returns a random key, good for this run, and the error
// that says why: a warning, not a reason to stop.
func LoadTagKey(runtimeDir, stateDir string) (TagKey, error) {
	dir, boot := runtimeDir, ""
	if dir == "" {
		dir, boot = stateDir, bootID()
	}
	var k TagKey
	if dir == "" {
		rand.Read(k[:])
		return k, noTagKey(keyFile, errors.New("neither a runtime nor a state directory is known"))
	}
	dir = filepath.Join(dir, keyDir)
	path := filepath.Join(dir, keyFile)
	k, err := loadTagKey(dir, path, boot, runtimeDir == "")
	if err != nil {
		rand.Read(k[:])
		return k, noTagKey(path, err)
	}
	return k, nil
}

// loadTagKey reads or makes the key file: the key, then the boot id if the key
// has to end with the boot.
func loadTagKey(dir, path, boot string, ends bool) (TagKey, error) {
	for try := 0; ; try++ {
		k, stale, err := readTagKey(path, boot, ends)
		if err == nil && !stale {
			return k, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) || try == 3 {
			return k, err
		}
		if err := privateDir(dir); err != nil {
			return k, err
		}
		if err := makeTagKey(path, boot, stale); err != nil {
			return k, err
		}
	}
}

// privateDir makes the directory and makes sure that it is ours alone.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkOwn(dir)
}

// makeTagKey puts a key into place: the first of several writers wins, and no reader sees half
// a key.
func makeTagKey(path, boot string, replace bool) error {
	var k TagKey
	rand.Read(k[:])
	raw := append(k[:], boot...)
	if replace {
		return newfile.Replace(path, raw, 0o600)
	}
	if err := newfile.Create(path, raw, 0o600); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(b) > 64 {
		return ""
	}
	return string(b)
}

// Package delegation keeps the key with which a user delegates, and makes and verifies the tokens
// of delegations.
package delegation

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// Variable carries the token of a delegation to the runs under it.
const Variable = "ATIP_DELEGATION"

// Inherit puts the token that a descriptor holds, ATIP_DELEGATION=fd:N, into the
// variable itself: it can be read once only. What cannot be read is no token, and lets
// nothing run.
func Inherit() {
	text, ok := strings.CutPrefix(os.Getenv(Variable), "fd:")
	if !ok {
		return
	}
	token := "unreadable"
	if fd, err := strconv.Atoi(text); err == nil && fd > 2 {
		f := os.NewFile(uintptr(fd), "delegation")
		if raw, err := io.ReadAll(io.LimitReader(f, approve.MaxToken+1)); err == nil && len(raw) > 0 {
			token = strings.TrimSpace(string(raw))
		}
		f.Close()
	}
	os.Setenv(Variable, token)
}

// Narrows reports, as nil, that a token may take the place of the one that a run is under ("" for none):
// it must be that one or more of it. Any other would be a way out.
func Narrows(token, own string) error {
	if token == "" || token == own || own == "" || approve.Extends(token, own) {
		return nil
	}
	return &approve.TokenError{Why: "it is not derived from the token of the parent run"}
}

// maxKey bounds what is read of a key, in bytes.
const maxKey = 1024

// publicKey reads the public half of the key. It lies in the configuration directory, which a confined run can read
// and not write: it has to verify, and must not need a secret for it.
func publicKey(config string) (ed25519.PublicKey, error) {
	f, err := regular.Open(filepath.Join(config, "delegation.pub"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this user never delegated anything")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if why := owner.ForeignWriter(f.Name(), info, os.Geteuid()); why != "" {
		return nil, errors.New("delegation.pub " + why)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("delegation.pub is malformed")
	}
	return key, nil
}

// Chain verifies a token and returns its blocks, the first one first.
func Chain(config, token string) ([]approve.Block, error) {
	root, err := publicKey(config)
	if err != nil {
		return nil, &approve.TokenError{Why: err.Error()}
	}
	return approve.VerifyToken(token, root, time.Now())
}

// Delegate makes a token that takes away what b says: a first one, or one block more
// for the token that is held.
func Delegate(dirs place.Dirs, held string, b approve.Block, final bool) (string, error) {
	var token string
	if held != "" {
		root, err := publicKey(dirs.Config)
		if err != nil {
			return "", &approve.TokenError{Why: err.Error()}
		}
		token, err = approve.AppendToken(held, root, b)
		if err != nil {
			return "", err
		}
	} else {
		key, err := privateKey(dirs)
		if err != nil {
			return "", &approve.TokenError{Why: "no key to delegate with: " + err.Error()}
		}
		if token, err = approve.NewToken(key, b); err != nil {
			return "", err
		}
	}
	if final {
		return approve.CloseToken(token)
	}
	return token, nil
}

// privateKey reads the key of the first block, and makes it when it is first used. Of two
// that make one at once, the first counts; the public half always follows the key.
func privateKey(dirs place.Dirs) (ed25519.PrivateKey, error) {
	file, public := filepath.Join(dirs.State, "grants", "delegation.key"), filepath.Join(dirs.Config, "delegation.pub")
	for _, dir := range []string{filepath.Dir(file), dirs.Config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	raw, err := regular.Read(file, maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(file); err != nil {
			return nil, err
		}
		raw, err = regular.Read(file, maxKey)
	}
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New(file + " is malformed")
	}
	key := ed25519.NewKeyFromSeed(seed)
	text := hex.EncodeToString(key.Public().(ed25519.PublicKey)) + "\n"
	if was, err := regular.Read(public, maxKey); err == nil && string(was) == text {
		return key, nil
	}
	return key, approve.Replace(public, []byte(text))
}

// makeKey makes the file whole or not at all, and never in place of another.
func makeKey(file string) error {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	err := newfile.Create(file, []byte(hex.EncodeToString(seed)+"\n"), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Package toollock reads the files that say which executables and which metadata the tools of a
// user or a project are.
package toollock

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Where the locks are.
const (
	UserFile    = "lock.json"                 // in the configuration directory
	ProjectFile = place.OwnDir + "/lock.json" // in the workspace
)

const maxSize = 1 << 20

// Tool is what a lock says about one tool on one platform.
type Tool struct {
	Digest   string `json:"digest"`             // "sha256:" of the executable
	Document string `json:"document,omitempty"` // "sha256:" of its metadata
	Source   string `json:"source,omitempty"`   // where that came from
	// Signer is the identity or key that was proven to have signed the executable, and
	// Provenance the builder that was proven to have built it.
	Signer     string `json:"signer,omitempty"`
	Provenance string `json:"provenance,omitempty"`
}

// Lock is a lock file: tool, platform, what was found there when it was locked.
type Lock map[string]map[string]Tool

// Platform is the name of this one in locks and documents.
func Platform() string { return runtime.GOOS + "-" + runtime.GOARCH }

// Read reads a lock file strictly; a missing one is empty.
func Read(file string) (Lock, error) {
	bad := func(n *atip.Node, msg string) error {
		f := fault.New(errcode.TrustConfig, "lock "+file+": "+msg).With("file", file)
		if n != nil {
			f.With("line", n.Line).With("column", n.Col)
		}
		return f
	}
	raw, err := shims.ReadOwned(file, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		var unsafe *shims.Error
		if errors.As(err, &unsafe) {
			return nil, bad(nil, unsafe.Msg)
		}
		return nil, bad(nil, err.Error())
	}
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: maxSize})
	if err != nil {
		return nil, bad(nil, err.Error())
	}
	lock := Lock{}
	tools := root.Get("tools")
	if tools == nil || tools.Kind != atip.KindObject || len(root.Items) != 1 {
		return nil, bad(root, "must be an object whose only key is tools")
	}
	for _, tool := range tools.Items {
		if tool.Kind != atip.KindObject {
			return nil, bad(tool, tool.Key+" is not an object of platforms")
		}
		lock[tool.Key] = map[string]Tool{}
		for _, platform := range tool.Items {
			var t Tool
			for _, m := range platform.Items {
				to, ok := map[string]*string{"digest": &t.Digest, "document": &t.Document, "source": &t.Source, "signer": &t.Signer, "provenance": &t.Provenance}[m.Key]
				if !ok || m.Kind != atip.KindString {
					return nil, bad(m, "unknown key or no text: "+m.Key)
				}
				*to = m.Text
			}
			if !isDigest(t.Digest) || t.Document != "" && !isDigest(t.Document) {
				return nil, bad(platform, "digest and document are sha256: and 64 hexadecimal digits")
			}
			lock[tool.Key][platform.Key] = t
		}
	}
	return lock, nil
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && shims.IsDigest(hex)
}

// digests is what the lock says about executables on this platform.
func (l Lock) digests() map[string]string {
	var out map[string]string
	for name, platforms := range l {
		if t, ok := platforms[Platform()]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = strings.TrimPrefix(t.Digest, "sha256:")
		}
	}
	return out
}

// Locks are those in force: the user's vouches for what it names, a project's only
// asks about what is different.
type Locks struct{ User, Project Lock }

// ReadLocks reads the lock of a user and that of a project; "" where there is none.
func ReadLocks(config, workspace string) (l Locks, err error) {
	if config != "" {
		if l.User, err = Read(filepath.Join(config, UserFile)); err != nil {
			return l, err
		}
	}
	if workspace != "" {
		l.Project, err = Read(filepath.Join(workspace, ProjectFile))
	}
	return l, err
}

// Trust adds the locks to a trust policy.
func (l Locks) Trust(t trust.Policy) trust.Policy {
	t.Locked, t.LockedByProject = l.User.digests(), l.Project.digests()
	return t
}

// Signers notes where a lock names another signer or builder than was proven here.
func (l Locks) Signers(id trust.Identity, settled []trust.Settled) {
	if len(settled) == 0 {
		return
	}
	for _, lock := range [...]Lock{l.User, l.Project} {
		for _, name := range [...]string{id.Invoked, id.Effective} {
			t, ok := lock[name][Platform()]
			if ok && !t.Proven(settled[0]) {
				settled[0].SignerLock = true
			}
		}
	}
}

// Proven reports whether what the lock says of signer and builder is what was proven.
func (t Tool) Proven(s trust.Settled) bool {
	if t.Signer == "" && t.Provenance == "" {
		return true
	}
	e := s.Evidence
	return s.Proven() && e != nil && (t.Signer == "" || t.Signer == e.Identity) && (t.Provenance == "" || t.Provenance == e.Builder)
}

// Differs reports whether a lock has other metadata for a tool than that of this digest.
func (l Locks) Differs(id trust.Identity, digest string) bool {
	for _, lock := range [...]Lock{l.User, l.Project} {
		for _, name := range [...]string{id.Invoked, id.Effective} {
			t, ok := lock[name][Platform()]
			if ok && t.Document != "" && t.Document != "sha256:"+digest {
				return true
			}
		}
	}
	return false
}

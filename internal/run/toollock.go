package run

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// ProjectToolLock is where a repository keeps which files its tools are.
const ProjectToolLock = place.OwnDir + "/lock.json"

const maxToolLock = 1 << 20

// LockedTool is what a lock says about one tool on one platform.
type LockedTool struct {
	Digest   string `json:"digest"`             // "sha256:" of the executable
	Document string `json:"document,omitempty"` // "sha256:" of its metadata
	Source   string `json:"source,omitempty"`   // where that came from
	// Signer is the identity or key that was proven to have signed the executable, and
	// Provenance the builder that was proven to have built it.
	Signer     string `json:"signer,omitempty"`
	Provenance string `json:"provenance,omitempty"`
}

// ToolLock is a lock file: tool, platform, what was found there when it was locked.
type ToolLock map[string]map[string]LockedTool

// Platform is the name of this one in locks and documents.
func Platform() string { return runtime.GOOS + "-" + runtime.GOARCH }

// ReadToolLock reads a lock file strictly; a missing one is empty.
func ReadToolLock(file string) (ToolLock, error) {
	bad := func(n *atip.Node, msg string) error {
		f := fault.New(errcode.TrustConfig, "lock "+file+": "+msg).With("file", file)
		if n != nil {
			f.With("line", n.Line).With("column", n.Col)
		}
		return f
	}
	raw, err := shims.ReadOwned(file, maxToolLock)
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
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: maxToolLock})
	if err != nil {
		return nil, bad(nil, err.Error())
	}
	lock := ToolLock{}
	tools := root.Get("tools")
	if tools == nil || tools.Kind != atip.KindObject || len(root.Items) != 1 {
		return nil, bad(root, "must be an object whose only key is tools")
	}
	for _, tool := range tools.Items {
		if tool.Kind != atip.KindObject {
			return nil, bad(tool, tool.Key+" is not an object of platforms")
		}
		lock[tool.Key] = map[string]LockedTool{}
		for _, platform := range tool.Items {
			var t LockedTool
			for _, m := range platform.Items {
				to, ok := map[string]*string{"digest": &t.Digest, "document": &t.Document, "source": &t.Source, "signer": &t.Signer, "provenance": &t.Provenance}[m.Key]
				if !ok || m.Kind != atip.KindString {
					return nil, bad(m, "unknown key or no text: "+m.Key)
				}
				*to = m.Text
			}
			if !isLockDigest(t.Digest) || t.Document != "" && !isLockDigest(t.Document) {
				return nil, bad(platform, "digest and document are sha256: and 64 hexadecimal digits")
			}
			lock[tool.Key][platform.Key] = t
		}
	}
	return lock, nil
}

func isLockDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && shims.IsDigest(hex)
}

// digests is what the lock says about executables on this platform.
func (l ToolLock) digests() map[string]string {
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

// toolLocks are those in force: the user's vouches for what it names, a project's only
// asks about what is different.
type toolLocks struct{ user, project ToolLock }

func (p *Plan) loadToolLocks() (err error) {
	if p.dirs.Config != "" {
		if p.locks.user, err = ReadToolLock(filepath.Join(p.dirs.Config, "lock.json")); err != nil {
			return err
		}
	}
	if p.Workspace != "" {
		p.locks.project, err = ReadToolLock(filepath.Join(p.Workspace, ProjectToolLock))
	}
	return err
}

// Locked adds the locks to a trust policy.
func (l toolLocks) locked(t trust.Policy) trust.Policy {
	t.Locked, t.LockedByProject = l.user.digests(), l.project.digests()
	return t
}

// TrustLock adds a user's lock to a trust policy.
func TrustLock(t trust.Policy, user ToolLock) trust.Policy { return toolLocks{user: user}.locked(t) }

// signers notes where a lock names another signer or builder than was proven here.
func (l toolLocks) signers(id trust.Identity, settled []trust.Settled) {
	if len(settled) == 0 {
		return
	}
	for _, lock := range [...]ToolLock{l.user, l.project} {
		for _, name := range [...]string{id.Invoked, id.Effective} {
			t, ok := lock[name][Platform()]
			if ok && !t.Proven(settled[0]) {
				settled[0].SignerLock = true
			}
		}
	}
}

// Proven reports whether what the lock says of signer and builder is what was proven.
func (t LockedTool) Proven(s trust.Settled) bool {
	if t.Signer == "" && t.Provenance == "" {
		return true
	}
	e := s.Evidence
	return s.Proven() && e != nil && (t.Signer == "" || t.Signer == e.Identity) && (t.Provenance == "" || t.Provenance == e.Builder)
}

// lockedDocument asks about a tool whose metadata is another than when it was locked.
func (p *Plan) lockedDocument(s *effects.Step) {
	if len(p.locks.user) == 0 && len(p.locks.project) == 0 || s.Missing != nil {
		return
	}
	for _, lock := range []ToolLock{p.locks.user, p.locks.project} {
		for _, name := range []string{s.ID.Invoked, s.ID.Effective} {
			t, ok := lock[name][Platform()]
			if ok && t.Document != "" && t.Document != "sha256:"+s.Call.Provenance.Digest && s.Verdict.Action >= trust.Confirm {
				s.Verdict.Action, s.Verdict.Reason, s.Verdict.Stage = trust.Confirm, "lock_mismatch", "policy"
				s.Trust = effects.TrustFacts(s.Verdict)
			}
		}
	}
}

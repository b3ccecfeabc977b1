package approve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// LockNamespace is the SSHSIG namespace of approvals.lock.
const LockNamespace = "atip-exec-lock@v1"

const maxLock = 1 << 20

// Lock lists what CI may do although it would need a person. It lies in the
// repository; its signature, by a key that is named elsewhere, is what counts.
type Lock struct {
	Version    int         `json:"version"`
	Entries    []LockEntry `json:"entries"`
	Signatures []string    `json:"signatures"`
}

// LockEntry permits one plan by its digest, or the effects of one command.
type LockEntry struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"` // digest, effects
	Digest  string     `json:"digest,omitempty"`
	Scope   *LockScope `json:"scope,omitempty"`
	Bind    LockBind   `json:"bind"`
	Reason  string     `json:"reason"`
	Expires time.Time  `json:"expires"`
}

// LockScope is what an entry of kind effects covers.
type LockScope struct {
	Tool    string   `json:"tool"`
	Command []string `json:"command"`
	Effects []string `json:"effects"`
}

// LockBind narrows an entry to a repository, a workflow or a ref, as CI names them.
type LockBind struct {
	Repository string `json:"repository,omitempty"`
	Workflow   string `json:"workflow,omitempty"`
	Ref        string `json:"ref,omitempty"`
}

// ReadLock reads a lock file strictly. Its owner and mode do not matter: a checkout's
// files are whose they are, and only the signature makes it count.
func ReadLock(file string) (*Lock, error) {
	raw, err := regular.Read(file, maxLock)
	if errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, Unreliable(file, err)
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	var l Lock
	err = d.Decode(&l)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("text after the object")
		}
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return nil, Unreliable(file, err)
	}
	return &l, nil
}

func (l *Lock) check() error {
	if l.Version != 1 {
		return fmt.Errorf("version %d", l.Version)
	}
	seen := map[string]bool{}
	for _, e := range l.Entries {
		switch {
		case e.ID == "" || seen[e.ID]:
			return fmt.Errorf("the id %q is empty or there twice", e.ID)
		case e.Kind == "digest" && (!strings.HasPrefix(e.Digest, "sha256:") || e.Scope != nil):
			return fmt.Errorf("entry %s: an entry of kind digest has a digest and no scope", e.ID)
		case e.Kind == "effects" && (e.Scope == nil || e.Scope.Tool == "" || e.Digest != ""):
			return fmt.Errorf("entry %s: an entry of kind effects has a scope with a tool and no digest", e.ID)
		case e.Kind != "digest" && e.Kind != "effects":
			return fmt.Errorf("entry %s: unknown kind %q", e.ID, e.Kind)
		case e.Expires.IsZero():
			return fmt.Errorf("entry %s does not expire", e.ID)
		}
		seen[e.ID] = true
		if e.Scope == nil {
			continue
		}
		for _, name := range e.Scope.Effects {
			switch name {
			case "write", "delete", "network", "remoteMutation":
			default:
				return fmt.Errorf("entry %s: %s is permitted by digest only", e.ID, name)
			}
		}
	}
	return nil
}

// Signed is the text that is signed: everything but the signatures.
func (l *Lock) Signed() ([]byte, error) {
	var entries []any
	for _, e := range l.Entries {
		m := map[string]any{"id": e.ID, "kind": e.Kind, "digest": e.Digest, "reason": e.Reason, "expires": e.Expires.UTC().Format(time.RFC3339),
			"bind": map[string]any{"repository": e.Bind.Repository, "workflow": e.Bind.Workflow, "ref": e.Bind.Ref}}
		if e.Scope != nil {
			m["scope"] = map[string]any{"tool": e.Scope.Tool, "command": e.Scope.Command, "effects": e.Scope.Effects}
		}
		entries = append(entries, m)
	}
	return appendCanonical(nil, map[string]any{"version": l.Version, "entries": entries}, 0)
}

// Verify checks that one of the keys signed the lock as it stands.
func (l *Lock) Verify(keys []string) error {
	text, err := l.Signed()
	if err != nil {
		return err
	}
	for _, armoured := range l.Signatures {
		s, err := parseSignature(armoured)
		if err != nil {
			continue
		}
		for _, line := range keys {
			if key, err := keyBlob(line); err == nil && s.verify(key, LockNamespace, text) == nil {
				return nil
			}
		}
	}
	return errors.New("no signature of it by a known key fits")
}

// WriteLock stores a lock in the work tree.
func WriteLock(file string, l *Lock) error {
	if err := l.check(); err != nil {
		return Unreliable(file, err)
	}
	if l.Signatures == nil {
		l.Signatures = []string{}
	}
	raw, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, append(raw, '\n'), 0o644)
	}
	if err != nil {
		return Unreliable(file, err)
	}
	return nil
}

// LockDigest is the digest of a plan as CI knows it: of its bound object without what
// differs from one checkout to the next (host, user, session, where the workspace
// lies, the values of variables and the paths of the sandbox that follow from them).
func LockDigest(bound map[string]any) (string, error) {
	workspace, _ := bound["workspace"].(string)
	own := map[string]any{}
	for _, key := range [...]string{"argv", "cwd", "steps", "rules", "files", "stdin", "policy", "needs", "terminal", "timeout", "credentials", "own"} {
		own[key] = portable(bound[key], workspace)
	}
	return Digest(own)
}

// portable replaces the path of the workspace in a value by a byte that no path and
// no word of a command can hold.
func portable(v any, workspace string) any {
	switch x := v.(type) {
	case string:
		if workspace == "" {
			return x
		}
		return strings.ReplaceAll(x, workspace, "\x00")
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = portable(x[i], workspace)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			if rest, ok := strings.CutPrefix(k, workspace+"/"); ok && workspace != "" {
				k = "./" + rest
			}
			out[k] = portable(e, workspace)
		}
		return out
	}
	return v
}

// Unreliable says that a list of approvers or a lock file cannot be relied on. Whoever could
// change it could approve, so nothing that needs a person runs until it is put right.
func Unreliable(file string, err error) error {
	e := errcode.InFile(errcode.ApproverFile, file, err.Error())
	e.Err = err
	return e
}

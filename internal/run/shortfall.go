package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sayShortfall tells what this machine cannot keep and the built-in policy goes without:
// once in a session of an agent, or a day where none has a name. Who never reads receipts
// should know it, and who hears it with each command stops listening.
func (x *execution) sayShortfall() {
	p := x.plan
	gaps, why := p.Setup.Shortfall()
	if len(gaps) == 0 || p.inside() {
		return
	}
	names := make([]string, len(gaps))
	for i, g := range gaps {
		names[i] = string(g.Guarantee)
	}
	list := strings.Join(names, ", ")
	if p.firstInSession(list) {
		x.warn("tier " + p.Setup.Tier().String() + " is the highest of this machine (" + why + "); not kept here: " + list + "; atip doctor says more")
	}
}

// firstInSession reports whether this session of an agent, or this day where none has a name,
// was not told yet.
func (p *Plan) firstInSession(what string) bool {
	session := p.session()
	if session == "" {
		session = time.Now().UTC().Format(time.DateOnly)
	}
	return firstTime(filepath.Join(p.dirs.State, "said"), session+"\x00"+what)
}

// firstTime reports whether nobody has asked for key, and forgets what was asked long ago.
// What cannot be remembered is said again.
func firstTime(dir, key string) bool {
	sum := sha256.Sum256([]byte(key))
	name := filepath.Join(dir, hex.EncodeToString(sum[:16]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return true
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return !errors.Is(err, fs.ErrExist)
	}
	f.Close()
	const remembered = 48 * time.Hour
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > remembered {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	return true
}

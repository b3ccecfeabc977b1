package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// Fingerprint is what must be the same for a key to mean the same.
func (p *Plan) Fingerprint() string {
	cwd, err := filepath.EvalSymlinks(p.Cwd)
	if err != nil {
		cwd = p.Cwd
	}
	raw, _ := json.Marshal([]any{p.Invocation.Argv, p.Invocation.IsShell, p.Invocation.Shell, p.Invocation.ShellArgs, p.Invocation.ShellSet, cwd, p.Steps[0].ID.Digest, p.Machine.UID, p.boundStdin(), p.Invocation.Ceiling})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Idempotent reports that all commands of the run can be repeated.
func (p *Plan) Idempotent() bool {
	for _, s := range p.Steps {
		f := s.Call.Effects[atip.Idempotent]
		// What is said of a builtin says nothing of a file that it is redirected to.
		redirected := strings.HasPrefix(f.Source, "shell:") && s.Call.Effects[atip.Write].Value != atip.No
		if f.Value != atip.Yes || redirected {
			return false
		}
	}
	return true
}

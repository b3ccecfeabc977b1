package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// observeSlots bounds what is remembered of failed plans: one file for each slot, and a
// newer plan takes the place of an older one.
const observeSlots = 1024

// Observed reports whether the system calls of this run are listened to: because the
// command line or the policy says so, or because policy says "auto" and the same plan ended
// with something like a refusal when it last ran. A policy that says "off" has the last word.
func (p *Plan) Observed() bool {
	switch p.Policies.Sandbox().Observe {
	case "off":
		return false
	case "on":
		return true
	case "auto":
		if !p.Invocation.ExplainDenials {
			file, key := p.ObserveSlot()
			was, err := regular.Read(file, 256)
			return file != "" && err == nil && bytes.Equal(was, key)
		}
	}
	return p.Invocation.ExplainDenials
}

// ObserveSlot is where a failure of this plan is remembered, and as what.
func (p *Plan) ObserveSlot() (file string, key []byte) {
	if p.innerState != "" || p.Dirs.State == "" {
		return "", nil
	}
	h := sha256.New()
	for _, part := range append([]string{p.Cwd, p.Steps[0].ID.Digest}, p.Invocation.Words()...) {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	sum := h.Sum(nil)
	slot := (int(sum[0])<<8 | int(sum[1])) % observeSlots
	return filepath.Join(p.Dirs.State, "observe", strconv.Itoa(slot)), []byte(hex.EncodeToString(sum) + "\n")
}

// ObserveRefused says why the flag has no effect, "" if it has.
func (p *Plan) ObserveRefused() string {
	if p.Invocation.ExplainDenials && p.Policies.Sandbox().Observe == "off" {
		return "--explain-denials has no effect: the policy says sandbox.observe off"
	}
	return ""
}

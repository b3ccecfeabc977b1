package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/sandbox"
)

// observeSlots bounds what is remembered of failed plans: one file for each slot, and a
// newer plan takes the place of an older one.
const observeSlots = 1024

// observed reports whether the system calls of this run are listened to: because the
// command line or the policy says so, or because policy says "auto" and the same plan ended
// with something like a refusal when it last ran. A policy that says "off" has the last word.
func (p *Plan) observed() bool {
	switch p.policies.Sandbox().Observe {
	case "off":
		return false
	case "on":
		return true
	case "auto":
		if !p.inv.ExplainDenials {
			file, key := p.observeSlot()
			was, err := regular.Read(file, 256)
			return file != "" && err == nil && bytes.Equal(was, key)
		}
	}
	return p.inv.ExplainDenials
}

// observeSlot is where a failure of this plan is remembered, and as what.
func (p *Plan) observeSlot() (file string, key []byte) {
	if p.innerState != "" || p.dirs.State == "" {
		return "", nil
	}
	h := sha256.New()
	for _, part := range append([]string{p.Cwd, p.steps[0].ID.Digest}, p.inv.words()...) {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	sum := h.Sum(nil)
	slot := (int(sum[0])<<8 | int(sum[1])) % observeSlots
	return filepath.Join(p.dirs.State, "observe", strconv.Itoa(slot)), []byte(hex.EncodeToString(sum) + "\n")
}

// rememberFailure keeps in mind whether this plan should be observed the next time. What
// was observed is told already, and what did not fail needs no telling.
func (x *execution) rememberFailure(exit sandbox.Exit, guessed bool) {
	p := x.plan
	if p.policies.Sandbox().Observe != "auto" {
		return
	}
	file, key := p.observeSlot()
	if file == "" {
		return
	}
	if exit.Code == 0 || !guessed {
		if was, err := regular.Read(file, 256); err == nil && bytes.Equal(was, key) && exit.Code == 0 {
			_ = os.Remove(file)
		}
		return
	}
	// A failure that cannot be kept in mind is told as a guess once more.
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = approve.Replace(file, key)
}

// observeRefused says why the flag has no effect, "" if it has.
func (p *Plan) observeRefused() string {
	if p.inv.ExplainDenials && p.policies.Sandbox().Observe == "off" {
		return "--explain-denials has no effect: the policy says sandbox.observe off"
	}
	return ""
}

// Package authority says what registries, signatures and locks know of executables and of the
// documents about them.
package authority

import (
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// Authority answers for one run. It is the effects.Authority of a Site. Its methods are called by
// one goroutine.
type Authority struct {
	Machine caller.Machine
	Dirs    place.Dirs
	Shims   shims.Dirs
	Policy  policy.TrustPolicy
	Locks   toollock.Locks
	Memo    *effects.Memo // what a batch has looked up; nil otherwise
	Began   time.Time     // of the run: what had expired then is old
	Starts  bool          // something will be started, so that registries may be asked
	Refresh bool          // registries are asked again
	Warn    func(string)
	Pending func(string) // is told what a run would still ask

	askUntil time.Time       // when registries must have answered; zero until one is asked
	settles  *settle.Session // what is known of signatures; nil until one is asked about
}

// Document is what is known about a tool, if it may be believed.
func (a *Authority) Document(s *step.Step, q shims.Query) (shims.Found, error) {
	found, err := a.metadata(q)
	if err == nil {
		err = a.judgeDocument(s, &found)
	}
	return found, err
}

// Locked makes a step ask whose file or document is another than the lock says.
func (a *Authority) Locked(s *step.Step) {
	if s.Missing == nil && s.Verdict.Action >= trust.Confirm && a.Locks.Differs(s.ID, s.Call.Provenance.Digest) {
		s.Verdict.Action, s.Verdict.Reason, s.Verdict.Stage = trust.Confirm, "lock_mismatch", "policy"
		s.Trust = step.TrustFacts(s.Verdict)
	}
}

// TrustPolicy is what trust.Decide needs, with the locks.
func (a *Authority) TrustPolicy() trust.Policy { return a.Locks.Trust(TrustPolicyOf(a.Policy)) }

package sandbox

import (
	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
)

// listening is who answers the calls of a run that its filter asks about.
type listening struct {
	gate     *gate.Gate // nil if starts are not decided
	observer *observer  // nil if nothing is observed
	ended    <-chan struct{}
}

// answer begins to serve the listener of the run, at once: the next thing that the stage does
// is an execve, which waits for it.
func (w *worker) answer(l gate.Listener) (listening, error) {
	unix.CloseOnExec(int(l))
	var out listening
	if w.cmd.Observe {
		o, err := newObserver(l, w.setup, w.directory())
		if err != nil {
			unix.Close(int(l))
			return out, err
		}
		out.observer = o
	}
	if w.cmd.Gate == nil {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.Serve(func(n *gate.Notification) { l.Answer(out.observer.respond(n)) })
			unix.Close(int(l))
		}()
		out.ended = ended
		return out, nil
	}
	c := gate.Config{Rules: *w.cmd.Gate, Reaped: w.setup.tier != T3}
	if o := out.observer; o != nil {
		c.Other, c.Seen = o.respond, o.look
	}
	out.gate = gate.Serve(l, c)
	out.ended = out.gate.Ended()
	return out, nil
}

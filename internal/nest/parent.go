package nest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/signals"
)

// Parent is the way of a run to its parent run. It takes the place of the audit log there.
type Parent struct {
	to  *os.File // nil if there is no way
	run string
}

// ToParent takes over the socket that the variables name. A process has one descriptor for
// it: take it once.
func ToParent(getenv func(string) string) *Parent {
	p := &Parent{run: getenv(RunVariable)}
	if text, ok := strings.CutPrefix(getenv(ParentVariable), "fd:"); ok {
		if fd, err := strconv.Atoi(text); err == nil && fd > 2 {
			p.to = inherited(fd)
		}
	}
	return p
}

// Reachable reports whether there is a socket to the parent run.
func (p *Parent) Reachable() bool { return p.to != nil }

// Append sends what an outer run keeps of a record. That it arrives is not promised.
func (p *Parent) Append(rec any) (string, error) {
	var raw []byte
	var id string
	var err error
	switch r := rec.(type) {
	case audit.Encoded:
		raw, id = r.Object, r.ID
	default:
		raw, err = json.Marshal(rec)
	}
	var r Record
	if err != nil || json.Unmarshal(raw, &r) != nil || p.to == nil {
		return id, nil
	}
	if id != "" {
		r.ID = id
	}
	r.Parent = p.run
	p.send(r)
	return id, nil
}

// send shortens a record until it fits.
func (p *Parent) send(r Record) {
	if p.to == nil {
		return
	}
	out, err := json.Marshal(r)
	for err == nil && len(out) > maxRecord && len(r.Argv) > 0 {
		r.Argv = r.Argv[:len(r.Argv)/2]
		out, err = json.Marshal(r)
	}
	if err == nil {
		p.to.SetWriteDeadline(time.Now().Add(patience))
		_, _ = p.to.Write(out)
	}
}

// Reserve has nothing to reserve.
func (p *Parent) Reserve() error { return nil }

// Close closes our copy of the way out.
func (p *Parent) Close() error {
	if p.to == nil {
		return nil
	}
	return p.to.Close()
}

// Asked is a question that the parent run has.
type Asked struct{ reply *os.File }

// Ask sends a question with the descriptors of the command.
func (p *Parent) Ask(q Question, stdin, stdout, stderr *os.File) (*Asked, error) {
	q.Kind = "start"
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxQuestion {
		return nil, errors.New("the command line is too long to be handed on")
	}
	reply, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	p.to.SetWriteDeadline(time.Now().Add(patience))
	err = send(p.to, raw, theirs, stdin, stdout, stderr)
	theirs.Close()
	if err != nil {
		reply.Close()
		return nil, fmt.Errorf("the parent run cannot be asked: %w", err)
	}
	return &Asked{reply}, nil
}

// Signal passes a signal on to the command.
func (a *Asked) Signal(sig os.Signal) {
	sendNow(a.reply, Outcome{Kind: "signal", Signal: signals.Number(sig)}.encode())
}

// Wait returns the answer of the parent run.
func (a *Asked) Wait() (Outcome, error) {
	out := Outcome{Kind: "end"}
	buf := make([]byte, maxAnswer)
	n, err := a.reply.Read(buf)
	if err == nil {
		err = json.Unmarshal(buf[:n], &out)
	}
	return out, err
}

// Close takes the question back, if it has no answer yet.
func (a *Asked) Close() { a.reply.Close() }

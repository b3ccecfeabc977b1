package nest

import (
	"encoding/json"
	"os"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// ProcessName is argv[0] of the process that runs a command for a run inside of another.
// Starting it by hand gains nothing: it does less than a run of one's own.
const ProcessName = "atip-exec:behalf"

// controlFD is where that process finds its order and leaves the result.
const controlFD = 3

// Process is the side of the process that answers one question.
type Process struct {
	Order    Order
	control  *os.File
	unwanted bool
}

// Accept takes the order that this process was started with.
func Accept() (*Process, *fault.Fault) {
	control := inherited(controlFD)
	if control == nil {
		return nil, fault.New(errcode.NoCommand, ProcessName+" is started by atip-exec itself").WithFix("write the command after `--`", "atip-exec -- git status")
	}
	p := &Process{control: control}
	buf := make([]byte, maxOrder)
	n, files, _, err := receive(control, buf, true)
	if err != nil || json.Unmarshal(buf[:n], &p.Order) != nil || p.Order.V != 1 || connect(files) != nil {
		control.Close()
		return nil, fault.New(errcode.Internal, "internal error: an order that cannot be read")
	}
	return p, nil
}

// Wanted waits until a command that was planned ahead is asked for. If it is not, nobody waits for an answer.
func (p *Process) Wanted() bool {
	if p.Order.Ahead {
		buf := make([]byte, len(goAhead)+1)
		n, err := p.control.Read(buf)
		p.unwanted = err != nil || string(buf[:n]) != goAhead
	}
	return !p.unwanted
}

// Answer leaves the outcome with the parent run and ends the order.
func (p *Process) Answer(a Outcome) *fault.Fault {
	defer p.control.Close()
	if p.unwanted {
		return nil
	}
	p.control.SetWriteDeadline(time.Now().Add(patience))
	if _, err := p.control.Write(a.encode()); err != nil {
		return fault.New(errcode.LostChild, "the caller no longer waits for the result: "+err.Error())
	}
	return nil
}

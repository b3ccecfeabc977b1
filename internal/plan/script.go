package plan

import (
	"os"
	"slices"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/script"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
)

// withScript is the invocation with the text of its script.
func (p *Plan) withScript() (inv Invocation, hidden bool, err error) {
	inv = p.Invocation
	if !inv.IsShell || inv.Script == "" || inv.scriptRead {
		return inv, false, nil
	}
	from := script.Source{Stdin: p.Machine.Stdin, Cwd: p.Cwd, Hidden: func(f *os.File) bool { return p.site().Hides(f) }}
	inv.Shell, inv.scriptRead, hidden, err = from.Read(inv.Script)
	return inv, hidden, err
}

// handOver makes the shell read a text that is longer than a word may be from a descriptor.
func (r *Reading) handOver() {
	text := r.Text
	if len(text) <= step.MaxArg {
		return
	}
	r.TextFD = FreeDescriptor(0)
	fd := strconv.Itoa(r.TextFD)
	r.LongText = text + "\n"
	if r.Dialect == shell.Bash {
		r.LongText = "exec " + fd + "<&-; " + r.LongText
	}
	r.Argv = slices.Clone(r.Argv)
	r.Argv[slices.Index(r.Argv, text)] = ". /dev/fd/" + fd
}

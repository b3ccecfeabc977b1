package plan

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxScriptText is how much of a script is read; what is longer is refused by the
// reader of shell texts, with a clearer word than a cut text would give.
const maxScriptText = shell.MaxText + 1

// withScript is the invocation with the text of its script, which is read once: what was read is
// judged, and runs. The file itself is never opened again. hidden says that it is a file that must
// not be read here.
func (p *Plan) withScript() (inv Invocation, hidden bool, err error) {
	inv = p.Invocation
	name := inv.Script
	if !inv.IsShell || name == "" || inv.scriptRead {
		return inv, false, nil
	}
	from, err := p.openScript(name)
	if err != nil || from == nil {
		return inv, from == nil, err
	}
	if from != p.Machine.Stdin {
		defer from.Close()
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxScriptText))
	if err != nil {
		return inv, false, noScript(name, err.Error())
	}
	inv.Shell = string(raw)
	inv.scriptRead = from == p.Machine.Stdin // it cannot be read a second time
	if words := foreignInterpreter(inv.Shell); words != "" {
		return inv, false, fault.New(errcode.Arguments, name+" is a script for "+words+", not for a shell").WithFix("run the file itself", "atip-exec -- "+quote.Literal(name)).With("interpreter", words)
	}
	return inv, false, nil
}

// openScript opens what a script is read from. It returns nil without an error for a
// file that must not be read here: an error of the reader would show what it holds.
func (p *Plan) openScript(name string) (*os.File, error) {
	if name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0" {
		return p.Machine.Stdin, nil
	}
	f, err := regular.OpenOrPipe(subpath.Join(p.Cwd, name))
	if err != nil {
		return nil, noScript(name, reason(err))
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = fmt.Errorf("it is a directory")
	case !info.Mode().IsRegular() && !(info.Mode()&os.ModeNamedPipe != 0 && descriptorPath(name)):
		err = fmt.Errorf("it is not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, noScript(name, err.Error())
	}
	if info.Mode().IsRegular() && p.site().Hides(f) {
		f.Close()
		return nil, nil
	}
	return f, nil
}

func noScript(name, why string) error {
	return fault.New(errcode.NoInputFile, name+": "+why).With("file", name).WithFix("name a shell script that is readable", "atip-exec script build.sh")
}

// reason is an error of the file system without the operation and the path.
func reason(err error) string {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// descriptorPath reports a path by which a shell hands over a pipe, as <(…) does.
func descriptorPath(name string) bool {
	dir := filepath.Dir(name)
	return dir == "/dev/fd" || dir == "/proc/self/fd"
}

// foreignInterpreter is the interpreter that the first line of a script names, "" if
// that is a shell whose language is read here.
func foreignInterpreter(text string) string {
	if step.ShellScript(text) {
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "#!"))
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

package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxScriptText is how much of a script is read; what is longer is refused by the
// reader of shell texts, with a clearer word than a cut text would give.
const maxScriptText = shell.MaxText + 1

// readScript reads the text of a script, once: what was read is judged, and runs. The
// file itself is never opened again.
func (p *Plan) readScript() error {
	name := p.inv.Script
	if name == "" || p.inv.scriptRead {
		return nil
	}
	from, err := p.openScript(name)
	if err != nil || from == nil {
		return err
	}
	if from != p.machine.Stdin {
		defer from.Close()
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxScriptText))
	if err != nil {
		return noScript(name, err.Error())
	}
	p.inv.Shell = string(raw)
	p.inv.scriptRead = from == p.machine.Stdin // it cannot be read a second time
	if words := foreignInterpreter(p.inv.Shell); words != "" {
		return fault.New(errcode.Arguments, name+" is a script for "+words+", not for a shell").WithFix("run the file itself", "atip-exec -- "+shell.Literal(name)).With("interpreter", words)
	}
	return nil
}

// openScript opens what a script is read from. It returns nil without an error for a
// file that must not be read here: an error of the reader would show what it holds.
func (p *Plan) openScript(name string) (*os.File, error) {
	if name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0" {
		return p.machine.Stdin, nil
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
		p.scriptHidden = true
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
	if effects.ShellScript(text) {
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "#!"))
}

// handOver makes the shell read a text that is longer than a word may be from a descriptor.
func (p *Plan) handOver() {
	text := p.reading.Text
	if len(text) <= effects.MaxArg {
		return
	}
	p.textFD = freeDescriptor(0)
	fd := strconv.Itoa(p.textFD)
	p.longText = text + "\n"
	if p.reading.Dialect == shell.Bash {
		p.longText = "exec " + fd + "<&-; " + p.longText
	}
	p.Argv = slices.Clone(p.Argv)
	p.Argv[slices.Index(p.Argv, text)] = ". /dev/fd/" + fd
}

// passText gives the child the read end of a pipe with the text on it.
func (x *execution) passText() error {
	if x.plan.longText == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fault.New(errcode.OutOfResources, "pipe: "+err.Error())
	}
	x.binds.pass[x.plan.textFD] = r
	x.binds.opened = append(x.binds.opened, r)
	go func() {
		defer w.Close()
		io.WriteString(w, x.plan.longText) // a shell that ends early reads no further
	}()
	return nil
}

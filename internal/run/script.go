package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/shell"
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
		return fault.New("E1004", name+" is a script for "+words+", not for a shell").WithFix("run the file itself", "atip-exec -- "+quote(name)).With("interpreter", words)
	}
	return nil
}

// openScript opens what a script is read from. It returns nil without an error for a
// file that must not be read here: an error of the reader would show what it holds.
func (p *Plan) openScript(name string) (*os.File, error) {
	if name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0" {
		return p.machine.Stdin, nil
	}
	f, err := openNonblock(join(p.Cwd, name))
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
	if info.Mode().IsRegular() && p.hides(f) {
		f.Close()
		p.scriptHidden = true
		return nil, nil
	}
	return f, nil
}

func noScript(name, why string) error {
	return fault.New("E1005", name+": "+why).With("file", name).WithFix("name a shell script that is readable", "atip-exec script build.sh")
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

// scriptResource is the access to the script's file, with its class.
func (p *Plan) scriptResource() atip.Resource {
	r := atip.Resource{Kind: "path", Value: p.inv.Script, Access: atip.AccessRead, Why: "script"}
	p.world.Fill(&r, p.Cwd)
	return r
}

// foreignInterpreter is the interpreter that the first line of a script names, "" if
// that is a shell whose language is read here.
func foreignInterpreter(text string) string {
	if shellScript(text) {
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "#!"))
}

// mainOptions is what the reader is told about the text that a run was asked for.
func (c *collector) mainOptions(path string, d shell.Dialect) shell.Options {
	p := c.plan
	o := c.options(p.Cwd)
	o.Dialect, o.Name, o.Set, o.Script = d, path, p.inv.ShellSet, p.inv.Script != ""
	if len(p.inv.ShellArgs) > 0 {
		o.Name, o.Args = p.inv.ShellArgs[0], p.inv.ShellArgs[1:]
	}
	return o
}

// scriptError says in which file a text is wrong.
func (p *Plan) scriptError(err error) error {
	if se, ok := err.(*shell.SyntaxError); ok && p.inv.Script != "" {
		named := *se
		named.File = p.inv.Script
		return &named
	}
	return err
}

// readsScript adds to the shell's step that it reads a file. One that must not be read
// stands for anything.
func (c *collector) readsScript(s *step) {
	r := c.plan.scriptResource()
	s.raise(r)
	s.Call.Resources = append(s.Call.Resources, r)
	if c.plan.scriptHidden {
		c.steps = append(c.steps, c.opaqueStep(s, []string{c.plan.inv.Script}, nil, s.Cwd, "the script is not a file to be read"))
	}
}

// handedOver is the word that makes the shell run a text: the text itself, or if that
// is longer than a word may be a command that reads it from a descriptor.
func (p *Plan) handedOver(text string, d shell.Dialect) string {
	if len(text) <= maxArg {
		return text
	}
	p.textFD = freeDescriptor(0)
	fd := strconv.Itoa(p.textFD)
	p.longText = text + "\n"
	if d == shell.Bash {
		p.longText = "exec " + fd + "<&-; " + p.longText
	}
	return ". /dev/fd/" + fd
}

// passText gives the child the read end of a pipe with the text on it.
func (x *execution) passText() error {
	if x.plan.longText == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fault.New("E4003", "pipe: "+err.Error())
	}
	x.binds.pass[x.plan.textFD] = r
	x.binds.opened = append(x.binds.opened, r)
	go func() {
		defer w.Close()
		io.WriteString(w, x.plan.longText) // a shell that ends early reads no further
	}()
	return nil
}

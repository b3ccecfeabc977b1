// Package script reads the shell script that a run is given.
package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxText is how much of a script is read, in bytes; what is longer is refused by the
// reader of shell texts, with a clearer word than a cut text would give.
const maxText = shelltext.Max + 1

// Source is where scripts are read from.
type Source struct {
	Stdin  *os.File
	Cwd    string
	Hidden func(*os.File) bool // a file that must not be read here
}

// Read returns the text of a script, which is read once: what was read is judged, and runs. The file
// itself is never opened again. once says that it cannot be read a second time, hidden that it was not
// read: an error of the reader would show what it holds.
func (s Source) Read(name string) (text string, once, hidden bool, err error) {
	from, err := s.open(name)
	if err != nil || from == nil {
		return "", false, err == nil, err
	}
	once = from == s.Stdin
	if !once {
		defer from.Close()
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxText))
	if err != nil {
		return "", once, false, unreadable(name, err.Error())
	}
	if words := foreignInterpreter(string(raw)); words != "" {
		return "", once, false, fault.New(errcode.Arguments, name+" is a script for "+words+", not for a shell").WithFix("run the file itself", "atip-exec -- "+quote.Literal(name)).With("interpreter", words)
	}
	return string(raw), once, false, nil
}

// open opens what a script is read from. It returns nil without an error for a
// file that must not be read here: an error of the reader would show what it holds.
func (s Source) open(name string) (*os.File, error) {
	if name == "-" || name == "/dev/stdin" || name == "/dev/fd/0" || name == "/proc/self/fd/0" {
		return s.Stdin, nil
	}
	f, err := regular.OpenOrPipe(subpath.Join(s.Cwd, name))
	if err != nil {
		return nil, unreadable(name, reason(err))
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
		return nil, unreadable(name, err.Error())
	}
	if info.Mode().IsRegular() && s.Hidden(f) {
		f.Close()
		return nil, nil
	}
	return f, nil
}

func unreadable(name, why string) error {
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

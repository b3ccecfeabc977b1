package runfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// Place says where a Runfile is looked for.
type Place struct {
	File   string // of --runfile; "" to look upward from Dir
	Dir    string // absolute
	Home   string
	Global bool // ~/.runfile counts, below the other
	UID    int
}

// Names are the names of a Runfile in a directory, the first that is there counts.
func Names() []string { return []string{"Runfile", "runfile"} }

const globalName = ".runfile"

// Load finds and reads a Runfile and what it sources.
func Load(at Place) (*File, error) {
	path, err := at.find()
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	l := loader{at: at, file: f, open: map[string]bool{}}
	global := ""
	if at.Home != "" && at.Global {
		global = filepath.Join(at.Home, globalName)
		if _, err := os.Lstat(global); err != nil || global == path {
			global = ""
		}
	}
	f.Path = cmp.Or(f.Path, global)
	if path == "" && global == "" {
		return nil, &Error{Code: errcode.NoRunfile, Message: "there is no Runfile in " + at.Dir + " or above it", Fix: "write one, or name it with --runfile", Example: "atip run --runfile tools/Runfile --list"}
	}
	for _, one := range []string{global, path} {
		if one == "" {
			continue
		}
		if err := l.load(one, 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// find returns the path of the Runfile, "" if there is none.
func (at Place) find() (string, error) {
	if at.File != "" {
		path := at.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(at.Dir, path)
		}
		if _, err := os.Stat(path); err != nil {
			return "", &Error{Code: errcode.NoRunfile, File: path, Message: reason(err), Fix: "name a Runfile that is there"}
		}
		return path, nil
	}
	for dir := filepath.Clean(at.Dir); ; dir = filepath.Dir(dir) {
		for _, name := range Names() {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return path, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// loader reads files that source one another.
type loader struct {
	at    Place
	file  *File
	open  map[string]bool // real paths that are being read, or were
	bytes int
}

func (l *loader) load(path string, depth int) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return &Error{Code: errcode.NoRunfile, File: path, Message: reason(err), Fix: "name a file that is there"}
	}
	if l.open[real] {
		return nil // a cycle, or read before
	}
	if depth > MaxDepth {
		return &Error{Code: errcode.RunfileSyntax, File: path, Message: fmt.Sprintf("files source one another more than %d deep", MaxDepth), Fix: "source it from a file further up"}
	}
	l.open[real] = true
	raw, err := l.read(real)
	if err != nil {
		return err
	}
	return l.file.parse(path, string(raw), func(named string) error {
		target := named
		if rest, ok := strings.CutPrefix(target, "~/"); ok {
			target = filepath.Join(l.at.Home, rest)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
			l.file.Warnings = append(l.file.Warnings, path+": source "+named+": it is not there")
			return nil
		}
		return l.load(target, depth+1)
	})
}

// read takes a regular file of ours or of root that no other user can write. It is opened
// once; what was looked at is what is read.
func (l *loader) read(path string) ([]byte, error) {
	unsafe := func(why string) error {
		return &Error{Code: errcode.RunfileUnsafe, File: path, Message: why, Fix: "make it a regular file that is yours and that only you can write", Example: "chmod go-w " + path}
	}
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNot) {
		return nil, unsafe("it is not a regular file")
	}
	if err != nil {
		return nil, &Error{Code: errcode.NoRunfile, File: path, Message: reason(err), Fix: "name a file that you can read"}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &Error{Code: errcode.NoRunfile, File: path, Message: reason(err)}
	}
	if why := owner.ForeignWriter(path, info, l.at.UID); why != "" {
		return nil, unsafe("it " + why)
	}
	raw, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, &Error{Code: errcode.NoRunfile, File: path, Message: reason(err)}
	}
	if l.bytes += len(raw); l.bytes > MaxFile {
		return nil, &Error{Code: errcode.RunfileSyntax, File: path, Message: "it is longer than 1 MiB, together with the files that source it", Fix: "split it"}
	}
	return raw, nil
}

// reason is an error of the file system without the operation and the path.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

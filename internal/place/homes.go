package place

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// homesFile is where the administrator names the directories below which HOME and the XDG
// variables count, one absolute path a line. Everywhere else our directories are those of
// the account: who types the command could else choose which policy judges it. A build for
// another system directory moves it with -X.
var homesFile = Managed + "/homes"

// HomesFile is the file that says where HOME and the XDG variables count.
func HomesFile() string { return homesFile }

// workspacesName is the file of the configuration directory that lists the directories a
// person registered as workspaces, one absolute path a line.
const workspacesName = "workspaces"

// WorkspacesFile lists the registered workspaces.
func (d Dirs) WorkspacesFile() string { return filepath.Join(d.Config, workspacesName) }

// Workspaces reads the registered workspaces; none if nothing was registered.
func (d Dirs) Workspaces() ([]string, error) { return readList(d.WorkspacesFile()) }

// ListError is a list of directories that cannot be used.
type ListError struct {
	Path string
	Line int // 0 for the whole file
	Why  string
}

func (e *ListError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Why)
	}
	return e.Path + ": " + e.Why
}

// FaultCode implements fault.Coded.
func (e *ListError) FaultCode() string { return errcode.PolicyUnsafe }

// FaultDetails implements fault.Coded.
func (e *ListError) FaultDetails() map[string]any {
	return map[string]any{"file": e.Path, "line": e.Line}
}

// maxList bounds a list of directories.
const maxList = 64 << 10

// readList reads absolute paths, one a line; a line that begins with # is a comment. A file
// that others could have written is an error, one that is not there names nothing.
func readList(path string) ([]string, error) {
	if why, err := writableByOthers(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, &ListError{Path: path, Why: errText(err)}
	} else if why != "" {
		return nil, &ListError{Path: path, Why: why}
	}
	raw, err := regular.Read(path, maxList)
	if err != nil {
		return nil, &ListError{Path: path, Why: errText(err)}
	}
	var out []string
	n := 0
	for line := range strings.SplitSeq(string(raw), "\n") {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) || strings.IndexByte(line, 0) >= 0 {
			return nil, &ListError{Path: path, Line: n, Why: fmt.Sprintf("%q is not an absolute path; write one directory a line", line)}
		}
		out = append(out, filepath.Clean(line))
	}
	return out, nil
}

// errText is an error without the path, which stands before it already.
func errText(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// homes answers whether a directory that the environment names counts. The list is read when
// the first one differs from the account's.
type homes struct {
	extra []string // of the caller in this process, besides the file
	list  []string
	read  bool
}

func (h *homes) permit(dir string) (bool, error) {
	if !h.read {
		listed, err := readList(homesFile)
		if err != nil {
			return false, err
		}
		h.read = true
		for _, p := range slices.Concat(h.extra, listed) {
			h.list = append(h.list, Resolve(p))
		}
	}
	real := Resolve(dir)
	return slices.ContainsFunc(h.list, func(p string) bool { return subpath.Within(real, p) }), nil
}

// Check says which of our directories cannot be relied on: one that is a link, as it would
// lead where somebody else writes, or that belongs to another user. Those that are not there
// yet are fine; who can write a file in them is asked where it is read.
func (d Dirs) Check(uid int) error {
	for _, dir := range [...]string{d.Config, d.Data, d.State, d.Cache} {
		if dir == "" {
			continue
		}
		switch link, missing := lookAt(dir); {
		case missing:
		case link:
			return &OwnDirError{Path: dir, Why: "is a symbolic link; our own directories are not followed through one"}
		case isDir(dir) && !belongsTo(dir, uid):
			return &OwnDirError{Path: dir, Why: "belongs to another user"}
		}
	}
	return nil
}

// OwnDirError says that one of our own directories is not only ours.
type OwnDirError struct{ Path, Why string }

func (e *OwnDirError) Error() string { return e.Path + " " + e.Why }

// FaultCode implements fault.Coded.
func (e *OwnDirError) FaultCode() string { return errcode.PolicyUnsafe }

// FaultDetails implements fault.Coded.
func (e *OwnDirError) FaultDetails() map[string]any { return map[string]any{"path": e.Path} }

package sandbox

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// execError finds out from outside the sandbox why execve failed: the same errno has
// several causes, and the layer that refused is what a reader needs.
func (w *worker) execError(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return &StepError{Step: "execute", Path: w.cmd.Path, Err: err}
	}
	e := &ExecError{Errno: errno, Path: w.cmd.Path}
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		switch {
		case unix.Access(w.cmd.Path, unix.F_OK) != nil:
		case w.setup.tier == T3 && !granted(w.setup.profile.grants(), w.cmd.Path, Exec):
			e.Layer = "private root"
		default:
			e.Layer = "interpreter"
			for _, name := range loaderOf(w.cmd.Path) {
				e.Interpreter = name
				if unix.Access(name, unix.F_OK) != nil {
					break
				}
			}
		}
	case syscall.EACCES:
		e.Layer = refusingLayer(w.cmd.Path, w.setup)
	}
	return e
}

func refusingLayer(path string, s *Setup) string {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil && fs.Flags&unix.MS_NOEXEC != 0 {
		return "noexec"
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && (st.Mode&0o111 == 0 || st.Mode&unix.S_IFMT != unix.S_IFREG) || s.tier == T0 {
		return "mode"
	}
	return "landlock"
}

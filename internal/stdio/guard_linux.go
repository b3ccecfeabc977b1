package stdio

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// guardStdin makes sure that the command can read its input and do nothing else with it.
func (b *Binding) guardStdin() error {
	if b.Stdin == nil {
		return nil
	}
	fd := int(b.Stdin.Fd())
	mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil // closed, which the start reports
	}
	switch kind := plan.StdinKind(b.Stdin); {
	case kind == "socket" || kind == "file" && mode&unix.O_ACCMODE == unix.O_RDONLY && b.foreignFile(fd):
		read, r, err := drive.StartRelay(b.Stdin, kind == "file")
		if err != nil {
			return fault.New(errcode.OutOfResources, "stdin: "+err.Error())
		}
		b.Stdin, b.relay = read, r
		b.opened = append(b.opened, read)
	case (kind == "file" || kind == "pipe") && mode&unix.O_ACCMODE != unix.O_RDONLY:
		// What is open for writing could be written to, wherever it lies.
		f, err := reopened(fd)
		if err != nil {
			return fault.New(errcode.NoInput, "stdin is open for writing and cannot be opened for reading alone: "+err.Error()).WithFix("open it for reading", "atip-exec -- COMMAND <FILE")
		}
		b.Stdin = f
		b.opened = append(b.opened, f)
	}
	return nil
}

// foreignFile reports a file whose mode the run must not change although this user can:
// with a private root everything outside the write set is on a read-only mount, but for
// descriptors from before.
func (b *Binding) foreignFile(fd int) bool {
	var st unix.Stat_t
	if b.plan.Setup.Tier() != sandbox.T3 || unix.Fstat(fd, &st) != nil || os.Geteuid() != 0 && int(st.Uid) != os.Geteuid() {
		return false
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return true
	}
	return !slices.ContainsFunc(b.plan.Profile.Write, func(g sandbox.Grant) bool {
		return g.Rights&sandbox.Write != 0 && (path == g.Path || g.Dir && subpath.Within(path, g.Path))
	})
}

// reopened opens what is behind a descriptor once more, for reading, at the same place.
func reopened(fd int) (*os.File, error) {
	// A pipe would wait for a writer.
	n, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(n, false); err != nil {
		unix.Close(n)
		return nil, err
	}
	if at, err := unix.Seek(fd, 0, 1); err == nil {
		if _, err := unix.Seek(n, at, 0); err != nil {
			unix.Close(n)
			return nil, err
		}
	}
	return os.NewFile(uintptr(n), "stdin"), nil
}

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/subpath"
	"golang.org/x/sys/unix"
)

// applyLimits sets on the wrapper what may be set there and is inherited. The syscall
// package must do it: the Go runtime raised the soft limit of open files and would
// restore the old value in the child.
func applyLimits(l Limits) error {
	if l.OpenFiles == 0 {
		return nil
	}
	if l.OpenFiles < minOpenFiles {
		return &LimitError{Limit: "openFiles", Why: "64 is the least a run works with"}
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		return &LimitError{Limit: "openFiles", Why: err.Error()}
	}
	n := min(l.OpenFiles, old.Max)
	if err := syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return &LimitError{Limit: "openFiles", Why: err.Error()}
	}
	return nil
}

const minOpenFiles = 64

// childLimits sets limits that would hit the wrapper's own writes if it set them.
func childLimits(l Limits) error {
	for _, r := range [...]struct {
		name     string
		resource int
		max      uint64
	}{
		{"cpu", unix.RLIMIT_CPU, l.CPU}, {"fileSize", unix.RLIMIT_FSIZE, l.FileSize},
		{"memory", unix.RLIMIT_DATA, l.Memory}, {"processes", unix.RLIMIT_NPROC, l.Processes},
	} {
		if r.max == 0 {
			continue
		}
		// The caller's own limit may be the lower one.
		var old unix.Rlimit
		err := unix.Getrlimit(r.resource, &old)
		if err == nil {
			soft := min(r.max, old.Max)
			hard := soft
			if r.resource == unix.RLIMIT_CPU && hard < old.Max {
				hard++ // at the soft limit SIGXCPU, which says why; at the hard one SIGKILL
			}
			err = unix.Setrlimit(r.resource, &unix.Rlimit{Cur: soft, Max: hard})
		}
		if err != nil {
			return &LimitError{Limit: r.name, Why: err.Error()}
		}
	}
	return nil
}

// cgroup is a control group made for one run. A group counts what a limit of a process
// cannot: all processes of root, and memory of the whole tree.
type cgroup struct {
	dir   string
	procs *os.File // a process that writes 0 to it is in it
}

// findCgroup returns the directory in which a group with these controllers can be made:
// our own group, or, as a group with processes cannot hand controllers down
// (cgroup-v2.rst, "No Internal Process Constraint"), the one above it.
func findCgroup(controllers []string) (dir, why string) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "our control group is not known: " + err.Error()
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "control groups are not known: " + err.Error()
	}
	own, top := ownCgroup(string(membership), string(mounts))
	if own == "" {
		return "", "no control group of version 2 is mounted here"
	}
	why = "no control group is delegated to us"
	for _, dir := range [...]string{own, filepath.Dir(own)} {
		if !subpath.Within(dir, top) || unix.Access(dir, unix.W_OK) != nil || unix.Access(dir+"/cgroup.procs", unix.W_OK) != nil {
			continue
		}
		handed, err := os.ReadFile(dir + "/cgroup.subtree_control")
		if err != nil {
			continue
		}
		missing := ""
		for _, c := range controllers {
			if !strings.Contains(" "+strings.TrimSpace(string(handed))+" ", " "+c+" ") {
				missing = c
			}
		}
		if missing == "" {
			return dir, ""
		}
		why = "the control group " + dir + " does not hand down the controller " + missing
	}
	return "", why
}

// ownCgroup is the directory of our group and that of the mount it is seen through.
func ownCgroup(membership, mounts string) (own, top string) {
	path := ""
	for line := range strings.Lines(membership) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path = p
		}
	}
	if path == "" {
		return "", ""
	}
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		i := 6 // optional fields end with "-" (proc_pid_mountinfo(5))
		for i < len(f) && f[i] != "-" {
			i++
		}
		if i+1 >= len(f) || f[i+1] != "cgroup2" {
			continue
		}
		root, point := f[3], f[4]
		if subpath.Within(path, root) {
			return filepath.Clean(point + "/" + strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), point
		}
	}
	return "", ""
}

// cgroupMemory and cgroupProcesses are the files that hold the limits.
const (
	cgroupMemory    = "memory.max"
	cgroupProcesses = "pids.max"
)

// makeCgroup makes a group for one run below parent, with its limits set.
func makeCgroup(parent string, limits map[string]uint64) (*cgroup, error) {
	dir, err := os.MkdirTemp(parent, "atip-")
	if err != nil {
		return nil, &LimitError{Limit: "cgroup", Why: err.Error()}
	}
	g := &cgroup{dir: dir}
	for file, max := range limits {
		if err := writeExisting(filepath.Join(dir, file), strconv.FormatUint(max, 10)); err != nil {
			g.remove()
			return nil, &LimitError{Limit: file, Why: err.Error()}
		}
	}
	if g.procs, err = os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0); err != nil {
		g.remove()
		return nil, &LimitError{Limit: "cgroup", Why: err.Error()}
	}
	return g, nil
}

func writeExisting(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// outOfMemory reports whether the kernel ended a process of the group for want of memory.
func (g *cgroup) outOfMemory() bool {
	if g == nil {
		return false
	}
	events, _ := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	for line := range strings.Lines(string(events)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return count != "0"
		}
	}
	return false
}

// remove ends whatever is in the group and removes it.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	if g.procs != nil {
		g.procs.Close()
	}
	_ = writeExisting(filepath.Join(g.dir, "cgroup.kill"), "1") // since Linux 5.14
	// What was killed leaves the group only when it is gone.
	for deadline := time.Now().Add(sweepFor); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err := unix.Rmdir(g.dir); !errors.Is(err, unix.EBUSY) {
			return
		}
	}
}

// join moves this process into the group behind fd.
func join(fd int) error {
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("0")); err != nil {
		return &StepError{Step: "enter control group", Err: err}
	}
	return nil
}

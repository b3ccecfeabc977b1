package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// sweepFor bounds how long killed processes may take to go; one in an uninterruptible
// system call can outlive it and is then reported as a survivor.
const sweepFor = 2 * time.Second

// KillTree ends the whole tree: politely, and after grace without mercy.
func (p *Proc) KillTree(grace time.Duration) Tree {
	if !p.EndTree(grace) {
		return Tree{Method: "group", Leftovers: 1, Survivors: 1}
	}
	return p.Sweep()
}

// EndTree is KillTree without the sweep, which ends every process that has come to this one:
// for a caller who has further children, and sweeps when they have ended. It reports whether
// the child has ended.
func (p *Proc) EndTree(grace time.Duration) bool {
	if grace > 0 {
		p.group(unix.SIGTERM)
		p.group(unix.SIGCONT) // a stopped process cannot handle SIGTERM
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
	}
	p.mu.Lock()
	p.killed = true
	if p.stage != nil && !p.reaped {
		_ = unix.Kill(p.stage.pid, unix.SIGKILL) // all of its namespace go with it
	}
	p.mu.Unlock()
	// Stopped first, a group that forks faster than it dies stands still.
	p.group(unix.SIGSTOP)
	p.group(unix.SIGKILL)
	timer := time.NewTimer(sweepFor)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// group signals the child's process group while the child pins its number.
func (p *Proc) group(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.pid, sig) // ESRCH: everybody has ended
	}
}

// Sweep ends what the child left behind and puts protected names back. Orphans come to this process, its
// subreaper, also those that made a session of their own. Call it after Wait.
func (p *Proc) Sweep() Tree {
	p.sweep.Lock()
	defer p.sweep.Unlock()
	if p.tree.Method != "" && p.tree.Survivors == 0 {
		return p.tree
	}
	switch {
	case p.stage != nil:
		p.tree = p.sweepStage()
	case p.keep && !p.killed:
		reapEnded()
		left := len(children())
		p.tree = Tree{Method: "group", Leftovers: left, Kept: left}
		p.oom = p.cgroup.outOfMemory()
	default:
		p.tree = p.sweepOrphans()
		p.oom = p.cgroup.outOfMemory()
		p.cgroup.remove()
		p.cgroup = nil
	}
	if p.guard != nil {
		// Now that the tree is dead: what still ran could undo it.
		p.settlement = p.guard.settle()
		p.guard = nil
	}
	release(p.held)
	p.held = nil
	return p.tree
}

// Settlement is what became of the protected names. Sweep compares them.
func (p *Proc) Settlement() Settlement {
	p.sweep.Lock()
	defer p.sweep.Unlock()
	return p.settlement
}

func (p *Proc) sweepOrphans() Tree {
	t := Tree{Method: "group"}
	killed := make(map[int]bool)
	pause := 50 * time.Microsecond
	for deadline := time.Now().Add(sweepFor); ; {
		if reapEnded() {
			t.Leftovers = len(killed)
			return t
		}
		alive := children()
		for _, pid := range alive {
			if !killed[pid] {
				killed[pid] = true
				// An orphan in the child's group pins the group's number.
				if group, err := unix.Getpgid(pid); err == nil && group == p.pid {
					_ = unix.Kill(-group, unix.SIGSTOP)
					_ = unix.Kill(-group, unix.SIGKILL)
				}
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if time.Now().After(deadline) {
			t.Leftovers, t.Survivors = len(killed), len(alive)
			return t
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// reapEnded reaps all children that have ended and reports whether none is left.
func reapEnded() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		}
	}
}

// children lists the direct children of this process, ended or not. They cannot be
// recycled, as only the caller reaps.
func children() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var out []int
	for _, task := range tasks {
		data, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if errors.Is(err, os.ErrNotExist) {
			if _, err := os.Stat("/proc/self/task/" + task.Name()); err == nil {
				return childrenByParent() // built without CONFIG_PROC_CHILDREN
			}
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// childrenByParent looks at every process.
func childrenByParent() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	var out []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := procstat.Of(pid); err == nil && s.Fields[procstat.Parent] == self {
			out = append(out, pid)
		}
	}
	return out
}

// processState is the letter of ps(1), 0 for no process.
func processState(pid int) byte {
	s, err := procstat.Of(pid)
	if err != nil {
		return 0
	}
	return s.Fields[procstat.State][0]
}

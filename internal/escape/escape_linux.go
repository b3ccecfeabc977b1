package escape

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Probe is one way out.
type Probe struct {
	name string
	act  func(s Scene) error
	want []string // the errnos that count as denied; nil is EACCES
	// private is what the probe may report in a private root beside them and what a path
	// that is not there gives: "ok" for what it then does to something of its own.
	private []string
	// only says why the control may fail: "" never, "root" as a user, "kernel" where
	// the kernel lacks the call or the privilege is missing in the machine itself.
	only string
	// visible is what outside looks like after an act that got out; nil if the answer of
	// the act says it all.
	visible func(s Scene) bool
}

const (
	mayNeedRoot   = "root"
	mayNeedKernel = "kernel"
)

// Scene is the part of a world that one probe has for itself.
type Scene struct {
	In, Out string // directories inside the workspace and outside
	Victim  int    // a process outside
	Wrapper int
	Base    string // the directory of the world
}

// SceneOf is the place of p in the world at base: its workspace is base/ws.
func SceneOf(base string, p Probe) Scene {
	return Scene{In: base + "/ws/" + p.name, Out: base + "/out/" + p.name, Base: base}
}

// Family is probes that are after one thing, and the kind of run they are tried in.
type Family struct {
	Name   string
	Probes []Probe
	Net    string // "", Loopback, Allowlist or Full
	Read   bool   // a run that may write nowhere
	Limit  bool   // with no more than OpenFiles descriptors
}

// The networks of a run that probes are tried with.
const (
	Loopback  = "loopback"  // of its own
	Allowlist = "allowlist" // hosts and no others: ListedHost
	Full      = "full"
)

// ListedHost is the host on the list of an allowlist run. It has no address.
const ListedHost = "listed.invalid"

// OpenFiles is the limit that a probe tries to pass.
const OpenFiles = 64

// Families lists all probes.
func Families() []Family {
	return []Family{
		{Name: "files", Probes: fileProbes()},
		{Name: "sight", Probes: sightProbes()},
		{Name: "processes", Probes: processProbes()},
		{Name: "kernel", Probes: kernelProbes()},
		{Name: "channels", Probes: channelProbes()},
		{Name: "loopback", Probes: loopbackProbes(), Net: Loopback},
		{Name: "allowlist", Probes: allowlistProbes(), Net: Allowlist},
		{Name: "full-network", Probes: fullNetworkProbes(), Net: Full},
		{Name: "metadata", Probes: metadataProbes(), Read: true},
		{Name: "workspace", Probes: workspaceProbes(), Limit: true},
	}
}

// Name is unique in its family.
func (p Probe) Name() string { return p.name }

// Expected reports whether the control may fail here without showing a mistake of the probe.
func (p Probe) Expected(control string) bool {
	return control == "ok" || p.only == mayNeedKernel || p.only == mayNeedRoot && os.Getuid() != 0
}

// Denied reports whether the answer from inside is a refusal. private says that the run
// had a private root.
func (p Probe) Denied(inside string, private bool) bool {
	if p.want == nil && inside == "EACCES" || slices.Contains(p.want, inside) {
		return true
	}
	return private && (slices.Contains([]string{"ENOENT", "EROFS", "EACCES", "EXDEV", "ESRCH"}, inside) || slices.Contains(p.private, inside))
}

// Got reports what can be seen from outside: that the act of p had its effect there.
func (p Probe) Got(s Scene) bool { return p.visible != nil && p.visible(s) }

// Try carries out the probes of a family and writes a line for each, then Done.
func Try(out io.Writer, family string, base string, victim int) error {
	for _, f := range Families() {
		if f.Name != family {
			continue
		}
		for _, p := range f.Probes {
			s := SceneOf(base, p)
			s.Victim, s.Wrapper = victim, os.Getppid()
			done := make(chan error)
			go func() {
				// Never unlocked: what a probe did to its thread ends with it.
				runtime.LockOSThread()
				done <- p.act(s)
			}()
			if _, err := fmt.Fprintf(out, "%s=%s\n", p.name, outcome(<-done)); err != nil {
				return err
			}
		}
		_, err := io.WriteString(out, Done+"\n")
		return err
	}
	return fmt.Errorf("no family of probes %q", family)
}

// Done is the last line of Try. A run whose output lacks it says nothing about the rest.
const Done = "done"

// Outcomes reads what Try wrote. done is false where the run did not reach its end.
func Outcomes(text string) (answers map[string]string, done bool) {
	answers = map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, answer, ok := strings.Cut(line, "="); ok {
			answers[name] = answer
		}
		done = line == Done
	}
	return answers, done
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// opens opens path and closes it again.
func opens(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func sock(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// errOf makes an errno of a raw call's result.
func errOf(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func statusField(path, field string) string {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, field); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// EachTask returns the first success of f as nil, else the last error.
func EachTask(pid int, f func(tid int) error) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name())
		if err = f(tid); err == nil {
			return nil
		}
	}
	return err
}

// harmless is an argument that names nothing: no such pid, descriptor, key or
// address, so that a control that passes the permission check changes nothing.
const harmless = 0x3ffffff1

// Newest is the newest system call that the filters know.
const Newest = 470

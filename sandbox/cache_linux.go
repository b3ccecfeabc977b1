package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/sandbox/seccomp"
)

// probeVersion changes whenever the probe or what it records does.
const probeVersion = 4

// probeFile keeps the answer of the probe: the key, a newline, the answer.
const probeFile = "sandbox.probe"

// Probe finds out by trying what this machine can enforce. The answer is kept for
// this boot, kernel, user, executable and set of namespaces; a cache that is stale,
// damaged or cannot be written changes nothing but the time.
func Probe(c Cache) (Host, error) {
	var h Host
	if o := FindOuter(); o != nil && abiIs(o.ABI) {
		h = o.host(os.Geteuid() == 0)
	} else {
		h = probe(c)
	}
	h.state = c.Dir
	return h, nil
}

func probe(c Cache) Host {
	if c.Dir == "" {
		return try("")
	}
	path, key := filepath.Join(c.Dir, probeFile), probeKey(c)
	if h, ok := recall(path, key); ok {
		h.kept = true
		return h
	}
	_ = os.MkdirAll(c.Dir, 0o700) // before it is tried, which else happens in /tmp
	h := try(c.Dir)
	if !h.scarce {
		remember(path, key, h)
	}
	return h
}

// Forget drops the answer, for a start that failed where it promised otherwise.
func Forget(c Cache) {
	if c.Dir != "" {
		_ = os.Remove(filepath.Join(c.Dir, probeFile))
	}
}

// Stale reports whether a start that failed with err was promised by an answer of an
// earlier run, which may not hold any more. Nothing ran.
func Stale(s Setup, err error) bool {
	var step *StepError
	var filter *seccomp.Error
	return s.host.kept && s.tier != T0 && !scarce(err) && (errors.As(err, &step) && step.Code == "" || errors.As(err, &filter))
}

// Reprobe asks the machine again, whatever was kept. differs reports whether it answers
// otherwise than it did for h. No child may be running.
func Reprobe(c Cache, h Host) (now Host, differs bool) {
	Forget(c)
	now, _ = Probe(c)
	was, is := h, now
	was.kept, was.cgroup, was.outer, was.scarce = is.kept, is.cgroup, is.outer, is.scarce
	return now, was != is
}

func recall(path, key string) (Host, bool) {
	data := readShort(path)
	answer, ok := bytes.CutPrefix(data, []byte(key+"\n"))
	if !ok {
		return Host{}, false
	}
	h, ok := parseHost(string(answer))
	if !ok {
		return Host{}, false
	}
	// Asked anew each time, as it costs a microsecond and a nested run may differ.
	return h, abiIs(h.ABI)
}

func abiIs(want int) bool {
	abi, _, _ := landlockABI()
	return abi == want
}

// readShort returns a file of up to 8 KiB, nil for any other. The os package would
// offer each to the poller and ask for its size.
func readShort(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	n, err := unix.Read(fd, buf)
	if err != nil || n == len(buf) {
		return nil
	}
	return buf[:n]
}

// formatHost writes all of an answer in words, texts quoted; parseHost is its inverse.
func formatHost(h Host) string {
	return fmt.Sprintf("%s %d %d %t %t %t %t\n%q\n%q\n", h.OS, h.ABI, h.Errata, h.Seccomp, h.Root, h.Namespaces, h.Overlay, h.Landlock, h.NSWhy)
}

func parseHost(text string) (h Host, ok bool) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return h, false
	}
	words := strings.Split(lines[0], " ")
	if len(words) != 7 {
		return h, false
	}
	var errs [8]error
	h.OS = words[0]
	h.ABI, errs[0] = strconv.Atoi(words[1])
	h.Errata, errs[1] = strconv.Atoi(words[2])
	h.Seccomp, errs[2] = strconv.ParseBool(words[3])
	h.Root, errs[3] = strconv.ParseBool(words[4])
	h.Namespaces, errs[4] = strconv.ParseBool(words[5])
	h.Overlay, errs[7] = strconv.ParseBool(words[6])
	h.Landlock, errs[5] = strconv.Unquote(lines[1])
	h.NSWhy, errs[6] = strconv.Unquote(lines[2])
	if slices.ContainsFunc(errs[:], func(err error) bool { return err != nil }) {
		return Host{}, false
	}
	return h, true
}

func remember(path, key string, h Host) {
	f, err := os.CreateTemp(filepath.Dir(path), ".sandbox-")
	if err != nil {
		return
	}
	_, werr := f.WriteString(key + "\n" + formatHost(h))
	if cerr := f.Close(); werr != nil || cerr != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name())
	}
}

// probeKey is everything on which the answer depends.
func probeKey(c Cache) string {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	boot := readShort("/proc/sys/kernel/random/boot_id")
	// Absent where securityfs is not mounted, which is then part of the key.
	lsm := readShort("/sys/kernel/security/lsm")
	user, _ := os.Readlink("/proc/self/ns/user")
	mount, _ := os.Readlink("/proc/self/ns/mnt")
	var st unix.Stat_t
	_ = unix.Stat(c.Executable, &st)
	// A filter that somebody put around us may take away what is there outside of it.
	filter, _ := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	// Root without its capabilities cannot map ids, and a caller may have dropped them.
	privilege, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	var caps [2]unix.CapUserData
	_ = unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0])
	// An administrator may permit or forbid namespaces at any time.
	namespaces := ""
	for _, name := range [...]string{"user/max_user_namespaces", "kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns"} {
		namespaces += strings.TrimSpace(string(readShort("/proc/sys/"+name))) + ","
	}
	return fmt.Sprintf("%d %d %d %x:%x %s %s %d %s %s %s %s %s %d:%d:%d:%d", probeVersion, filter, privilege, caps[0].Effective, caps[1].Effective, strings.TrimSpace(string(boot)),
		unix.ByteSliceToString(uts.Release[:]), os.Getuid(), lsm, user, mount, namespaces, c.Executable,
		st.Dev, st.Ino, st.Size, st.Mtim.Nano())
}

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/sandbox/seccomp"
	"golang.org/x/sys/unix"
)

// try confines a thread that is thrown away afterwards and looks whether the kernel
// then really refuses and allows what it should. Version numbers prove nothing:
// container runtimes filter calls, and boot parameters leave modules out.
func try(scratch string) Host {
	h := Host{OS: runtime.GOOS, Root: os.Geteuid() == 0}
	h.ABI, h.Errata, h.Landlock = landlockABI()
	if h.ABI == 0 {
		return h
	}
	type result struct {
		landlock, seccomp error
	}
	// Made and removed from outside: the thread that tries may do neither.
	dir, lock := scratchDir(scratch)
	if lock != nil {
		defer lock.Close()
		defer os.RemoveAll(dir)
	}
	done := make(chan result)
	go offMain(func() { // the thread ends with its confinement
		var r result
		if r.landlock = tryLandlock(dir, h.ABI); r.landlock == nil {
			r.seccomp = trySeccomp(h.ABI)
		}
		done <- r
	})
	r := <-done
	h.scarce = scarce(r.landlock) || scarce(r.seccomp)
	if r.landlock != nil {
		h.ABI, h.Landlock = 0, "Landlock does not work here: "+r.landlock.Error()
	}
	h.Seccomp = r.landlock == nil && r.seccomp == nil
	if r.seccomp != nil {
		h.Landlock = "system call filters do not work here: " + r.seccomp.Error()
	}
	if h.Seccomp && h.ABI >= scopeABI {
		if err := tryNamespaces(h.ABI, nil); err != nil {
			h.NSWhy, h.scarce = "a private root cannot be made here: "+err.Error(), scarce(err)
		} else {
			h.Namespaces, h.Overlay = true, tryOverlay(dir, h.ABI)
		}
	}
	return h
}

// tryNamespaces lets a stage make the private root and the loopback of an empty run. Some systems allow
// the namespace and refuse the mounts in it, so nothing less would tell.
func tryNamespaces(abi int, overlays []Overlay) error {
	d := deriver{in: Input{Files: HostFiles(), Root: true}}
	d.system()
	p := Profile{Exec: d.set.compact(), Overlays: overlays, Net: Net{Mode: NetLoopback}}
	// Where the caller stands says nothing about the machine.
	w := &worker{cmd: &Cmd{Dir: "/"}, ruleset: -1, dir: -1, try: true, setup: &Setup{tier: T3, valid: true, profile: p, host: Host{ABI: abi}}}
	done := make(chan error)
	go offMain(func() {
		defer w.close()
		link, err := w.forkStage()
		if err == nil {
			err = link.ready()
			link.kill()
			unix.Close(link.fd)
		}
		done <- err
	})
	return <-done
}

// scratchDir makes a directory with two others in it, "" if there is no place for one. It is in
// use as long as the file is open.
func scratchDir(first string) (string, *os.File) {
	for _, parent := range [...]string{first, os.TempDir()} {
		if parent == "" {
			continue
		}
		dir, lock := takeScratch(parent)
		if lock == nil {
			continue
		}
		var err error
		for _, d := range [...]string{dir + "/in", dir + "/out"} {
			if err = os.Mkdir(d, 0o700); err == nil {
				err = os.WriteFile(d+"/f", []byte("x"), 0o600)
			}
			if err != nil {
				break
			}
		}
		if canonical, _, rerr := HostFiles().Resolve(dir); err == nil && rerr == nil {
			return canonical, lock
		}
		_ = os.RemoveAll(dir)
		lock.Close()
	}
	return "", nil
}

// maxScratch bounds how many probes may run at once in one place.
const maxScratch = 1024

// takeScratch makes the first directory by number that no other probe holds. The kernel drops the
// lock of a process that is killed, so its directory is emptied and used again by a later one:
// names drawn at random would pile up.
func takeScratch(parent string) (string, *os.File) {
	for n := range maxScratch {
		path := filepath.Join(parent, fmt.Sprintf("atip-exec-probe-%d-%d", os.Geteuid(), n))
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", nil
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if !holdScratch(f, path) {
			f.Close()
			continue
		}
		names, _ := f.Readdirnames(-1)
		for _, name := range names {
			_ = os.RemoveAll(filepath.Join(path, name))
		}
		return path, f
	}
	return "", nil
}

// holdScratch locks the directory. Somebody else's is not ours to use, and one whose name is gone
// was removed by the probe that held it.
func holdScratch(f *os.File, path string) bool {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	open, err1 := f.Stat()
	named, err2 := os.Lstat(path)
	if err1 != nil || err2 != nil || !os.SameFile(open, named) || open.Mode().Perm()&0o077 != 0 {
		return false
	}
	st, ok := open.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// tryLandlock grants one directory and expects acts in it to pass and beside it to
// fail. Without a scratch directory, reading is tried where every system has something.
func tryLandlock(dir string, abi int) error {
	p := Profile{Write: []Grant{{Path: dir + "/in", Dir: true, Rights: Read | Write | Remove}}}
	if dir == "" {
		p = Profile{Read: []Grant{{Path: "/usr", Dir: true, Rights: Read}}}
	}
	rs, err := buildRuleset(&p, abi, nil)
	if err != nil {
		return err
	}
	defer unix.Close(rs)
	if err := noNewPrivs(); err != nil {
		return err
	}
	if err := restrictSelf(rs, false); err != nil {
		return err
	}
	if dir != "" {
		return refusals(dir+"/in", dir+"/out", abi)
	}
	if err := touch("/usr", unix.O_RDONLY); err != nil {
		return err
	}
	if err := touch("/", unix.O_RDONLY); !errors.Is(err, unix.EACCES) {
		return errors.New("reading a directory that is not granted passes")
	}
	return nil
}

// refusals tries each act on both sides. It runs in the restricted thread.
func refusals(inside, outside string, abi int) error {
	acts := []struct {
		name string
		abi  int
		act  func(dir string) error
	}{
		{"read", 1, func(d string) error { return touch(d+"/f", unix.O_RDONLY) }},
		{"write", 1, func(d string) error { return touch(d+"/f", unix.O_WRONLY) }},
		{"create", 1, func(d string) error { return touch(d+"/new", unix.O_WRONLY|unix.O_CREAT) }},
		{"mkdir", 1, func(d string) error { return unix.Mkdir(d+"/d", 0o700) }},
		{"truncate", truncateABI, func(d string) error { return unix.Truncate(d+"/f", 0) }},
	}
	for _, a := range acts {
		if abi < a.abi {
			continue
		}
		if err := a.act(inside); err != nil {
			return errors.Join(errors.New(a.name+" of a granted path is refused"), err)
		}
		if err := a.act(outside); !errors.Is(err, unix.EACCES) {
			return errors.New(a.name + " of a path that is not granted passes")
		}
	}
	return nil
}

func touch(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// trySeccomp installs the strictest filter and expects it to refuse a socket.
func trySeccomp(abi int) error {
	progs, _, _, err := seccomp.Load(seccomp.Choice{Truncate: abi >= truncateABI, Fork: true}, unix.Getpid(), unix.Gettid(), 0)
	if err != nil {
		return err
	}
	if err := seccomp.Install(progs); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return errors.New("a refused socket was made")
	}
	if !errors.Is(err, unix.EAFNOSUPPORT) {
		return err
	}
	return nil
}

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
	_ = newfile.Replace(path, []byte(key+"\n"+formatHost(h)), 0o600)
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

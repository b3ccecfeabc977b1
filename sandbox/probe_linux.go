package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/sandbox/seccomp"
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

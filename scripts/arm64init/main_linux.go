// Command arm64init is the first process of the emulated machine that scripts/arm64
// boots. It unpacks the root file system, runs the kernel tests in it, and prints what
// ran and a verdict, a line of its own.
package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// archive is the root file system in the initial one, from which nothing can be started
// in a private root: the kernel does not let go of its first file system.
const (
	archive = "/root.tar"
	root    = "/newroot"
)

func main() {
	err := setUp()
	if err == nil {
		err = runJobs()
	}
	if err != nil {
		fmt.Printf("\narm64: FAIL: %v\n", err)
	} else {
		fmt.Print("\narm64: PASS\n")
	}
	// The console is drained when the machine is off; a process that ended would be a panic.
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

func setUp() error {
	began := time.Now()
	if err := mount("tmpfs", root, "mode=755"); err != nil {
		return err
	}
	if err := unpack(archive, root); err != nil {
		return err
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	// As switch_root does: the new file system takes the place of the first.
	if err := errors.Join(os.Chdir(root), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/")); err != nil {
		return fmt.Errorf("entering the root file system: %w", err)
	}
	for _, m := range []struct{ kind, path, data string }{
		{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", "mode=755"}, {"devpts", "/dev/pts", "ptmxmode=666,mode=620"},
		{"tmpfs", "/dev/shm", "mode=1777"}, {"tmpfs", "/tmp", "mode=1777"}, {"tmpfs", "/run", "mode=755"}, {"cgroup2", "/sys/fs/cgroup", ""},
	} {
		if err := mount(m.kind, m.path, m.data); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	if err := delegate("/sys/fs/cgroup"); err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	if err := loadModules("/lib/modules"); err != nil {
		return err
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	for _, u := range who {
		if err := os.Chown(u.home, int(u.id), int(u.id)); err != nil {
			return err
		}
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	lsm, err := os.ReadFile("/sys/kernel/security/lsm")
	if err != nil {
		if err := mount("securityfs", "/sys/kernel/security", ""); err != nil {
			return err
		}
		if lsm, err = os.ReadFile("/sys/kernel/security/lsm"); err != nil {
			return err
		}
	}
	fmt.Printf("arm64: %s %s, security modules %s; set up in %.0f s\n", unix.ByteSliceToString(name.Release[:]), unix.ByteSliceToString(name.Machine[:]), lsm, time.Since(began).Seconds())
	return nil
}

func mount(kind, path, data string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(kind, path, kind, unix.MS_NOSUID, data); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", kind, path, err)
	}
	return nil
}

// unpack makes the files of a tar archive below dir. The archive is ours.
func unpack(name, dir string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, path)
		case tar.TypeLink:
			err = os.Link(filepath.Join(dir, h.Linkname), path)
		case tar.TypeReg:
			err = write(path, fs.FileMode(h.Mode).Perm(), r)
		default:
			err = fmt.Errorf("%s: unexpected type %q", h.Name, h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func write(path string, mode fs.FileMode, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// delegate makes a control group for each of who, in which its tests may make others, as
// a login session has one. The processes themselves are in "run" below it.
func delegate(top string) error {
	const controllers = "+cpu +memory +pids"
	if err := os.WriteFile(top+"/cgroup.subtree_control", []byte(controllers), 0o644); err != nil {
		return err
	}
	for _, w := range who {
		dir := top + "/" + w.name
		if err := os.MkdirAll(dir+"/run", 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte(controllers), 0o644); err != nil {
			return err
		}
		for _, name := range []string{"", "/cgroup.procs", "/cgroup.subtree_control", "/run", "/run/cgroup.procs", "/run/cgroup.subtree_control"} {
			if err := os.Chown(dir+name, int(w.id), int(w.id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadModules loads each file of a directory. The kernel decompresses.
func loadModules(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	const compressed = 4 // MODULE_INIT_COMPRESSED_FILE
	for _, e := range list {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		flags := 0
		if filepath.Ext(e.Name()) != ".ko" {
			flags = compressed
		}
		err = unix.FinitModule(int(f.Fd()), "", flags)
		f.Close()
		if err != nil {
			return fmt.Errorf("module %s: %w", e.Name(), err)
		}
	}
	return nil
}

// loopback brings up lo, which the tests' servers listen on.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// opens opens path and closes it again.
func opens(path string, flags int) error { return touch(path, flags) }

// fileProbes write or read outside the workspace.
func fileProbes() []escapeProbe {
	refer, own := []string{"EACCES", "EXDEV"}, []string{"ok"}
	return []escapeProbe{
		{name: "openat2", act: func(s scene) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, s.out+"/new", &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT, Mode: 0o600})
			return closing(fd, err)
		}},
		{name: "creat", act: func(s scene) error { return closing(unix.Creat(s.out+"/file", 0o600)) }},
		{name: "tmpfile", act: func(s scene) error { return opens(s.out, unix.O_TMPFILE|unix.O_RDWR) }},
		{name: "tmpfile-link-out", want: refer, act: func(s scene) error {
			fd, err := unix.Open(s.in, unix.O_TMPFILE|unix.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, s.out+"/linked", unix.AT_SYMLINK_FOLLOW)
		}},
		{name: "access-mode-3-truncate", act: func(s scene) error { return opens(s.out+"/file", 3|unix.O_TRUNC) }},
		{name: "mkdirat", act: func(s scene) error { return unix.Mkdirat(unix.AT_FDCWD, s.out+"/made", 0o700) }},
		{name: "mknod-file", act: func(s scene) error { return unix.Mknod(s.out+"/made", unix.S_IFREG|0o600, 0) }},
		{name: "symlinkat", act: func(s scene) error { return unix.Symlinkat("file", unix.AT_FDCWD, s.out+"/sym") }},
		{name: "link-out", want: refer, act: func(s scene) error { return unix.Link(s.in+"/mine", s.out+"/linked") }},
		{name: "link-in-and-write", want: refer, act: func(s scene) error {
			if err := unix.Link(s.out+"/file", s.in+"/linked"); err != nil {
				return err
			}
			return opens(s.in+"/linked", unix.O_WRONLY)
		}},
		{name: "link-within-out", act: func(s scene) error { return unix.Link(s.out+"/file", s.out+"/again") }},
		{name: "rename-directory-in", want: refer, act: func(s scene) error { return unix.Rename(s.out+"/dir", s.in+"/dir") }},
		{name: "rename-over", want: refer, act: func(s scene) error { return unix.Rename(s.in+"/mine", s.out+"/file") }},
		{name: "rename-exchange", want: refer, act: func(s scene) error {
			return unix.Renameat2(unix.AT_FDCWD, s.in+"/mine", unix.AT_FDCWD, s.out+"/file", unix.RENAME_EXCHANGE)
		}},
		{name: "rename-out-within", act: func(s scene) error { return unix.Rename(s.out+"/dir/file", s.out+"/moved") }},
		{name: "unlinkat-directory", act: func(s scene) error {
			if err := unix.Unlink(s.out + "/dir/file"); err != nil {
				return err
			}
			return unix.Rmdir(s.out + "/dir")
		}},
		{name: "planted-link-file", act: func(s scene) error {
			if err := unix.Symlink(s.out+"/file", s.in+"/link"); err != nil {
				return fmt.Errorf("planting: %s", err)
			}
			return opens(s.in+"/link", unix.O_WRONLY|unix.O_TRUNC)
		}},
		{name: "planted-link-directory", act: func(s scene) error {
			if err := unix.Symlink(s.out, s.in+"/link"); err != nil {
				return fmt.Errorf("planting: %s", err)
			}
			return opens(s.in+"/link/new", unix.O_WRONLY|unix.O_CREAT)
		}},
		{name: "dangling-link-create", act: func(s scene) error {
			if err := unix.Symlink(s.out+"/new", s.in+"/link"); err != nil {
				return fmt.Errorf("planting: %s", err)
			}
			return opens(s.in+"/link", unix.O_WRONLY|unix.O_CREAT)
		}},
		{name: "dotdot", act: func(s scene) error {
			return opens(s.in+"/../../out/"+filepath.Base(s.out)+"/file", unix.O_WRONLY)
		}},
		{name: "proc-self-root", act: func(s scene) error { return opens("/proc/self/root"+s.out+"/file", unix.O_WRONLY) }},
		{name: "proc-thread-root", act: func(s scene) error { return opens("/proc/thread-self/root"+s.out+"/file", unix.O_WRONLY) }},
		{name: "victim-root", act: func(s scene) error {
			return opens(fmt.Sprintf("/proc/%d/root%s/file", s.victim, s.out), unix.O_WRONLY)
		}},
		{name: "victim-cwd", act: func(s scene) error {
			return opens(fmt.Sprintf("/proc/%d/cwd%s/file", s.victim, s.out), unix.O_WRONLY)
		}},
		{name: "path-descriptor-reopened", act: func(s scene) error {
			fd, err := unix.Open(s.out+"/file", unix.O_PATH, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return opens("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY)
		}},
		{name: "path-descriptor-beneath", act: func(s scene) error {
			fd, err := unix.Open(s.out, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return closing(unix.Openat(fd, "file", unix.O_WRONLY, 0))
		}},
		{name: "chdir-and-relative", act: func(s scene) error {
			if err := unix.Chdir(s.out); err != nil {
				return err
			}
			defer unix.Chdir("/")
			return opens("new", unix.O_WRONLY|unix.O_CREAT)
		}},
		{name: "swapped-under-the-open", act: swapRace},
		{name: "file-handle", want: []string{"EPERM"}, only: mayNeedRoot, act: func(s scene) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.out+"/file", 0)
			if err != nil {
				return err
			}
			mount, err := unix.Open(s.out, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(mount)
			return closing(unix.OpenByHandleAt(mount, handle, unix.O_WRONLY))
		}},
		{name: "read-by-path-descriptor", act: func(s scene) error {
			fd, err := unix.Open(s.out+"/secret", unix.O_PATH, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return opens("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY)
		}},
		{name: "read-list", act: func(s scene) error { _, err := os.ReadDir(s.out + "/dir"); return err }},
		{name: "read-execute", act: func(s scene) error {
			err := exec.Command(s.out + "/tool").Run()
			var errno unix.Errno
			if errors.As(err, &errno) {
				return errno
			}
			return err
		}},
		{name: "read-by-interpreter", act: func(s scene) error {
			out, err := exec.Command("/bin/cat", s.out+"/secret").Output()
			var exit *exec.ExitError
			if errors.As(err, &exit) && len(out) == 0 {
				return unix.EACCES
			}
			return err
		}},
		{name: "shadow", only: mayNeedRoot, act: func(scene) error { return opens("/etc/shadow", unix.O_RDONLY) }},
		{name: "write-etc", only: mayNeedRoot, act: func(scene) error { return opens("/etc/passwd", unix.O_WRONLY) }},
		{name: "write-proc-sys", only: mayNeedRoot, act: func(scene) error { return opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY) }},
		{name: "write-sysrq", only: mayNeedKernel, act: func(scene) error { return opens("/proc/sysrq-trigger", unix.O_WRONLY) }},
		{name: "write-cgroup", only: mayNeedKernel, act: func(scene) error { return opens("/sys/fs/cgroup/cgroup.procs", unix.O_WRONLY) }},
		{name: "device-kmsg", only: mayNeedRoot, act: func(scene) error { return opens("/dev/kmsg", unix.O_RDONLY) }},
		{name: "device-mem", only: mayNeedKernel, act: func(scene) error { return opens("/dev/mem", unix.O_RDONLY) }},
		{name: "host-tmp", private: own, act: func(scene) error { return opens("/tmp", unix.O_TMPFILE|unix.O_RDWR) }},
		{name: "host-shm", private: own, only: mayNeedKernel, act: func(scene) error { return opens("/dev/shm", unix.O_TMPFILE|unix.O_RDWR) }},
		{name: "watch-and-map", act: func(s scene) error {
			f, err := os.Open(s.out + "/secret")
			if err != nil {
				return err.(*os.PathError).Err
			}
			defer f.Close()
			data, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ, unix.MAP_PRIVATE)
			if err != nil {
				return err
			}
			return unix.Munmap(data)
		}},
		{name: "attribute-of-open-file", act: func(s scene) error {
			// FS_IOC_SETFLAGS works on a descriptor for reading, if one can be had.
			fd, err := unix.Open(s.out+"/file", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			flags := 0
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.FS_IOC_GETFLAGS, uintptr(unsafe.Pointer(&flags)))
			if errno == unix.ENOTTY || errno == unix.EOPNOTSUPP {
				return nil
			}
			return errOf(errno)
		}},
	}
}

func closing(fd int, err error) error {
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// swapRace opens a name for writing while another thread exchanges the directory
// before it with a link that leads outside.
func swapRace(s scene) error {
	honest, link := s.in+"/honest", s.in+"/link"
	if err := os.Mkdir(honest, 0o700); err != nil {
		return fmt.Errorf("planting: %s", err)
	}
	if err := unix.Symlink(s.out, link); err != nil {
		return fmt.Errorf("planting: %s", err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, honest, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	err := error(unix.EACCES)
	// On a busy machine the two take turns rarely; the control must have its chance.
	for began, n := time.Now(), 0; n < 3000 || time.Since(began) < 1500*time.Millisecond; n++ {
		_ = opens(honest+"/raced", unix.O_WRONLY|unix.O_CREAT)
		var st unix.Stat_t
		if unix.Lstat(s.out+"/raced", &st) == nil {
			return nil
		}
	}
	return err
}

package escape

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

// fileProbes write or read outside the workspace.
func fileProbes() []Probe {
	refer, own := []string{"EACCES", "EXDEV"}, []string{"ok"}
	return []Probe{
		{name: "openat2", act: func(s Scene) error {
			fd, err := unix.Openat2(unix.AT_FDCWD, s.Out+"/new", &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT, Mode: 0o600})
			return closing(fd, err)
		}},
		{name: "creat", act: func(s Scene) error { return closing(unix.Creat(s.Out+"/file", 0o600)) }},
		{name: "tmpfile", act: func(s Scene) error { return opens(s.Out, unix.O_TMPFILE|unix.O_RDWR) }},
		{name: "tmpfile-link-out", want: refer, act: func(s Scene) error {
			fd, err := unix.Open(s.In, unix.O_TMPFILE|unix.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, s.Out+"/linked", unix.AT_SYMLINK_FOLLOW)
		}},
		{name: "access-mode-3-truncate", act: func(s Scene) error { return opens(s.Out+"/file", 3|unix.O_TRUNC) }},
		{name: "mkdirat", act: func(s Scene) error { return unix.Mkdirat(unix.AT_FDCWD, s.Out+"/made", 0o700) }},
		{name: "mknod-file", act: func(s Scene) error { return unix.Mknod(s.Out+"/made", unix.S_IFREG|0o600, 0) }},
		{name: "symlinkat", act: func(s Scene) error { return unix.Symlinkat("file", unix.AT_FDCWD, s.Out+"/sym") }},
		{name: "link-out", want: refer, act: func(s Scene) error { return unix.Link(s.In+"/mine", s.Out+"/linked") }},
		{name: "link-in-and-write", want: refer, act: func(s Scene) error {
			if err := unix.Link(s.Out+"/file", s.In+"/linked"); err != nil {
				return err
			}
			return opens(s.In+"/linked", unix.O_WRONLY)
		}},
		{name: "link-within-out", act: func(s Scene) error { return unix.Link(s.Out+"/file", s.Out+"/again") }},
		{name: "rename-directory-in", want: refer, act: func(s Scene) error { return unix.Rename(s.Out+"/dir", s.In+"/dir") }},
		{name: "rename-over", want: refer, act: func(s Scene) error { return unix.Rename(s.In+"/mine", s.Out+"/file") }},
		{name: "rename-exchange", want: refer, act: func(s Scene) error {
			return unix.Renameat2(unix.AT_FDCWD, s.In+"/mine", unix.AT_FDCWD, s.Out+"/file", unix.RENAME_EXCHANGE)
		}},
		{name: "rename-out-within", act: func(s Scene) error { return unix.Rename(s.Out+"/dir/file", s.Out+"/moved") }},
		{name: "unlinkat-directory", act: func(s Scene) error {
			if err := unix.Unlink(s.Out + "/dir/file"); err != nil {
				return err
			}
			return unix.Rmdir(s.Out + "/dir")
		}},
		{name: "planted-link-file", act: func(s Scene) error {
			if err := unix.Symlink(s.Out+"/file", s.In+"/link"); err != nil {
				return fmt.Errorf("planting: %s", err)
			}
			return opens(s.In+"/link", unix.O_WRONLY|unix.O_TRUNC)
		}},
		{name: "planted-link-directory", act: func(s Scene) error {
			if err := unix.Symlink(s.Out, s.In+"/link"); err != nil {
				return fmt.Errorf("planting: %s", err)
			}
			return opens(s.In+"/link/new", unix.O_WRONLY|unix.O_CREAT)
		}},
		{name: "dangling-link-create", act: func(s Scene) error {
			if err := unix.Symlink(s.Out+"/new", s.In+"/link"); err != nil {
				return fmt.Errorf("planting: %s", err)
			}
			return opens(s.In+"/link", unix.O_WRONLY|unix.O_CREAT)
		}},
		{name: "dotdot", act: func(s Scene) error {
			return opens(s.In+"/../../out/"+filepath.Base(s.Out)+"/file", unix.O_WRONLY)
		}},
		{name: "proc-self-root", act: func(s Scene) error { return opens("/proc/self/root"+s.Out+"/file", unix.O_WRONLY) }},
		{name: "proc-thread-root", act: func(s Scene) error { return opens("/proc/thread-self/root"+s.Out+"/file", unix.O_WRONLY) }},
		{name: "victim-root", act: func(s Scene) error {
			return opens(fmt.Sprintf("/proc/%d/root%s/file", s.Victim, s.Out), unix.O_WRONLY)
		}},
		{name: "victim-cwd", act: func(s Scene) error {
			return opens(fmt.Sprintf("/proc/%d/cwd%s/file", s.Victim, s.Out), unix.O_WRONLY)
		}},
		{name: "path-descriptor-reopened", act: func(s Scene) error {
			fd, err := unix.Open(s.Out+"/file", unix.O_PATH, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return opens("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY)
		}},
		{name: "path-descriptor-beneath", act: func(s Scene) error {
			fd, err := unix.Open(s.Out, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return closing(unix.Openat(fd, "file", unix.O_WRONLY, 0))
		}},
		{name: "chdir-and-relative", act: func(s Scene) error {
			if err := unix.Chdir(s.Out); err != nil {
				return err
			}
			defer unix.Chdir("/")
			return opens("new", unix.O_WRONLY|unix.O_CREAT)
		}},
		{name: "swapped-under-the-open", act: swapRace},
		{name: "file-handle", want: []string{"EPERM"}, only: mayNeedRoot, act: func(s Scene) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Out+"/file", 0)
			if err != nil {
				return err
			}
			mount, err := unix.Open(s.Out, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(mount)
			return closing(unix.OpenByHandleAt(mount, handle, unix.O_WRONLY))
		}},
		{name: "read-by-path-descriptor", act: func(s Scene) error {
			fd, err := unix.Open(s.Out+"/secret", unix.O_PATH, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return opens("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY)
		}},
		{name: "read-list", act: func(s Scene) error { _, err := os.ReadDir(s.Out + "/dir"); return err }},
		{name: "read-execute", act: func(s Scene) error {
			err := exec.Command(s.Out + "/tool").Run()
			var errno unix.Errno
			if errors.As(err, &errno) {
				return errno
			}
			return err
		}},
		{name: "read-by-interpreter", act: func(s Scene) error {
			out, err := exec.Command("/bin/cat", s.Out+"/secret").Output()
			var exit *exec.ExitError
			if errors.As(err, &exit) && len(out) == 0 {
				return unix.EACCES
			}
			return err
		}},
		{name: "shadow", only: mayNeedRoot, act: func(Scene) error { return opens("/etc/shadow", unix.O_RDONLY) }},
		{name: "write-etc", only: mayNeedRoot, act: func(Scene) error { return opens("/etc/passwd", unix.O_WRONLY) }},
		{name: "write-proc-sys", only: mayNeedRoot, act: func(Scene) error { return opens("/proc/sys/kernel/core_pattern", unix.O_WRONLY) }},
		{name: "write-sysrq", only: mayNeedKernel, act: func(Scene) error { return opens("/proc/sysrq-trigger", unix.O_WRONLY) }},
		{name: "write-cgroup", only: mayNeedKernel, act: func(Scene) error { return opens("/sys/fs/cgroup/cgroup.procs", unix.O_WRONLY) }},
		{name: "device-kmsg", only: mayNeedRoot, act: func(Scene) error { return opens("/dev/kmsg", unix.O_RDONLY) }},
		{name: "device-mem", only: mayNeedKernel, act: func(Scene) error { return opens("/dev/mem", unix.O_RDONLY) }},
		{name: "host-tmp", private: own, act: func(Scene) error { return opens("/tmp", unix.O_TMPFILE|unix.O_RDWR) }},
		{name: "host-shm", private: own, only: mayNeedKernel, act: func(Scene) error { return opens("/dev/shm", unix.O_TMPFILE|unix.O_RDWR) }},
		{name: "watch-and-map", act: func(s Scene) error {
			f, err := os.Open(s.Out + "/secret")
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
		{name: "attribute-of-open-file", act: func(s Scene) error {
			// FS_IOC_SETFLAGS works on a descriptor for reading, if one can be had.
			fd, err := unix.Open(s.Out+"/file", unix.O_RDONLY, 0)
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
func swapRace(s Scene) error {
	honest, link := s.In+"/honest", s.In+"/link"
	if err := os.Mkdir(honest, 0o700); err != nil {
		return fmt.Errorf("planting: %s", err)
	}
	if err := unix.Symlink(s.Out, link); err != nil {
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
	// Each change of what the name stands for, seen between two attempts, was a chance to come between its
	// resolution and the check. On a busy machine the two take turns rarely.
	var last error
	for began, turns := time.Now(), 0; turns < 1000 && time.Since(began) < 1500*time.Millisecond; {
		now := opens(honest+"/raced", unix.O_WRONLY|unix.O_CREAT)
		if now != last {
			last = now
			turns++
		}
		var st unix.Stat_t
		if unix.Lstat(s.Out+"/raced", &st) == nil {
			return nil
		}
	}
	return unix.EACCES
}

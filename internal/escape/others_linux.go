package escape

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processProbes reach for a process outside.
func processProbes() []Probe {
	eperm, own := []string{"EPERM"}, []string{"ok"}
	raw := func(nr uintptr, args ...uintptr) error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		return errOf(errno)
	}
	file := func(name string, flags int) func(Scene) error {
		return func(s Scene) error { return opens(fmt.Sprintf("/proc/%d/%s", s.Victim, name), flags) }
	}
	return []Probe{
		{name: "kill", want: eperm, act: func(s Scene) error { return unix.Kill(s.Victim, 0) }},
		{name: "tkill", want: eperm, act: func(s Scene) error { return raw(unix.SYS_TKILL, uintptr(s.Victim), uintptr(unix.SIGCONT)) }},
		{name: "tgkill", want: eperm, act: func(s Scene) error { return unix.Tgkill(s.Victim, s.Victim, unix.SIGCONT) }},
		{name: "sigqueue", want: eperm, act: func(s Scene) error {
			info := [16]uint64{uint64(unix.SIGCONT), 0xffffffff} // si_code SI_QUEUE
			return raw(unix.SYS_RT_SIGQUEUEINFO, uintptr(s.Victim), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&info)))
		}},
		{name: "pidfd-signal", want: []string{"ENOSYS", "EPERM"}, act: func(s Scene) error {
			fd, err := unix.PidfdOpen(s.Victim, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		}},
		{name: "proc-directory-as-pidfd", want: []string{"ENOSYS", "EPERM"}, act: func(s Scene) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d", s.Victim), unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
		}},
		{name: "descriptor-theft", want: eperm, act: func(s Scene) error {
			fd, err := unix.PidfdOpen(s.Victim, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return closing(unix.PidfdGetfd(fd, 0, 0))
		}},
		{name: "vm-read", want: eperm, act: func(s Scene) error { return vmCopy(unix.SYS_PROCESS_VM_READV, s.Victim) }},
		{name: "vm-write", want: eperm, act: func(s Scene) error { return vmCopy(unix.SYS_PROCESS_VM_WRITEV, s.Victim) }},
		{name: "mem", act: file("mem", unix.O_RDWR)},
		{name: "maps", act: file("maps", unix.O_RDONLY)},
		{name: "descriptors", act: file("fd/0", unix.O_RDONLY)},
		{name: "clear-refs", act: file("clear_refs", unix.O_WRONLY)},
		{name: "oom-score", act: file("oom_score_adj", unix.O_WRONLY)},
		{name: "timer-slack", act: file("timerslack_ns", unix.O_WRONLY)},
		{name: "namespace-entry", act: func(s Scene) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", s.Victim), unix.O_RDONLY, 0)
			return closing(fd, err)
		}},
		{name: "limits", want: eperm, act: func(s Scene) error {
			var l unix.Rlimit
			if err := unix.Prlimit(s.Victim, unix.RLIMIT_CORE, nil, &l); err != nil {
				return err
			}
			l.Cur = 0
			return unix.Prlimit(s.Victim, unix.RLIMIT_CORE, &l, nil)
		}},
		{name: "affinity", want: eperm, act: func(s Scene) error {
			var cpus unix.CPUSet
			cpus.Set(0)
			return unix.SchedSetaffinity(s.Victim, &cpus)
		}},
		{name: "priority", want: eperm, act: func(s Scene) error { return unix.Setpriority(unix.PRIO_PROCESS, s.Victim, 19) }},
		// IOPRIO_WHO_USER, where a target of 0 is everything the user runs; the class is
		// invalid, so that the control stops short of it.
		{name: "io-priority-of-user", want: eperm, private: own, act: reached(unix.SYS_IOPRIO_SET, 3, 0, 7<<13)},
		{name: "io-priority", want: eperm, act: func(s Scene) error {
			return raw(unix.SYS_IOPRIO_SET, 1, uintptr(s.Victim), 3<<13) // idle class
		}},
		{name: "wrapper-score", act: func(s Scene) error {
			return opens(fmt.Sprintf("/proc/%d/oom_score_adj", s.Wrapper), unix.O_WRONLY)
		}},
		{name: "wrapper-input", act: func(s Scene) error {
			return opens(fmt.Sprintf("/proc/%d/fd/0", s.Wrapper), unix.O_RDONLY)
		}},
		{name: "wrapper-descriptors", act: func(s Scene) error {
			// Root may list the numbers, which tell nothing; what they are is the secret.
			return EachTask(s.Wrapper, func(tid int) error {
				err := error(unix.EACCES)
				for fd := range 64 {
					name := fmt.Sprintf("/proc/%d/fd/%d", tid, fd)
					_, failed := unix.Readlink(name, make([]byte, 64))
					if failed == nil || opens(name, unix.O_RDONLY) == nil {
						return nil
					}
				}
				return err
			})
		}},
	}
}

func vmCopy(nr uintptr, pid int) error {
	var b [8]byte
	local := unix.Iovec{Base: &b[0], Len: 8}
	// The remote address is wrong, so that a permitted write changes nothing.
	remote := unix.RemoteIovec{Base: 8, Len: 8}
	_, _, errno := unix.Syscall6(nr, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	if errno == unix.EFAULT {
		return nil
	}
	return errOf(errno)
}

// reached turns the result of a call with senseless arguments into a success if the
// kernel got as far as looking at them.
func reached(nr uintptr, args ...uintptr) func(Scene) error {
	return func(Scene) error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		switch errno {
		case unix.EPERM, unix.ENOSYS, unix.EACCES:
			return errno
		}
		return nil
	}
}

// kernelProbes reach for what only the kernel's administration or its less
// travelled parts give.
func kernelProbes() []Probe {
	eperm, enosys, own := []string{"EPERM"}, []string{"ENOSYS"}, []string{"ok"}
	const bad = harmless
	return []Probe{
		{name: "user-namespace", want: eperm, only: mayNeedKernel, act: func(Scene) error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
			err := cmd.Run()
			var errno unix.Errno
			if errors.As(err, &errno) {
				return errno
			}
			return err
		}},
		{name: "unshare-mounts", want: eperm, only: mayNeedRoot, act: func(Scene) error { return unix.Unshare(unix.CLONE_NEWNS) }},
		{name: "clone3", want: enosys, act: reached(unix.SYS_CLONE3, bad, 64)},
		{name: "mount", want: eperm, only: mayNeedRoot, act: reached(unix.SYS_MOUNT, bad, bad, bad, 0, 0)},
		{name: "fsopen", want: eperm, only: mayNeedRoot, act: reached(unix.SYS_FSOPEN, bad, 0)},
		{name: "open-tree", want: eperm, act: reached(unix.SYS_OPEN_TREE, uintptr(1<<32-100), bad, 0)},
		{name: "open-tree-attr", want: eperm, only: mayNeedKernel, act: reached(467, uintptr(1<<32-100), bad, 0, bad, 32)},
		{name: "not-yet-a-call", want: enosys, only: mayNeedKernel, act: reached(Newest + 1)},
		{name: "chroot", want: eperm, only: mayNeedRoot, act: reached(unix.SYS_CHROOT, bad)},
		{name: "module", want: eperm, only: mayNeedKernel, act: reached(unix.SYS_FINIT_MODULE, bad, bad, 0)},
		{name: "bpf", want: eperm, only: mayNeedKernel, act: reached(unix.SYS_BPF, 5, bad, 64)},
		{name: "perf", want: eperm, only: mayNeedKernel, act: reached(unix.SYS_PERF_EVENT_OPEN, bad, 0, 0, 0, 0)},
		{name: "userfaultfd", want: eperm, only: mayNeedKernel, act: reached(unix.SYS_USERFAULTFD, 1)},
		{name: "io-uring", want: enosys, only: mayNeedKernel, act: reached(unix.SYS_IO_URING_SETUP, 1, bad)},
		{name: "keys", want: enosys, only: mayNeedKernel, act: reached(unix.SYS_KEYCTL, 0, bad)},
		{name: "personality", want: eperm, act: reached(unix.SYS_PERSONALITY, 0x0040000)},
		{name: "secret-memory", want: eperm, only: mayNeedKernel, act: reached(unix.SYS_MEMFD_SECRET, 0)},
		{name: "device-node", want: eperm, only: mayNeedRoot, act: func(s Scene) error {
			return unix.Mknod(s.In+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(253, 0)))
		}},
		{name: "push-keys", want: eperm, act: func(Scene) error {
			_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, bad, 0x5412, bad)
			if errno == unix.EBADF {
				return nil
			}
			return errOf(errno)
		}},
		{name: "push-keys-high-bits", want: eperm, act: func(Scene) error {
			_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, bad, 0xdeadbeef00005412, bad)
			if errno == unix.EBADF {
				return nil
			}
			return errOf(errno)
		}},
		{name: "hostname", want: eperm, only: mayNeedRoot, act: reached(unix.SYS_SETHOSTNAME, bad, 8)},
		{name: "clock", want: eperm, only: mayNeedRoot, act: reached(unix.SYS_CLOCK_SETTIME, 0, bad)},
		{name: "shared-memory", want: enosys, private: own, only: mayNeedKernel, act: reached(unix.SYS_SHMGET, bad, 0, 0)},
		{name: "semaphore", want: enosys, private: own, only: mayNeedKernel, act: reached(unix.SYS_SEMGET, bad, 0, 0)},
		{name: "message-queue", want: enosys, private: own, only: mayNeedKernel, act: reached(unix.SYS_MQ_OPEN, bad, 0, 0, 0)},
		// The raw call, because Go's changes every thread.
		{name: "set-user-id", want: eperm, private: []string{"EINVAL"}, only: mayNeedRoot, act: func(Scene) error {
			_, _, errno := unix.RawSyscall(unix.SYS_SETUID, 12345, 0, 0)
			return errOf(errno)
		}},
		{name: "own-capabilities", want: eperm, only: mayNeedRoot, act: func(Scene) error {
			h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			d := [2]unix.CapUserData{{Effective: 1, Permitted: 1}, {}}
			return unix.Capset(&h, &d[0])
		}},
		{name: "no-new-privileges-off", want: []string{"on"}, act: func(Scene) error {
			if statusField("/proc/thread-self/status", "NoNewPrivs:") == "1" {
				return errors.New("on")
			}
			return nil
		}},
		{name: "terminal", want: []string{"ENXIO", "EACCES"}, only: mayNeedKernel, act: func(Scene) error { return opens("/dev/tty", unix.O_RDWR) }},
	}
}

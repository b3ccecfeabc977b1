package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/escape"
)

// actMain is the child: it tries each act "name:argument" and prints one line for it.
func actMain(acts []string) {
	for _, a := range acts {
		name, arg, _ := strings.Cut(a, ":")
		fmt.Printf("%s=%s\n", name, outcome(act(name, arg)))
	}
	os.Exit(0)
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

func act(name, arg string) error {
	in, out := filepath.Join(arg, "ws"), filepath.Join(arg, "out")
	switch name {
	case "create":
		return touch(out+"/new", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	case "append":
		return touch(out+"/file", unix.O_WRONLY|unix.O_APPEND)
	case "truncate":
		return unix.Truncate(out+"/file", 0)
	case "otrunc":
		return touch(out+"/file", unix.O_RDONLY|unix.O_TRUNC)
	case "read":
		return touch(out+"/file", unix.O_RDONLY)
	case "list":
		_, err := os.ReadDir(out)
		return err
	case "mkdir":
		return unix.Mkdir(out+"/newdir", 0o700)
	case "rmdir":
		return unix.Rmdir(out + "/empty")
	case "unlink":
		return unix.Unlink(out + "/dir/file")
	case "renameout":
		return unix.Rename(in+"/mine", out+"/stolen")
	case "steal":
		return unix.Rename(out+"/other", in+"/other")
	case "renamein":
		return unix.Rename(out+"/file", out+"/file2")
	case "link":
		return unix.Link(out+"/file", in+"/linked")
	case "symlink":
		return unix.Symlink("file", out+"/sym")
	case "mkfifo":
		return unix.Mkfifo(out+"/fifo", 0o600)
	case "chmod":
		return unix.Chmod(out+"/file", 0o640)
	case "secret":
		return touch(arg+"/home/.ssh/id_x", unix.O_RDONLY)
	case "secretlink":
		if err := unix.Symlink(arg+"/home/.ssh/id_x", in+"/link-to-secret"); err != nil {
			return fmt.Errorf("planting: %s", err.Error())
		}
		return touch(in+"/link-to-secret", unix.O_RDONLY)
	case "secretroot":
		return touch("/proc/self/root"+arg+"/home/.ssh/id_x", unix.O_RDONLY)
	case "wswrite":
		return os.WriteFile(in+"/made", []byte("x"), 0o600)
	case "wsreplace":
		if err := os.WriteFile(in+"/tmp1", []byte("x"), 0o600); err != nil {
			return err
		}
		return os.Rename(in+"/tmp1", in+"/mine")
	case "tmpwrite":
		return os.WriteFile(os.Getenv("TMPDIR")+"/t", nil, 0o600)
	case "hosttmp":
		f, err := os.CreateTemp("/tmp", "atip-exec-test-")
		if err == nil {
			f.Close()
			os.Remove(f.Name())
		}
		return err
	case "tcp":
		c, err := net.DialTimeout("tcp", arg, 20*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	case "self":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() { _, _ = l.Accept() }()
		return act("tcp", l.Addr().String())
	case "udp":
		return sock(unix.AF_INET, unix.SOCK_DGRAM, 0)
	case "tcp6":
		return sock(unix.AF_INET6, unix.SOCK_STREAM, 0)
	case "raw":
		return sock(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	case "netlink":
		return sock(unix.AF_NETLINK, unix.SOCK_RAW, 0)
	case "unix":
		return sock(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	case "socketpair":
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	case "fork":
		cmd := exec.Command("/usr/bin/true")
		return cmd.Run()
	}
	return processAct(name, arg)
}

func sock(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// processAct tries what concerns other processes; arg is a process id.
func processAct(name, arg string) error {
	pid, _ := strconv.Atoi(arg)
	switch name {
	case "kill0":
		return unix.Kill(pid, 0)
	case "ptrace":
		return unix.PtraceSeize(pid) // detached when this process ends
	case "environ":
		_, err := os.ReadFile("/proc/" + arg + "/environ")
		return err
	case "prlimit":
		var l unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &l); err != nil {
			return err
		}
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &l, nil)
	case "setpriority":
		return unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	case "wrappermem":
		return escape.EachTask(os.Getppid(), func(tid int) error { return touch(fmt.Sprintf("/proc/%d/mem", tid), unix.O_RDONLY) })
	case "wrapperenviron":
		return escape.EachTask(os.Getppid(), func(tid int) error { return touch(fmt.Sprintf("/proc/%d/environ", tid), unix.O_RDONLY) })
	case "wrapperkill":
		return escape.EachTask(os.Getppid(), func(tid int) error {
			if err := unix.Kill(tid, unix.SIGKILL); err == nil {
				return nil
			}
			return unix.Tgkill(os.Getppid(), tid, unix.SIGKILL)
		})
	case "capabilities":
		for _, set := range []string{"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"} {
			if v := statusField("/proc/self/status", set); strings.Trim(v, "0") != "" {
				return errors.New(set + v)
			}
		}
		if v := statusField("/proc/self/status", "CapBnd:"); os.Getuid() == 0 && strings.Trim(v, "0") != "" {
			return errors.New("CapBnd " + v)
		}
		return nil
	case "nnp":
		if v := statusField("/proc/self/status", "NoNewPrivs:"); v != "1" {
			return errors.New("NoNewPrivs " + v)
		}
		return nil
	case "fds":
		dir, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		var fds []string
		for _, d := range dir {
			// The listing's own descriptor and the runtime's are not inherited.
			if link, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/proc/") && !strings.HasPrefix(link, "/sys/") {
				fds = append(fds, d.Name())
			}
		}
		return errors.New(strings.Join(fds, ","))
	case "where":
		dir, _ := os.Getwd()
		old := unix.Umask(0)
		return fmt.Errorf("%s %04o", dir, old)
	case "argv":
		return fmt.Errorf("%q", os.Args)
	case "environment":
		return fmt.Errorf("%q", os.Environ())
	case "exe":
		link, err := os.Readlink("/proc/self/exe")
		return errors.Join(err, errors.New(link))
	case "sleep":
		time.Sleep(time.Minute)
	case "forks":
		var running []*exec.Cmd
		for range pid {
			cmd := exec.Command("/usr/bin/sleep", "20")
			if cmd.Start() == nil {
				running = append(running, cmd)
			}
		}
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		return errors.New(itoa(len(running)))
	}
	return networkAct(name, arg)
}

func itoa(n int) string { return strconv.Itoa(n) }

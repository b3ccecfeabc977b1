package escape

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sightProbes look at what is outside without opening it. Only a private root hides it.
func sightProbes() []Probe {
	none := []string{"ENOENT"}
	return []Probe{
		{name: "stat", want: none, act: func(s Scene) error {
			var st unix.Stat_t
			return unix.Stat(s.Out+"/file", &st)
		}},
		{name: "access", want: none, act: func(s Scene) error { return unix.Access(s.Out+"/file", unix.F_OK) }},
		{name: "readlink", want: none, act: func(s Scene) error {
			_, err := unix.Readlink(s.Out+"/file", make([]byte, 8))
			if errors.Is(err, unix.EINVAL) {
				return nil // it is there, and no link
			}
			return err
		}},
		{name: "chdir", want: none, act: func(s Scene) error {
			if err := unix.Chdir(s.Out); err != nil {
				return err
			}
			return unix.Chdir("/")
		}},
		{name: "watch", want: none, act: func(s Scene) error {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.InotifyAddWatch(fd, s.Out, unix.IN_ACCESS)
			return err
		}},
		{name: "statfs", want: none, act: func(s Scene) error {
			var st unix.Statfs_t
			return unix.Statfs(s.Out, &st)
		}},
		{name: "command-line", want: none, act: func(s Scene) error {
			return opens(fmt.Sprintf("/proc/%d/cmdline", s.Victim), unix.O_RDONLY)
		}},
		{name: "process-directory", want: none, act: func(s Scene) error {
			var st unix.Stat_t
			return unix.Stat(fmt.Sprintf("/proc/%d", s.Victim), &st)
		}},
	}
}

// workspaceProbes plant in the workspace what runs by itself later, and look at the
// temporary directories and limits that a run has for its own.
func workspaceProbes() []Probe {
	erofs := []string{"EROFS", "EBUSY"}
	write := func(path string) error { return os.WriteFile(path, []byte("planted\n"), 0o600) }
	unwrap := func(err error) error {
		var p *os.PathError
		if errors.As(err, &p) {
			return p.Err
		}
		return err
	}
	planted := func(name string) func(Scene) bool {
		return func(s Scene) bool {
			data, err := os.ReadFile(s.Base + "/ws/" + name)
			return err == nil && string(data) == "planted\n"
		}
	}
	return []Probe{
		{name: "pinned-hook", want: erofs, act: func(s Scene) error { return unwrap(write(s.Base + "/ws/.git/hooks/pre-commit")) }},
		{name: "pinned-settings", want: erofs, act: func(s Scene) error { return unwrap(write(s.Base + "/ws/.claude/settings.json")) }},
		{name: "renamed-repository", want: erofs, act: func(s Scene) error {
			// Put back at once, as other probes need it.
			if err := unix.Rename(s.Base+"/ws/.git", s.Base+"/ws/g"); err != nil {
				return err
			}
			return unix.Rename(s.Base+"/ws/g", s.Base+"/ws/.git")
		}},
		{name: "planted-settings", want: []string{"ok"}, visible: planted(".mcp.json"), act: func(s Scene) error { return unwrap(write(s.Base + "/ws/.mcp.json")) }},
		{name: "planted-hook", want: []string{"ok", "EROFS"}, visible: planted(".git/hooks/post-commit"), act: func(s Scene) error {
			return unwrap(write(s.Base + "/ws/.git/hooks/post-commit"))
		}},
		{name: "shared-temporary", private: []string{"ok"}, visible: func(s Scene) bool { return mark(s, "/tmp") }, act: func(s Scene) error {
			return unwrap(write("/tmp/" + marker(s)))
		}},
		{name: "shared-memory-file", private: []string{"ok"}, only: mayNeedKernel, visible: func(s Scene) bool { return mark(s, "/dev/shm") }, act: func(s Scene) error {
			return unwrap(write("/dev/shm/" + marker(s)))
		}},
		{name: "many-descriptors", want: []string{"EMFILE"}, act: func(Scene) error {
			var open []int
			defer func() {
				for _, fd := range open {
					unix.Close(fd)
				}
			}()
			for range 2 * OpenFiles {
				fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				open = append(open, fd)
			}
			return nil
		}},
	}
}

// marker is a name in a shared directory that no other world has.
func marker(s Scene) string {
	name := []byte("atip-exec" + s.Base)
	for i, b := range name {
		if b == '/' {
			name[i] = '-'
		}
	}
	return string(name)
}

// mark reports whether the marker is in dir, and removes it.
func mark(s Scene, dir string) bool { return os.Remove(dir+"/"+marker(s)) == nil }

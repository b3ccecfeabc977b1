package escape

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// World is a workspace beside things that no run may touch, with a scene for each
// probe and somebody who listens.
type World struct {
	Base, Workspace, Out, Home, Private string
	listeners                           []net.Listener
}

// NewWorld lays out the world in base, an empty directory with a canonical name.
func NewWorld(base string, probes []Probe) (*World, error) {
	w := &World{Base: base, Workspace: base + "/ws", Out: base + "/out", Home: base + "/home", Private: base + "/private"}
	for _, d := range []string{w.Workspace, w.Out, w.Home + "/.ssh", w.Private + "/tmp", w.Workspace + "/.git/hooks", w.Workspace + "/.claude"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	files := []string{w.Workspace + "/.git/hooks/pre-commit", w.Workspace + "/.claude/settings.json", w.Home + "/.ssh/id_x"}
	for _, p := range probes {
		s := SceneOf(base, p)
		for _, d := range []string{s.In, s.Out + "/dir"} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				return nil, err
			}
		}
		files = append(files, s.In+"/mine", s.Out+"/file", s.Out+"/secret", s.Out+"/dir/file")
		if err := os.WriteFile(s.Out+"/tool", []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("content\n"), 0o600); err != nil {
			return nil, err
		}
	}
	return w, w.listen()
}

// listen opens what the channel probes try to reach.
func (w *World) listen() error {
	if err := unix.Mkfifo(w.Base+"/fifo", 0o600); err != nil {
		return err
	}
	for address, network := range map[string]string{"127.0.0.1:0": "tcp", w.Base + "/s": "unix", "@" + w.Base: "unix"} {
		l, err := net.Listen(network, address)
		if err != nil {
			w.Close()
			return err
		}
		w.listeners = append(w.listeners, l)
		if network == "tcp" {
			if err := os.WriteFile(w.Workspace+"/port", []byte(l.Addr().String()), 0o600); err != nil {
				w.Close()
				return err
			}
		}
	}
	return nil
}

// Close stops listening.
func (w *World) Close() {
	for _, l := range w.listeners {
		l.Close()
	}
}

// Snapshot is everything below dir that a probe could have changed.
func Snapshot(dir string) (map[string]string, error) {
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		content := ""
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		case d.Type()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		seen[path] = fmt.Sprint(st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Size, st.Mtim, content)
		return nil
	})
	return seen, err
}

// Difference lists the paths that two snapshots do not agree on.
func Difference(before, after map[string]string) []string {
	var out []string
	for path, v := range before {
		if after[path] != v {
			out = append(out, path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			out = append(out, path)
		}
	}
	return out
}

// ProcessSnapshot is what another process could have been given.
func ProcessSnapshot(pid int) (string, error) {
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		return "", err
	}
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &cpus); err != nil {
		return "", err
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit); err != nil {
		return "", err
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	score, err := os.ReadFile(dir + "oom_score_adj")
	if err != nil {
		return "", err
	}
	return fmt.Sprint(nice, cpus.Count(), limit, strings.TrimSpace(string(score)), " ", statusField(dir+"status", "TracerPid:")), nil
}

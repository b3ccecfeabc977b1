package registries

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/shims"
)

// lockLine is one tool of a lock, as it was and as it is.
type lockLine struct {
	Tool   string         `json:"tool"`
	State  string         `json:"state"` // locked, same, lock_mismatch, absent
	Locked *toollock.Tool `json:"locked,omitempty"`
	Found  *toollock.Tool `json:"found,omitempty"`
}

// LockVerb writes down which files tools are, or compares.
func LockVerb(c *cli.Console, v *cli.Values) (int, error) {
	dirs, at, err := answer.Home()
	if err != nil {
		return 0, err
	}
	file, err := lockFile(dirs, v.Has("user"))
	if err != nil {
		return 0, err
	}
	lock, err := toollock.Read(file)
	if err != nil {
		return 0, err
	}
	names := slices.Compact(slices.Sorted(slices.Values(v.Rest)))
	if len(names) == 0 {
		for name, platforms := range lock {
			if _, ok := platforms[toollock.Platform()]; ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	if len(names) == 0 {
		return 0, fault.New(errcode.Arguments, file+" locks nothing for this platform").WithFix("name the tools to lock", "atip lock git gh")
	}
	lines, status := []lockLine{}, 0
	if lock == nil {
		lock = toollock.Lock{}
	}
	for _, name := range names {
		line, err := lockedLine(name, lock, at)
		if err != nil {
			return 0, err
		}
		if !v.Has("check") {
			if line.Found == nil {
				return 0, fault.New(errcode.NoInputFile, name+" is not installed: there is nothing to lock").WithFix("install it, or leave it out", "")
			}
			if lock[name] == nil {
				lock[name] = map[string]toollock.Tool{}
			}
			lock[name][toollock.Platform()], line.State = *line.Found, "locked"
		} else if line.State == "lock_mismatch" {
			status = 65
		}
		lines = append(lines, line)
	}
	if !v.Has("check") {
		if err := writeToolLock(file, lock); err != nil {
			return 0, err
		}
	}
	return status, printLock(c, file, lines, status)
}

// lockedLine compares one tool with what the lock says about it.
func lockedLine(name string, lock toollock.Lock, at shims.Dirs) (lockLine, error) {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return lockLine{}, fault.New(errcode.Arguments, fmt.Sprintf("%q is not the name of a tool", name)).WithFix("name it as it is found in PATH", "atip lock git")
	}
	line := lockLine{Tool: name, State: "absent"}
	if t, ok := lock[name][toollock.Platform()]; ok {
		line.Locked = &t
	}
	s, err := answer.SubjectOf(name)
	if err != nil {
		return line, err
	}
	if s.Digest == "" {
		return line, nil
	}
	found := toollock.Tool{Digest: "sha256:" + s.Digest, Source: lockSource(s, at)}
	if s.Provenance.Digest != "" {
		found.Document = "sha256:" + s.Provenance.Digest
	}
	if s.Evidence != nil {
		found.Signer, found.Provenance = s.Evidence.Identity, s.Evidence.Builder
	}
	line.Found, line.State = &found, "lock_mismatch"
	if line.Locked != nil && line.Locked.Digest == found.Digest && (line.Locked.Signer == "" || line.Locked.Signer == found.Signer) &&
		(line.Locked.Provenance == "" || line.Locked.Provenance == found.Provenance) && (line.Locked.Document == "" || line.Locked.Document == found.Document) {
		line.State = "same"
	}
	return line, nil
}

// lockSource says where metadata comes from without naming a path of this machine.
func lockSource(s answer.Subject, at shims.Dirs) string {
	switch p := s.Provenance; p.Channel {
	case "none", "":
		return ""
	case "builtin":
		return p.Source
	case "shim":
		if _, meta, ok := shims.Cached(at.ShimPath(s.Digest)); ok && meta.Registry != "" {
			return "registry:" + meta.Registry
		}
	}
	return s.Provenance.Channel
}

// lockFile is the user's lock, or that of the workspace around the current directory.
func lockFile(dirs place.Dirs, user bool) (string, error) {
	if user {
		if dirs.Config == "" {
			return "", fault.New(errcode.NoInputFile, "there is no configuration directory").WithFix("set HOME", "")
		}
		return filepath.Join(dirs.Config, toollock.UserFile), nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", fault.New(errcode.NoInputFile, err.Error())
	}
	root, _, why := place.FindWorkspace(cwd, dirs, os.Geteuid())
	if root == "" {
		return "", fault.New(errcode.NoInputFile, "there is no workspace here: "+why).WithFix("change to a project, or write your own lock with --user", "atip lock --user git")
	}
	return filepath.Join(root, filepath.FromSlash(toollock.ProjectFile)), nil
}

// writeToolLock replaces the lock in one step, in an order that a review can follow.
func writeToolLock(file string, lock toollock.Lock) error {
	raw, err := json.MarshalIndent(map[string]any{"tools": lock}, "", "  ")
	if err != nil {
		return fault.New(errcode.Internal, err.Error())
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fault.New(errcode.NoInputFile, err.Error()).With("file", file)
	}
	return shims.WriteFile(file, append(raw, '\n'))
}

func printLock(c *cli.Console, file string, lines []lockLine, status int) error {
	if c.Documents() {
		return c.Document(map[string]any{"kind": "atip-exec.lock/1", "file": file, "platform": toollock.Platform(), "ok": status == 0, "tools": lines})
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%-20s %s", answer.Plain(l.Tool), l.State)
		if l.State == "lock_mismatch" && l.Locked != nil {
			now, old := map[string]string{"digest": l.Found.Digest, "document": l.Found.Document, "signer": l.Found.Signer, "provenance": l.Found.Provenance},
				map[string]string{"digest": l.Locked.Digest, "document": l.Locked.Document, "signer": l.Locked.Signer, "provenance": l.Locked.Provenance}
			for _, key := range slices.Sorted(maps.Keys(now)) {
				if old[key] != "" && old[key] != now[key] {
					fmt.Fprintf(&b, "  %s %s, was %s", key, answer.Plain(now[key]), answer.Plain(old[key]))
				}
			}
		}
		b.WriteString("\n")
	}
	return c.Text(b.String())
}

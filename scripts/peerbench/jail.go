package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/corpus"
)

// found is what of this machine a jail needs.
type found struct{ node string }

// jail is a root of its own, made by bubblewrap, that holds a peer, its adapter, the world
// of the corpus, all read-only, and nothing else: no shell, no program that a row names,
// no network but a loopback of its own.
type jail struct {
	bwrap     string
	self      string // this program: the probe, and the stub
	node      string // "" where the adapter needs none
	adapters  string
	installed string
	stub      bool
	world     corpus.World
}

// jailed is where things of a peer are in its jail.
func jailed(name string) string { return "/peer/" + name }

// jailNode is Node in a jail.
const jailNode = "/peer/node"

// jailPath is the PATH of a jail. Where no stub is, these directories do not exist.
const jailPath = "/usr/bin:/bin"

func (j jail) command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
		"--setenv", "PATH", jailPath, "--setenv", "HOME", j.world.Home, "--setenv", "LANG", "C.UTF-8", "--setenv", "SHELL", "/bin/bash",
		"--setenv", "CODEX_HOME", "/state/codex", "--setenv", "XDG_STATE_HOME", "/state",
		"--tmpfs", "/", "--dir", "/tmp", "--dir", "/state", "--proc", "/proc", "--dev", "/dev",
		"--ro-bind", j.self, jailed("self"), "--ro-bind", j.adapters, jailed("adapters"), "--ro-bind", j.installed, jailed("installed"),
		"--ro-bind", j.world.Home, j.world.Home}
	if j.node != "" {
		args = append(args, "--ro-bind", j.node, jailNode)
	}
	for _, program := range []string{j.node, j.self} {
		libs, err := libraries(ctx, program)
		if err != nil {
			return nil, err
		}
		for _, lib := range libs {
			args = append(args, "--ro-bind", lib, lib)
		}
	}
	if j.stub {
		args = append(args, "--ro-bind", j.self, "/usr/bin/bash", "--ro-bind", j.self, "/usr/bin/sh", "--symlink", "usr/bin", "/bin")
	}
	args = append(args, "--chdir", j.world.Dir, "--")
	cmd := exec.CommandContext(ctx, j.bwrap, append(args, argv...)...)
	cmd.Env = []string{}
	return cmd, nil
}

// libraries lists the shared libraries of a program, with the loader.
func libraries(ctx context.Context, program string) ([]string, error) {
	if program == "" {
		return nil, nil
	}
	if static, err := isStatic(program); err != nil || static {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, err)
	}
	var libs []string
	for _, word := range strings.Fields(string(out)) {
		if filepath.IsAbs(word) {
			libs = append(libs, word)
		}
	}
	return libs, nil
}

func isStatic(program string) (bool, error) {
	f, err := elf.Open(program)
	if err != nil {
		return false, fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return false, nil
	}
	return true, nil
}

// check starts the probe in the jail.
func (j jail) check(ctx context.Context) error {
	cmd, err := j.command(ctx, jailed("self"), "probe", j.world.Dir)
	if err != nil {
		return err
	}
	var said tail
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the jail does not hold: %w%s", err, said.after(": "))
	}
	return nil
}

// programs are looked for by the probe beside what PATH holds.
var programs = []string{"sh", "bash", "dash", "busybox", "env", "rm", "cat", "ls", "git", "curl", "python3", "perl"}

// probe says what is wrong with the place that it runs in: a program that a command
// could start, a network, a work tree that can be written.
func probe(workTree string) error {
	var wrong []error
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return err
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/opt") {
		names := programs
		if entries, err := os.ReadDir(dir); err == nil {
			names = nil
			for _, e := range entries {
				names = append(names, e.Name())
			}
		}
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name))
			if err == nil && !os.SameFile(info, self) {
				wrong = append(wrong, fmt.Errorf("%s is there", filepath.Join(dir, name)))
			}
		}
	}
	devices, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		wrong = append(wrong, err)
	}
	for _, line := range strings.Split(string(devices), "\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) != "lo" {
			wrong = append(wrong, fmt.Errorf("the network interface %s is there", strings.TrimSpace(name)))
		}
	}
	name := filepath.Join(workTree, ".probe")
	if f, err := os.Create(name); err == nil {
		f.Close()
		os.Remove(name)
		wrong = append(wrong, errors.New("the work tree can be written"))
	}
	if len(wrong) > 5 {
		wrong = append(wrong[:5], errors.New("…"))
	}
	return errors.Join(wrong...)
}

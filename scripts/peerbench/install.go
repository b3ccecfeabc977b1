package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is where a peer comes from.
type source interface {
	// install puts the peer below scratch and returns its directory. What is there
	// already from the same lock file is used again.
	install(ctx context.Context, adapters, scratch string) (string, error)
	// needsNode says that the adapter is a module of Node.
	needsNode() bool
}

// npmPackage is installed by "npm ci" from the lock file of a folder. No script of a
// package runs.
type npmPackage struct{ folder string }

func (npmPackage) needsNode() bool { return true }

func (n npmPackage) install(ctx context.Context, adapters, scratch string) (string, error) {
	dir := filepath.Join(scratch, n.folder)
	lock, err := os.ReadFile(filepath.Join(adapters, n.folder, "package-lock.json"))
	if err != nil {
		return "", err
	}
	// Written last, so that what was broken off is not used.
	done := filepath.Join(dir, ".installed")
	if have, err := os.ReadFile(done); err == nil && bytes.Equal(have, lock) {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		if err := copyFile(filepath.Join(adapters, n.folder, name), filepath.Join(dir, name), 0o644); err != nil {
			return "", err
		}
	}
	if err := tool(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return "", err
	}
	return dir, os.WriteFile(done, lock, 0o644)
}

// goModule is an adapter in Go with a module of its own; go.sum holds the digests. A
// template is a configuration that the module ships.
type goModule struct{ folder, module, template string }

func (goModule) needsNode() bool { return false }

func (g goModule) install(ctx context.Context, adapters, scratch string) (string, error) {
	from, dir := filepath.Join(adapters, g.folder), filepath.Join(scratch, g.folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := tool(ctx, from, []string{"CGO_ENABLED=0"}, "go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-o", filepath.Join(dir, "adapter"), "."); err != nil {
		return "", err
	}
	if g.template == "" {
		return dir, nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", g.module)
	list.Dir = from
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", g.module, err)
	}
	err = copyFile(filepath.Join(strings.TrimSpace(string(out)), "docs", "templates", g.template+".json"), filepath.Join(dir, g.template+".json"), 0o644)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("this version has no template %s", g.template)
	}
	return dir, err
}

// tool runs a program that installs; its errors say what it printed last.
func tool(ctx context.Context, dir string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var said tail
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w%s", name, args[0], err, said.after(": "))
	}
	return nil
}

func copyFile(from, to string, mode os.FileMode) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, mode)
}

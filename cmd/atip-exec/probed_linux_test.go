package main_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// answers are what the probe of the sandbox found out, by the user who asked.
var answers sync.Map

// probed puts into a new home what the probe found out in another one, as trying it takes as long
// as a run. The programs believe it if it was asked on the same machine, by the same program and
// with the same rights, and ask again otherwise: TestProbeCacheChangesNothing.
func probed(home string, uid int) error {
	answer, _ := answers.LoadOrStore(uid, sync.OnceValue(func() []byte { return probe(uid) }))
	text := answer.(func() []byte)()
	if text == nil {
		return nil // each run asks
	}
	dir := home
	for _, base := range []string{".local", "state", "atip-exec"} {
		dir = filepath.Join(dir, base)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "sandbox.probe"), text, 0o600)
}

// probe lets the user plan a command in a new home and returns the answer that it keeps.
func probe(uid int) []byte {
	home, err := os.MkdirTemp("/var/tmp", "atip-exec-probe-")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(home)
	cmd := exec.Command(filepath.Join(bin, "atip-exec"), "explain", "--", "true")
	cmd.Dir, cmd.Env = "/", []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		_ = os.Chown(home, uid, uid)
	}
	_ = cmd.Run()
	text, _ := os.ReadFile(filepath.Join(home, ".local/state/atip-exec/sandbox.probe"))
	return text
}

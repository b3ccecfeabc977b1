package selftest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/sandbox"
)

// lifetime tries to leave a process behind: past the end of the run, and past the end of
// a wrapper that is killed.
func (o Options) lifetime(ctx context.Context, r *Report) error {
	for _, killed := range []bool{false, true} {
		p := Probe{Family: "lifetime", Name: "outlive-the-run", Guarantee: string(sandbox.TreeEnd)}
		if killed {
			p.Name, p.Guarantee = "outlive-the-killed-wrapper", string(sandbox.TreeKilled)
		}
		var err error
		if p.Outside, err = o.outlive(ctx, killed, false); err != nil {
			return fmt.Errorf("control of %s: %w", p.Name, err)
		}
		if p.Inside, err = o.outlive(ctx, killed, true); err != nil {
			return err
		}
		switch {
		case p.Outside != "ok":
			p.Status = notHere
		case p.Inside == "ok":
			p.Status = escaped
		case p.Inside == "gone":
			p.Status = denied
		default:
			p.Status = launchFail
		}
		r.Probes = append(r.Probes, p)
	}
	return nil
}

// outlive says "ok" if the process that was left is there afterwards.
func (o Options) outlive(ctx context.Context, killed, confined bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	base, remove, err := o.scratch()
	if err != nil {
		return "", err
	}
	defer remove()
	for _, d := range []string{"/ws", "/home", "/private/tmp"} {
		if err := os.MkdirAll(base+d, 0o700); err != nil {
			return "", err
		}
	}
	defer func() {
		for _, pid := range leftBehind(base) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	how := "go"
	if killed {
		how = "stay"
	}
	argv := []string{Verb, "leave", base, how}
	cmd := exec.CommandContext(ctx, o.Self, argv...)
	cmd.Dir, cmd.Env = base+"/ws", environment(base)
	if confined {
		if cmd, err = o.wrapper(ctx, job{Policy: o.Policy, Names: o.Names, Self: o.Self, State: o.State, Base: base, Argv: argv}); err != nil {
			return "", err
		}
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() { _ = cmd.Process.Kill() }()
	// The process says by a file that it is there, as it may be gone before it is looked for.
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(base + "/ws/ready"); err == nil {
			break
		}
		if time.Since(began) > 20*time.Second {
			return "not started", nil
		}
	}
	if killed {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	if !killed && err != nil {
		return "", fmt.Errorf("leaving a process: %w", err)
	}
	// A killed wrapper ends others by signals that take a moment.
	for began := time.Now(); killed && time.Since(began) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if len(leftBehind(base)) == 0 {
			break
		}
	}
	if len(leftBehind(base)) > 0 {
		return "ok", nil
	}
	return "gone", nil
}

// leftBehind are the processes that left started for this world.
func leftBehind(base string) []int {
	var out []int
	for pid, line := range procstat.Lines() {
		if strings.HasSuffix(line, "\x00left\x00"+base+"\x00") {
			out = append(out, pid)
		}
	}
	return out
}

// leave starts a process in a session of its own, and stays if it is to be killed.
func leave(base string, stay bool) error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	cmd := exec.Command(self, Verb, "left", base)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	for range 4000 {
		if _, err := os.Stat(base + "/ws/ready"); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if stay {
		time.Sleep(patience)
	}
	return nil
}

// left says that it is there and ignores what can be ignored.
func left(base string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	if err := os.WriteFile(base+"/ws/ready", nil, 0o600); err != nil {
		return err
	}
	time.Sleep(patience)
	return nil
}

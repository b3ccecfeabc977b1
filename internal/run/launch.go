package run

import (
	"context"
	"os"
	"strconv"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/starts"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// launch starts the child as the plan says.
func (x *execution) launch() (*sandbox.Proc, error) {
	p, main := x.plan, x.plan.Steps[0]
	x.starts = starts.New(p, x.clean, x.note)
	path, byDescriptor, file := main.Executable.Start()
	cmd := sandbox.Cmd{Path: path, ByDescriptor: byDescriptor, File: file, Argv: step.LoginArgv(p.Argv, p.Env.Entries, p.Commands()...), Env: p.Env.Entries, Stdin: x.binds.Stdin, Stdout: x.binds.Stdout, Stderr: x.binds.Stderr,
		Pass: x.binds.Pass, Umask: p.Policies.Process().Umask, Check: main.Executable.CheckStarted, Stopped: x.stopped}
	if main.Executable.Inherit() {
		// The interpreter opens the script by the name that the kernel hands it, so the
		// number of the descriptor has to be one that the child keeps.
		n := plan.FreeDescriptor(p.TextFD, p.NestFD)
		cmd.Pass[n], cmd.ByDescriptor, cmd.Path = file, false, "/proc/self/fd/"+strconv.Itoa(n)
	}
	cmd.Regenerable = p.World.Ignored
	cmd.Prepared, cmd.Inside, cmd.Observe, cmd.Gate = p.Prepared, p.Inside(), x.observing, x.starts.Rules()
	x.binds.Terminal.Apply(&cmd, p.Machine.Stdin)
	if p.Invocation.Directory != "" {
		cmd.Dir = p.Cwd
		if subpath.Within(p.Cwd, p.Workspace) {
			cmd.DirID = p.CwdID // elsewhere a private root has directories of its own
		}
	}
	if p.SharesTmp() {
		cmd.Before = x.staged.BringTmp
	}
	if p.Profile.Net.Mode == sandbox.NetAllowlist {
		x.network = drive.NewNetwork(p.HostList.Rules, p.HostList.Forward, x.warn, x.clean)
		cmd.Serve = x.network.Serve
	}
	proc, err := sandbox.Start(context.Background(), p.Profile, p.Setup, cmd)
	if err != nil {
		x.network.Settle() // nothing ran, but somebody may listen
	}
	return proc, err
}

// selectAgain asks the machine anew after a start that an earlier answer of it had
// promised, and plans the confinement by what it says now. It returns false if the start
// need not be tried again; *failed then is why the run ends. A decision that rests on the
// earlier answer, or a person's that names what it enforced, is not carried over.
func (x *execution) selectAgain(failed *error) bool {
	p := x.plan
	host, differs := sandbox.Reprobe(p.ProbeCache(), p.Host)
	if !differs || sandbox.Enforceable(host) != sandbox.Enforceable(p.Host) {
		return false
	}
	bound := p.BoundSandbox()
	x.network = nil
	if err := p.ConfineOn(host); err != nil {
		*failed = err
		return false
	}
	if x.permission.Given() && p.BoundSandbox() != bound {
		return false
	}
	x.warn("the sandbox could not be made as this machine had promised (" + (*failed).Error() + "); asked again, it gives " + p.Setup.Tier().String())
	x.status.Sandbox = p.Receipt()
	x.status.Env = &status.Env{Dropped: p.Env.Dropped, Credentials: p.Env.Credentials}
	return true
}

// stopped is called when the child was stopped by a signal.
func (x *execution) stopped(pid int, sig syscall.Signal) {
	if err := x.binds.Terminal.Stopped(pid, sig); err != nil {
		x.warn(err.Error())
	}
}

// forward passes on a signal that this process was sent.
func (x *execution) forward(sig os.Signal) {
	if !x.binds.Terminal.Forward(sig, x.proc) {
		x.note("signal", sig.String())
	}
}

package run

import (
	"context"
	"os"
	"strconv"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// launch starts the child as the plan says.
func (x *execution) launch() (*sandbox.Proc, error) {
	p, main := x.plan, x.plan.steps[0]
	path, byDescriptor, file := main.Executable.Start()
	cmd := sandbox.Cmd{Path: path, ByDescriptor: byDescriptor, File: file, Argv: loginArgv(p.Argv, p.env.entries, p.commands()...), Env: p.env.entries, Stdin: x.binds.stdin, Stdout: x.binds.stdout, Stderr: x.binds.stderr,
		Pass: x.binds.pass, Umask: p.policies.Process().Umask, Check: main.Executable.CheckStarted, Stopped: x.stopped}
	if main.Executable.Inherit() {
		// The interpreter opens the script by the name that the kernel hands it, so the
		// number of the descriptor has to be one that the child keeps.
		n := freeDescriptor(p.textFD, p.nestFD)
		cmd.Pass[n], cmd.ByDescriptor, cmd.Path = file, false, "/proc/self/fd/"+strconv.Itoa(n)
	}
	cmd.Regenerable = p.world.Ignored
	cmd.Prepared, cmd.Inside, cmd.Observe, cmd.Gate = p.prepared, p.inside(), x.observing, x.gateRules()
	x.binds.terminal.Apply(&cmd, p.machine.Stdin)
	if p.inv.Directory != "" {
		cmd.Dir = p.Cwd
		if subpath.Within(p.Cwd, p.Workspace) {
			cmd.DirID = p.cwdID // elsewhere a private root has directories of its own
		}
	}
	if p.sharesTmp() {
		cmd.Before = x.bringTmp
	}
	if p.Profile.Net.Mode == sandbox.NetAllowlist {
		x.proxy = proxy.New(p.hostList.rules)
		cmd.Serve = x.serve
	}
	proc, err := sandbox.Start(context.Background(), p.Profile, p.Setup, cmd)
	if err != nil {
		x.settleNetwork() // nothing ran, but somebody may listen
	}
	return proc, err
}

// selectAgain asks the machine anew after a start that an earlier answer of it had
// promised, and plans the confinement by what it says now. It returns false if the start
// need not be tried again; *failed then is why the run ends. A decision that rests on the
// earlier answer, or a person's that names what it enforced, is not carried over.
func (x *execution) selectAgain(failed *error) bool {
	p := x.plan
	host, differs := sandbox.Reprobe(p.probeCache(), p.host)
	if !differs || sandbox.Enforceable(host) != sandbox.Enforceable(p.host) {
		return false
	}
	bound, warnings, made := p.boundSandbox(), len(p.Warnings), p.hostCwdMade
	p.host, p.enforced, x.proxy = host, nil, nil
	if err := stages(p.confine, p.environment); err != nil {
		*failed = err
		return false
	}
	if x.permitted() && p.boundSandbox() != bound {
		return false
	}
	p.Warnings = p.Warnings[:warnings] // told already
	p.hostCwdMade = made
	x.warn("the sandbox could not be made as this machine had promised (" + (*failed).Error() + "); asked again, it gives " + p.Setup.Tier().String())
	x.status.Sandbox = p.receipt()
	x.status.Env = &status.Env{Dropped: p.env.dropped, Credentials: p.env.credentials}
	return true
}

// stopped is called when the child was stopped by a signal.
func (x *execution) stopped(pid int, sig syscall.Signal) {
	if err := x.binds.terminal.Stopped(pid, sig); err != nil {
		x.warn(err.Error())
	}
}

// forward passes on a signal that this process was sent.
func (x *execution) forward(sig os.Signal) {
	if !x.binds.terminal.Forward(sig, x.proc) {
		x.note("signal", sig.String())
	}
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// refusedStatus is what agents take for a refusal. It is the one place where it is ours.
const refusedStatus = 2

// maxWrapped bounds a command that is handed on as one word of a command line: the kernel
// takes 128 KiB.
const maxWrapped = 120000

// hook answers an agent that asks before it runs a command. Each way out that is not a whole
// answer refuses.
func (c *Console) hook(v *Values) (status int) {
	var ask *wiring.Ask
	defer func() {
		if r := recover(); r != nil {
			status = c.answer(v, ask, "", Panicked(r, c))
		}
	}()
	if len(v.Rest) != 1 {
		return c.answer(v, nil, "", fault.New(errcode.Arguments, "hook: name one agent").WithFix("name an agent of `atip init`", "atip-exec hook claude"))
	}
	host, ok := wiring.ByName(v.Rest[0])
	if !ok || host.Ask == nil {
		return c.answer(v, nil, "", fault.New(errcode.Arguments, fmt.Sprintf("hook: no agent %q that asks", v.Rest[0])).WithFix("agents: "+strings.Join(wiring.Names(), ", "), "atip-exec hook claude"))
	}
	ask = host.Ask
	text, err := reply(host, wiring.Mode(v.Get("mode")), caller.Here())
	return c.answer(v, ask, text, err)
}

// answer prints what was found, or a refusal.
func (c *Console) answer(v *Values, ask *wiring.Ask, text string, err error) int {
	status := 0
	if err != nil {
		reason := refusalText(err)
		if ask != nil {
			text = ask.Denied(reason)
		}
		if text == "" {
			status = refusedStatus
			c.errLine(reason, "")
		}
	}
	if text != "" {
		text += "\n"
	}
	if seal := v.Get("seal"); seal != "" {
		text += seal + " " + strconv.Itoa(status) + "\n"
	}
	if _, err := io.WriteString(c.Out, text); err != nil {
		return refusedStatus
	}
	return status
}

// refusalText is what the model reads: the reason and the next step.
func refusalText(err error) string {
	f := fault.From(err)
	text := f.BriefLine()
	if f.Suggestion.Example != "" {
		text += ", for example: " + f.Suggestion.Example
	}
	return Printable(text)
}

// reply decides about one event.
func reply(host wiring.Host, mode wiring.Mode, m caller.Machine) (string, error) {
	ask := host.Ask
	raw, err := io.ReadAll(io.LimitReader(m.Stdin, wiring.MaxEvent+1))
	if err != nil {
		return "", wiring.Bad(err.Error())
	}
	if len(raw) > wiring.MaxEvent {
		// An agent that cannot write its event to the end may take that for a failed hook.
		_, _ = io.Copy(io.Discard, m.Stdin)
	}
	call, err := ask.Decode(raw)
	if err != nil {
		return "", err
	}
	if !call.Shell {
		return ask.Pass, nil
	}
	wrapped, policies := m.Wrapped(call.Command)
	switch {
	case policies:
		return "", fault.New(errcode.Denied, "denied: the policy of a command is not the caller's to choose").WithFix("leave out --policy, --profile and --prime", "")
	case len(call.Command) > maxWrapped:
		return "", fault.New(errcode.ShellText, "the command is longer than "+strconv.Itoa(maxWrapped)+" bytes").WithFix("put it into a script", "")
	}
	if row := host.Shell; mode == wiring.Shell {
		if err := inPlace(host, m); err != nil {
			return "", err
		}
	} else if row != nil && row.InPath && inPlace(host, m) == nil {
		mode = wiring.Shell // it was started so that its shell is ours
	}
	if wrapped {
		return ask.Pass, nil // it is judged when it runs
	}
	inv := plan.Invocation{Shell: call.Command, IsShell: true, Directory: call.Directory, RefuseOnly: true, Version: Version}
	r := run.Run(inv, m, run.Output{Stdout: io.Discard, Stderr: io.Discard})
	if f := r.Fault; f != nil && f.Code != errcode.ApprovalRequired && f.Code != errcode.CommandNotFound && f.Code != errcode.NotExecutable {
		return "", f
	}
	// A command that needs approval goes on, too: its run refuses it, and leaves the request
	// that an approval answers. Only there it is known what the command gets.
	if mode == wiring.Shell {
		return ask.Pass, nil
	}
	if out := call.Rewritten(wrapping(m.Self, call.Command)); out != "" {
		return out, nil
	}
	return "", fault.New(errcode.Denied, host.Title+" runs commands outside of the sandbox unless they are wrapped").WithFix("type it wrapped", wrapping(m.Self, call.Command))
}

// wrapping is the command line of a shell that runs a command through this program.
func wrapping(self, command string) string { return wiring.Word(self) + " -c " + wiring.Word(command) }

// inPlace checks that the shell of a host is still ours: what was set may be lost, and a host
// falls back to another shell without a word.
func inPlace(host wiring.Host, m caller.Machine) error {
	dirs, err := m.Dirs()
	if err != nil {
		return err
	}
	file := wiring.ShellFile(dirs.Data)
	lost := func(why string) error {
		return fault.New(errcode.Denied, "denied: the shell of "+host.Title+" is no longer atip-exec: "+why).WithFix("ask the user to run `atip init "+host.Name+"` and to restart "+host.Title, "")
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode()&0o100 == 0 {
		return lost(file + " is gone or cannot be executed")
	}
	switch row := host.Shell; {
	case row == nil:
		return lost("it has no setting for it")
	case row.Variable != "" && m.Getenv(row.Variable) != file:
		return lost(row.Variable + " is not " + file)
	case row.InPath:
		if first, err := firstInPath("bash", m.Getenv("PATH")); err != nil || first != file {
			return lost("the first bash of PATH is not " + file)
		}
	}
	return nil
}

// firstInPath is the file that a name in PATH leads to.
func firstInPath(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", errors.New("not found")
}

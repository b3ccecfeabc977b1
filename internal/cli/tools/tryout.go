package tools

import (
	"bytes"
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// harmlessCommand is what a made-up event asks for.
const harmlessCommand = "echo atip-exec"

// tryOut asks as an agent does, through the files that were written, and says what is wrong
// with the answers.
func (j *initJob) tryOut(h wiring.Host, mode wiring.Mode) []string {
	var out []string
	if h.Ask != nil {
		out = append(out, j.tryHook(h, mode)...)
	}
	if mode == wiring.Shell {
		cmd := wiring.ShellFile(j.dirs.Data)
		if text, errText, status := j.start(nil, cmd, "-c", harmlessCommand); status != 0 || !strings.Contains(text, "atip-exec\n") {
			out = append(out, cmd+" does not run a command: "+firstLine(errText))
		}
	}
	return out
}

func (j *initJob) tryHook(h wiring.Host, mode wiring.Mode) []string {
	words := append([]string{wiring.HookFile(j.dirs.Data)}, wiring.HookWords(h.Name, mode)...)
	ask := func(command string) (string, string, int) {
		return j.start(h.Ask.Synthetic(command, j.dirs.Home), words...)
	}
	var out []string
	text, errText, status := ask(harmlessCommand)
	passes := mode == wiring.Shell && strings.TrimSpace(text) == h.Ask.Pass || h.Ask.Rewrite == "" && strings.Contains(errText, " -c ")
	if !passes && (status != 0 || !strings.Contains(text, " -c '"+harmlessCommand+"'")) {
		out = append(out, "a command that is allowed is answered with: "+firstLine(text+errText))
	}
	// Denied by every policy, and without a terminal it would do nothing.
	text, errText, status = ask(wiring.Word(filepath.Join(filepath.Dir(j.program), "atip")) + " approve self-test")
	if denied := status == 2 && h.Ask.Deny == "" || status == 0 && h.Ask.Deny != "" && strings.Contains(text, "self_verbs"); !denied {
		out = append(out, "a command that is denied is answered with: "+firstLine(text+errText))
	}
	return out
}

// start runs one of the files that init wrote.
func (j *initJob) start(stdin []byte, words ...string) (stdout, stderr string, status int) {
	dir := j.dirs.Home
	if j.project != "" {
		dir = j.project
	}
	env := slices.Clone(caller.Here().Environ)
	for _, h := range wiring.Hosts() {
		if h.Shell != nil && h.Shell.Variable != "" {
			env = append(env, h.Shell.Variable+"="+wiring.ShellFile(j.dirs.Data))
		}
	}
	return startFile(dir, env, stdin, words...)
}

// startFile runs a file of an installation, no longer than its agent would wait.
func startFile(dir string, env []string, stdin []byte, words ...string) (stdout, stderr string, status int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*wiring.Limit*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		status = -1
		if exit, ok := err.(*exec.ExitError); ok {
			status = exit.ExitCode()
		} else {
			return "", err.Error(), status
		}
	}
	return out.String(), errs.String(), status
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = cmp.Or(s, "nothing")
	return answer.Visible(s)
}

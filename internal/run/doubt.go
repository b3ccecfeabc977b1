package run

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
)

// judgeDoubt reads a text that would be allowed once more, with every variable that is
// not set standing for anything. Nothing is what it holds, and so it was read; but who
// wrote `$CMD` or `rm -rf "$DIR/build"` took it to hold something, and a start-up
// file or a later assignment in a file that was not read may give it that. The stricter
// judgement counts.
func (p *Plan) judgeDoubt(req policy.Request) {
	if !p.unset || p.Decision.Action != policy.Allow {
		return
	}
	c := &collector{plan: p, path: filepath.SplitList(p.machine.Getenv("PATH")), found: p.memo.known(), steps: []*step{p.steps[0]}, unsetUnknown: true}
	err := c.readAgain()
	for _, s := range c.steps[1:] {
		if s.file != nil {
			s.file.Close()
			s.file = nil
		}
	}
	if err != nil {
		return // what runs was read; only the doubt was not
	}
	req.Steps, req.Edges = nil, c.edges
	for _, s := range c.steps {
		req.Steps = append(req.Steps, s.Step)
	}
	d := p.policies.Decide(req)
	if d.Action >= p.Decision.Action {
		return
	}
	p.Decision.Action, p.Decision.Grants = d.Action, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action != d.Action {
			continue
		}
		if r.Step < len(c.steps) {
			r.Text += " (" + Quote(c.steps[r.Step].argv) + ", where a variable is not set)"
		}
		r.Step = 0
		p.Decision.Reasons = append(p.Decision.Reasons, r)
	}
}

// readAgain appends the steps of the command as it was asked for.
func (c *collector) readAgain() error {
	p := c.plan
	if !p.inv.IsShell {
		return c.add(p.Argv, nil, p.Cwd, policy.Exact)
	}
	path, dialect, err := p.realShell()
	if err != nil {
		return err
	}
	script, err := shell.Read(p.inv.Shell, c.mainOptions(path, dialect))
	if err != nil {
		return err
	}
	return c.script(p.steps[0], script, nil)
}

// ordinary reports whether a variable is one that people set. What the shell itself
// keeps is not in doubt.
func ordinary(name string) bool {
	switch name {
	case "IFS", "OLDPWD", "OPTARG", "OPTIND", "REPLY", "LINENO", "SECONDS", "COLUMNS", "LINES", "GLOBIGNORE", "CDPATH", "HISTFILE", "FUNCNAME", "PIPESTATUS",
		"MAPFILE", "COPROC", "DIRSTACK", "GROUPS", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "PPID", "UID", "EUID", "SHLVL", "TERM", "LANG", "USER", "LOGNAME", "SHELL", "PWD", "HOME":
		return false
	}
	return len(name) < 5 || name[:5] != "BASH_"
}

package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// RuleNames are the rules that decided, each once.
func (p *Plan) RuleNames() []string {
	rules := []string{}
	for _, reason := range p.Decision.Reasons {
		if !slices.Contains(rules, reason.Rule) {
			rules = append(rules, reason.Rule)
		}
	}
	return rules
}

// StatusOutside refuses a status file that the child could write.
func (p *Plan) StatusOutside(s *status.Sink, runs bool) error {
	if s == nil || s.File() == "" || !runs {
		return nil
	}
	dir := filepath.Dir(s.File())
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, g := range p.Profile.Write {
		if subpath.Within(dir, g.Path) {
			return fault.New(errcode.FlagValue, "--status-file: the command can write to "+dir).WithFix("name a file outside the workspace, or use --status-fd", "--status-fd 3 3>status.json").With("path", s.File())
		}
	}
	return nil
}

// Words is the command line of the child as it was typed.
func (inv Invocation) Words() []string {
	if inv.Script != "" {
		words := []string{"script"}
		words = append(words, inv.ShellSet...)
		if inv.Script == "-" {
			return append(append(words, "-"), inv.ShellArgs[min(1, len(inv.ShellArgs)):]...)
		}
		return append(words, inv.ShellArgs...)
	}
	if inv.IsShell {
		return append([]string{"-c", inv.Shell}, inv.ShellArgs...)
	}
	return inv.Argv
}

// Granted lists the dangers that the run was granted, under their names in plans.
func (p *Plan) Granted() []string { return DangersOf(p.Decision.Grants.Effects) }

// Tool is the name of the tool that a plan starts, "" if it was not found out.
func (p *Plan) Tool() string {
	if p == nil || len(p.Steps) == 0 {
		return ""
	}
	return p.Steps[0].Call.Tool
}

// MayHarm reports whether the run may do what an audit must be able to show even
// if the wrapper is killed.
func (p *Plan) MayHarm() bool {
	for _, s := range p.Steps {
		e := s.Call.Effects
		if e[atip.Destructive].Value != atip.No || e[atip.Billable].Value != atip.No || e[atip.RemoteMutation].Value != atip.No || e[atip.Reversible].Value == atip.No {
			return true
		}
	}
	return false
}

// Commands are the words of each command of the call.
func (p *Plan) Commands() [][]string {
	var out [][]string
	for _, s := range p.Steps {
		out = append(out, s.Argv)
	}
	return out
}

// Enforced is the receipt without what every run may read.
func (p *Plan) Enforced() sandbox.Receipt {
	r := p.Receipt()
	r.Read = slices.DeleteFunc(slices.Clone(r.Read), func(g sandbox.Grant) bool { return g.Why == "default" })
	return r
}

func resourceList(rs []atip.Resource) []any {
	out := []any{}
	for _, r := range rs {
		out = append(out, strings.Join([]string{r.Kind, r.Value, r.Abs, r.Access.String(), r.Class.String(), r.Host}, " "))
	}
	return out
}

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

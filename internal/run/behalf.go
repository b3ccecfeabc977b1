package run

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/policy"
)

// Behalf is what main does under nest.ProcessName. It plans the question as a command of its
// own, in the environment, the directory and under the policies of the parent run, and
// runs it in a sandbox of its own.
func Behalf(m Machine, out Output) *fault.Fault {
	process, f := nest.Accept()
	if f != nil {
		return f
	}
	return process.Answer(answerInside(&process.Order, m, out))
}

func answerInside(b *nest.Order, m Machine, out Output) nest.Outcome {
	m, err := delegated(b.Question.Token, m)
	if err != nil {
		return nest.Failed(fault.From(err))
	}
	q := b.Question
	r := Run(Invocation{Argv: texts(q.Argv), IsShell: q.IsShell, Shell: string(q.Shell), ShellArgs: texts(q.ShellArgs), ShellSet: texts(q.ShellSet), Directory: q.Cwd,
		Timeout: ms(q.TimeoutMS), KillAfter: ms(q.KillMS), Wait: min(ms(q.WaitMS), MaxWait),
		Policies: b.Policies, Profiles: b.Profiles, Ceiling: b.Ceiling, CI: b.CI, behalf: b}, m, out)
	if r.kept {
		return nest.Keep()
	}
	return nest.Outcome{Kind: "end", ExitCode: r.ExitCode, Run: r.Status.Run, Child: r.Status.Child, Error: r.Fault}
}

// ms is a time that somebody else wrote down; nonsense is none.
func ms(n int64) time.Duration {
	if n <= 0 || n > int64(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func texts(words [][]byte) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// delegated puts the token of a question into the environment, if it has one. It must
// be the token that the parent run is under, or more of it: any other would be a way out.
func delegated(token string, m Machine) (Machine, error) {
	own := m.Getenv(delegation.Variable)
	if token == "" || token == own {
		return m, nil
	}
	if own != "" && !approve.Extends(token, own) {
		return m, &approve.TokenError{Why: "it is not derived from the token of the parent run"}
	}
	m.Environ = append([]string{delegation.Variable + "=" + token}, m.Environ...)
	return m, nil
}

// answerable decides whether this process may carry out what it was asked for; keep says
// that the run inside can do it by itself. What a person has permitted is done, whatever
// it is; without one only what that run cannot do: use a credential that it does not have.
func (p *Plan) answerable(refusal error) (keep bool, err error) {
	b := p.inv.behalf
	lacks := p.lacks(b.Withheld, func(file string) bool {
		_, err := os.Stat(file)
		return err == nil && !slices.Contains(b.Files, file)
	})
	switch {
	case refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired:
		return false, refusal
	case refusal == nil && len(lacks) == 0:
		return true, nil
	case p.Workspace != b.Workspace || p.Workspace == "" && p.Cwd != b.Cwd:
		return false, withheld(p, lacks, "it is not in the workspace of the parent run")
	case refusal != nil:
		return false, refusal
	case p.policies.Credentials() == policy.CredentialsWithheld:
		return false, withheld(p, lacks, "the policy withholds it")
	case b.Question.Asks:
		return false, withheld(p, lacks, "the nested run has a policy that requires approval")
	}
	if why := p.foreignPart(b.ReadOnly); why != "" {
		return false, withheld(p, lacks, why)
	}
	return false, nil
}

// lacks names what the tools of a plan use to talk to their services and the sandbox does
// not have: variables, and files of which missing tells.
func (p *Plan) lacks(names []string, missing func(string) bool) []string {
	var out []string
	for _, s := range p.steps {
		if s.Call.Provenance.Rank < atip.Org || s.Call.Effects[atip.Network].Value != atip.Yes {
			continue
		}
		for _, name := range s.Call.Secrets {
			if slices.Contains(names, name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		for _, file := range s.Entitled {
			if !slices.Contains(out, file) && missing(file) {
				out = append(out, file)
			}
		}
	}
	return out
}

// foreignPart names what in a plan is more than one known tool at work. What is given a
// credential must not be anybody else's code, nor a shell, which could cut it into pieces
// that no redaction knows.
func (p *Plan) foreignPart(readOnly bool) string {
	s := p.steps[0]
	e := s.Call.Effects
	switch name := Quote(s.Argv[:1]); {
	case len(p.steps) != 1, !slices.Equal(p.Argv, s.Argv):
		return "only a single command is started for a run inside"
	case s.Missing != nil:
		return name + " is not installed"
	case s.Call.Provenance.Rank < atip.Org, s.Confidence != policy.Exact:
		return name + " is not a known tool"
	case s.RunsCode != policy.CodeNone, e[atip.ExecOpaque].Value == atip.Yes:
		return name + " runs other code"
	case readOnly && (e[atip.Write].Value != atip.No || e[atip.Delete].Value != atip.No):
		return name + " writes where the parent run may not"
	}
	return ""
}

func withheld(p *Plan, lacks []string, why string) error {
	text := Quote(p.inv.words()) + " needs a credential that this run does not have"
	if len(lacks) > 0 {
		text = Quote(p.inv.words()) + " needs " + strings.Join(lacks, ", ") + ", which this run does not have"
	}
	return fault.New(errcode.CredentialWithheld, text+": "+why).With("credentials", lacks)
}

// handedOn lists the credentials that policy gives to the tools of a delegation, instead
// of keeping them with the parent run: those that their metadata names. A token that
// names no tools hands on none.
func (p *Plan) handedOn() []string {
	if p.policies.Credentials() != policy.CredentialsPassed || p.chainNames() == nil {
		return nil
	}
	var tools []string
	named := false
	for _, r := range p.chain {
		switch {
		case r.AllowedTools == nil:
		case !named:
			tools, named = slices.Clone(r.AllowedTools), true
		default:
			tools = slices.DeleteFunc(tools, func(t string) bool { return !slices.Contains(r.AllowedTools, t) })
		}
	}
	if !named {
		p.Warnings = append(p.Warnings, "delegation.credentials is pass, but the token names no tools: none is handed on")
	}
	var out []string
	for _, tool := range tools[:min(len(tools), effects.MaxSteps)] {
		for _, name := range p.secretsOf(tool) {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// secretsOf lists the credential variables of a tool that is known by its metadata.
func (p *Plan) secretsOf(tool string) []string {
	call, ok := p.site().KnownTool(tool, atip.Org)
	if !ok {
		return nil
	}
	return call.Secrets
}

// unreadable reports a file or a directory that this run cannot open: it is outside of the sandbox, or,
// with a private root, may be.
func unreadable(file string, privateRoot bool) bool {
	f, err := regular.Open(file)
	if errors.Is(err, regular.ErrNot) {
		f, err = regular.OpenDir(file)
	}
	if err == nil {
		f.Close()
		return false
	}
	return errors.Is(err, fs.ErrPermission) || privateRoot && errors.Is(err, fs.ErrNotExist)
}

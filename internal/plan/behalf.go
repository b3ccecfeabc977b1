package plan

import (
	"os"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// Answerable decides whether this process may carry out what it was asked for; keep says
// that the run inside can do it by itself. What a person has permitted is done, whatever
// it is; without one only what that run cannot do: use a credential that it does not have.
func (p *Plan) Answerable(refusal error) (keep bool, err error) {
	b := p.Invocation.Behalf
	lacks := p.Lacks(b.Withheld, func(file string) bool {
		_, err := os.Stat(file)
		return err == nil && !slices.Contains(b.Files, file)
	})
	switch {
	case refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired:
		return false, refusal
	case refusal == nil && len(lacks) == 0:
		return true, nil
	case p.Workspace != b.Workspace || p.Workspace == "" && p.Cwd != b.Cwd:
		return false, Withheld(p, lacks, "it is not in the workspace of the parent run")
	case refusal != nil:
		return false, refusal
	case p.Policies.Credentials() == policy.CredentialsWithheld:
		return false, Withheld(p, lacks, "the policy withholds it")
	case b.Question.Asks:
		return false, Withheld(p, lacks, "the nested run has a policy that requires approval")
	}
	if why := p.foreignPart(b.ReadOnly); why != "" {
		return false, Withheld(p, lacks, why)
	}
	return false, nil
}

// Lacks names what the tools of a plan use to talk to their services and the sandbox does
// not have: variables, and files of which missing tells.
func (p *Plan) Lacks(names []string, missing func(string) bool) []string {
	var out []string
	for _, s := range p.Steps {
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
	s := p.Steps[0]
	e := s.Call.Effects
	switch name := quote.Words(s.Argv[:1]); {
	case len(p.Steps) != 1, !slices.Equal(p.Argv, s.Argv):
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

// Withheld is the refusal of a run inside that lacks credentials.
func Withheld(p *Plan, lacks []string, why string) error {
	text := quote.Words(p.Invocation.Words()) + " needs a credential that this run does not have"
	if len(lacks) > 0 {
		text = quote.Words(p.Invocation.Words()) + " needs " + strings.Join(lacks, ", ") + ", which this run does not have"
	}
	return fault.New(errcode.CredentialWithheld, text+": "+why).With("credentials", lacks)
}

// handedOn lists the credentials that policy gives to the tools of a delegation, instead
// of keeping them with the parent run: those that their metadata names. A token that
// names no tools hands on none.
func (p *Plan) handedOn() []string {
	if p.Policies.Credentials() != policy.CredentialsPassed || p.ChainNames() == nil {
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
	for _, tool := range tools[:min(len(tools), step.MaxSteps)] {
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

package plan

import (
	"slices"

	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/trust"
)

// unapproved is the reason of a refusal under an allowlist.
const unapproved = "unapproved_binary"

// onlyApproved denies what an organisation's registry does not approve: each file that
// the command words start must have a document there. Nothing else stands in for it, no
// override, no signature and no person. An error means that the registry must be asked
// and cannot be.
func (p *judging) onlyApproved() error {
	lists := p.Policies.Allowlists()
	if len(lists) == 0 || p.Decision.Action == policy.Deny {
		return nil
	}
	for _, list := range lists {
		known := map[string]string{}
		for i, s := range p.Steps {
			if i == 0 && s.Missing != nil || shellBuiltin(s) {
				continue // nothing would start
			}
			why, err := p.unapproved(list, s, known)
			if err != nil {
				return err
			}
			if why != "" {
				p.denyUnapproved(list, i, why)
				return nil
			}
		}
	}
	return nil
}

func shellBuiltin(s *step.Step) bool { return s.Call.Provenance.Source == "shell:builtin" }

// unapproved says why a step may not run, "" if it may.
func (p *Plan) unapproved(list policy.Allowlist, s *step.Step, known map[string]string) (string, error) {
	if len(s.ID.Chain) == 0 {
		return "it is not known which file would run", nil
	}
	for _, part := range s.ID.Chain {
		switch {
		case part.Role == trust.RoleArgument, slices.Contains(p.Machine.Programs(), part.Path):
			continue // read and not started, or this program, which judges again
		case part.Digest == "":
			return part.Path + " cannot be read", nil
		}
		why, asked := known[part.Digest]
		if !asked {
			var err error
			if why, err = p.authority().Approval(list, part); err != nil {
				return "", err
			}
			known[part.Digest] = why
		}
		if why != "" {
			return part.Path + " (sha256:" + part.Digest + ") " + why, nil
		}
	}
	return "", nil
}

func (p *judging) denyUnapproved(list policy.Allowlist, i int, why string) {
	s := p.Steps[i]
	text := quote.Words(s.Argv) + ": " + why
	p.Decision.Action, p.Decision.Grants, p.Decision.Trust, p.refused = policy.Deny, policy.Grants{}, true, unapproved
	rule := list.Layer.String() + "/approval.allowlist"
	p.Decision.Reasons = append(p.Decision.Reasons, policy.Reason{Rule: rule, File: list.File, Action: policy.Deny, Text: text, Step: i,
		Suggest: "use a tool that the organisation approves; after it approved one, `atip sync TOOL` asks again"})
	if i < len(p.Decision.Steps) {
		p.Decision.Steps[i].Action = policy.Deny
		p.Decision.Steps[i].Rules = append(p.Decision.Steps[i].Rules, rule)
	}
}

// signedMetadata denies what rests on a document without a proven signature where policy
// requires one; the documents inside this program are part of it.
func (p *judging) signedMetadata() {
	if !p.authority().TrustPolicy().RequireMetadata || p.Decision.Action == policy.Deny {
		return
	}
	for i, s := range p.Steps {
		v := s.DocumentVerdict
		if v.Reason == "" || v.Action == trust.Allow {
			continue
		}
		p.Decision.Action, p.Decision.Grants, p.Decision.Trust, p.refused = policy.Deny, policy.Grants{}, true, v.Reason
		suggest := v.NextStep("the document")
		if suggest == "" {
			suggest = "use a tool whose metadata is built in, or remove the document"
		}
		p.Decision.Reasons = append(p.Decision.Reasons, policy.Reason{Rule: "trust/metadata", Action: policy.Deny, Step: i,
			Text:    quote.Words(s.Argv) + ": metadata_refused, signed metadata is required and that of " + s.ID.Effective + " is " + v.Level.String() + " (" + v.Reason + ")",
			Suggest: suggest})
		if i < len(p.Decision.Steps) {
			p.Decision.Steps[i].Action = policy.Deny
		}
		return
	}
}

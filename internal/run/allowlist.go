package run

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// approvalGrace is how long an approval at hand stays good after its time while the
// registry cannot be asked.
const approvalGrace = 7 * 24 * time.Hour

// unapproved is the reason of a refusal under an allowlist.
const unapproved = "unapproved_binary"

// onlyApproved denies what an organisation's registry does not approve: each file that
// the command words start must have a document there. Nothing else stands in for it, no
// override, no signature and no person. An error means that the registry must be asked
// and cannot be.
func (p *Plan) onlyApproved() error {
	lists := p.policies.Allowlists()
	if len(lists) == 0 || p.Decision.Action == policy.Deny {
		return nil
	}
	for _, list := range lists {
		known := map[string]string{}
		for i, s := range p.steps {
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

func shellBuiltin(s *effects.Step) bool { return s.Call.Provenance.Source == "shell:builtin" }

// unapproved says why a step may not run, "" if it may.
func (p *Plan) unapproved(list policy.Allowlist, s *effects.Step, known map[string]string) (string, error) {
	if len(s.ID.Chain) == 0 {
		return "it is not known which file would run", nil
	}
	for _, part := range s.ID.Chain {
		switch {
		case part.Role == trust.RoleArgument, slices.Contains(p.programs(), part.Path):
			continue // read and not started, or this program, which judges again
		case part.Digest == "":
			return part.Path + " cannot be read", nil
		}
		why, asked := known[part.Digest]
		if !asked {
			var err error
			if why, err = p.approval(list, part); err != nil {
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

// approval says why one file is not approved, "" if it is.
func (p *Plan) approval(list policy.Allowlist, part trust.Part) (string, error) {
	id, name := registryOf(list)
	if id == "" {
		return "cannot be approved: " + list.File + " demands it and names no registry.url", nil
	}
	path := p.shimDirs.ApprovalPath(id, part.Digest)
	_, meta, approved := shims.Cached(path)
	again := p.refresh() && p.starts && !p.offline()
	if approved && p.began.Before(meta.Expires) && !again {
		return "", nil
	}
	miss, missed := shims.Missed(path, p.began)
	if (!missed || again) && p.starts && !p.offline() {
		p.askApproval(id, part.Digest)
		_, meta, approved = shims.Cached(path)
		miss, missed = shims.Missed(path, time.Now())
	}
	switch {
	case missed && miss.Kind == shims.Absent:
		return "is not approved by " + name, nil
	case missed && miss.Kind == shims.Refused:
		return "is not approved by " + name + ": " + miss.Why, nil
	case approved && p.began.Before(meta.Expires.Add(approvalGrace)):
		if !p.began.Before(meta.Expires) {
			p.Warnings = append(p.Warnings, "registry_unavailable: the approval of "+part.Path+" is old and "+name+" was not asked")
		}
		return "", nil
	case !p.starts:
		p.pending = append(p.pending, name+" would be asked whether it approves sha256:"+part.Digest)
		return "is not known to be approved by " + name, nil
	case p.offline():
		return "", fault.New(errcode.Offline, "offline, and it is not known whether "+name+" approves "+part.Path).With("digest", part.Digest).With("policy", list.File)
	}
	message := name + " must approve " + part.Path + " and cannot be asked"
	if missed {
		message += ": " + miss.Why
	}
	return "", fault.New(errcode.RegistryUnavailable, message).With("digest", part.Digest).With("policy", list.File)
}

// registryOf names the registry of a demand: the one in whose folder the document lies,
// or the one that it names.
func registryOf(list policy.Allowlist) (id, name string) {
	if list.Layer == policy.LayerOrg {
		id = filepath.Base(filepath.Dir(list.File))
		if _, meta, ok := shims.Cached(list.File); ok && meta.Registry != "" {
			return id, "registry " + meta.Registry
		}
		return id, "the registry of " + list.File
	}
	if list.Registry == "" {
		return "", ""
	}
	url := strings.TrimRight(list.Registry, "/")
	return shims.RegistryID(url), "registry " + url
}

// askApproval lets the program beside ours ask; the answer lies in files.
func (p *Plan) askApproval(id, digest string) {
	more := []string{"--approved-by", id}
	if p.refresh() {
		more = append(more, "--refresh")
	}
	cmd, cancel, why := p.fetcher(digest, more...)
	if why != "" {
		p.Warnings = append(p.Warnings, why)
		return
	}
	defer cancel()
	_ = cmd.Run() // whatever its status, only what it kept counts
}

func (p *Plan) denyUnapproved(list policy.Allowlist, i int, why string) {
	s := p.steps[i]
	text := Quote(s.Argv) + ": " + why
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
func (p *Plan) signedMetadata() {
	if !p.trustPolicy().RequireMetadata || p.Decision.Action == policy.Deny {
		return
	}
	for i, s := range p.steps {
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
			Text:    Quote(s.Argv) + ": metadata_refused, signed metadata is required and that of " + s.ID.Effective + " is " + v.Level.String() + " (" + v.Reason + ")",
			Suggest: suggest})
		if i < len(p.Decision.Steps) {
			p.Decision.Steps[i].Action = policy.Deny
		}
		return
	}
}

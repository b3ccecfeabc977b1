package run

import (
	"strings"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/policy"
)

// returned looks for placeholders of redacted secrets in what the command gets: whoever
// read them in our output took them for the value. Policy can refuse to run such a command.
func (p *Plan) returned() error {
	how := p.policies.Output().Placeholders
	if how == "pass" {
		return nil
	}
	where := ""
	for _, word := range p.inv.words() {
		if filter.HasPlaceholder(word) {
			where = "the command line"
		}
	}
	for _, entry := range p.env.entries {
		if name, value, _ := strings.Cut(entry, "="); where == "" && filter.HasPlaceholder(value) {
			where = "the variable " + name
		}
	}
	switch {
	case where == "":
	case how == "refuse":
		p.placeholder = where
	default:
		p.Warnings = append(p.Warnings, where+" holds the placeholder of a redacted secret, not the secret: the file that it comes from holds the real value")
	}
	return nil
}

// placeheld is the refusal of a command that a placeholder came back in; nil if none did, or
// the command is denied anyway.
func (p *Plan) placeheld() error {
	if p.placeholder == "" || p.Decision.Action == policy.Deny {
		return nil
	}
	return fault.New(errcode.Placeholder, p.placeholder+" holds the placeholder of a redacted secret").With("decision", policy.Deny)
}

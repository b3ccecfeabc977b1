package plan

import (
	"strings"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/policy"
)

// returned looks for placeholders of redacted secrets in what the command gets: whoever
// read them in our output took them for the value. It returns where one is if policy refuses to run
// such a command.
func (p *Plan) returned(environ []string) (refused string) {
	how := p.Policies.Output().Placeholders
	if how == "pass" {
		return ""
	}
	where := ""
	for _, word := range p.Invocation.Words() {
		if filter.HasPlaceholder(word) {
			where = "the command line"
		}
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); where == "" && filter.HasPlaceholder(value) {
			where = "the variable " + name
		}
	}
	switch {
	case where == "":
	case how == "refuse":
		return where
	default:
		p.Warnings = append(p.Warnings, where+" holds the placeholder of a redacted secret, not the secret: the file that it comes from holds the real value")
	}
	return ""
}

// placeheld is the refusal of a command that a placeholder came back in; nil if none did, or
// the command is denied anyway.
func (p *Plan) placeheld() error {
	if p.placeholder == "" || p.Decision.Action == policy.Deny {
		return nil
	}
	return fault.New(errcode.Placeholder, p.placeholder+" holds the placeholder of a redacted secret").With("decision", policy.Deny)
}

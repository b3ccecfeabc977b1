// Package advice words a decision that stops a command: why, in the terms of its steps, and how to go
// on without what was refused. It never says how to approve.
package advice

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// Refusal is what was decided, and what the wording of it rests on.
type Refusal struct {
	Decision  policy.Decision
	Steps     []*step.Step
	Workspace string
	Home      string
	Moves     bool // a step changes what a later one pushes
}

// alternativeOf says, for each built-in rule that refuses, what a caller can do in place of the
// command.
func alternativeOf() map[string]string {
	return map[string]string{
		"builtin/opaque":       "write the command out: text that is built at run time, piped in or decoded cannot be judged",
		"builtin/edge":         "write the first part's output to a file in the workspace, read it, then run the second part with what you read",
		"builtin/outside":      "write in the workspace or in $TMPDIR",
		"builtin/url":          "use a file that is in the workspace already, or a host that the policy lists",
		"builtin/install":      "use the packages that are installed, or change the manifest and leave installing to the user",
		"builtin/destructive":  "show what would be changed first: a listing or the tool's dry run; in the workspace, `git rm` and `git mv` can be undone",
		"builtin/remote":       "read the remote state, and prepare the change as a file or a commit for the user",
		"builtin/billable":     "read prices or existing resources, and report the command to the user",
		"builtin/privileged":   "work as the current user, in the workspace",
		"builtin/secret_read":  "use an example or template of the file (.env.example), or let the project's own program read it",
		"builtin/secret_tool":  "use what the tool shows without its stored secrets",
		"builtin/secret_list":  "name a directory in the workspace",
		"builtin/secret_write": "change an example or template of the file, and tell the user which value to set",
		"builtin/device_read":  "read a regular file",
		"builtin/self_read":    "`atip-exec explain -- COMMAND` says what the policy decides",
	}
}

// Alternatives are ways to go on without the refused command: what the decision allows by
// itself, and what the deciding rules suggest.
func (no *Refusal) Alternatives() []string {
	out := slices.Clone(no.Decision.Alternatives)
	var fine []string
	for i, s := range no.Steps {
		if i < len(no.Decision.Steps) && no.Decision.Steps[i].Action == policy.Allow && s.Call.Tool != ":" && len(s.Call.Nested) == 0 && !step.IsShell(s.Call.Tool) && len(fine) < 3 {
			fine = append(fine, quote.Words(s.Argv))
		}
	}
	if len(fine) > 0 {
		out = append(out, "allowed by themselves: "+strings.Join(fine, "; "))
	}
	for _, r := range no.Decision.Reasons {
		if text := no.inPlaceOf(r); r.Action == no.Decision.Action && text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		out = append(out, "`atip-exec explain -- COMMAND` lists the effects that were decided on; choose a command without them")
	}
	return out
}

// Clauses are the reasons of the decision as parts of its message, and their rules. What is not known
// of a step is one clause: each effect by itself would fill the message.
func (no *Refusal) Clauses() (texts, rules []string) {
	doubts, last := map[int][]string{}, ""
	for _, r := range no.Decision.Reasons {
		if r.Action != no.Decision.Action || slices.Contains(rules, r.Rule) {
			continue
		}
		rules = append(rules, r.Rule)
		if _, doubt, ok := strings.Cut(r.Text, ": "+policy.NotKnown); ok && r.Step < len(no.Steps) {
			doubts[r.Step] = append(doubts[r.Step], doubt)
			continue
		}
		text, subject := no.clause(r, last)
		texts, last = append(texts, text), subject
	}
	for i, s := range no.Steps {
		if list := doubts[i]; len(list) > 0 {
			what := list[len(list)-1]
			if len(list) > 1 {
				what = strings.Join(list[:len(list)-1], ", ") + " or " + what
			}
			texts = append(texts, quote.Words(s.Argv)+": "+policy.NotKnown+what)
		}
	}
	return texts, rules
}

// clause is a reason as a part of the message: the step's command and what it would do.
// It returns the subject that the rule named too: a reason of the same subject as last does
// not name the command again.
func (no *Refusal) clause(r policy.Reason, last string) (text, subject string) {
	subject, rest, ok := strings.Cut(r.Text, ": ")
	if !ok || r.Step >= len(no.Steps) {
		return r.Text, ""
	}
	if subject == last {
		return strings.TrimPrefix(rest, "it "), subject
	}
	words := subject
	if len(no.Steps) == 1 || strings.HasPrefix(rest, "it ") {
		words = quote.Words(no.Steps[r.Step].Argv)
	}
	return Sentence(words, rest) + unnamedSecret(no.Steps[r.Step], r.Rule, no.Home), subject
}

// unnamedSecret is the file for which the rule on secrets holds, if the words of the command do not
// spell it: a pattern matches it, or it lies below a directory.
func unnamedSecret(s *step.Step, rule, home string) string {
	if rule != "builtin/secret_read" {
		return ""
	}
	for _, r := range s.Call.Resources {
		if r.Class == atip.ClassSecret && !slices.ContainsFunc(s.Argv, func(w string) bool { return strings.Contains(w, r.Value) }) {
			name := r.Abs
			if subpath.Within(name, home) && home != "" {
				name = "~" + name[len(home):]
			}
			switch tree, ok := strings.CutPrefix(r.Why, "below "); {
			case !ok:
				return " (" + name + ")"
			case strings.ContainsAny(tree, "*?["):
				return " (the pattern may lead to " + name + ")"
			}
			return " (" + name + " lies below it)"
		}
	}
	return ""
}

// Sentence is what a rule says of a command, with the command in the place of "it".
func Sentence(subject, text string) string {
	if rest, ok := strings.CutPrefix(text, "it "); ok {
		return subject + " " + rest
	}
	return subject + ": " + text
}

// Suggestion is how to go on after this decision: what a rule of a policy suggests, else what fits
// the cause.
func (no *Refusal) Suggestion() string {
	fallback := ""
	if no.Decision.Action == policy.Confirm && no.Moves {
		return "run what changes the repository first and the push by itself: the approval then names the commit that is sent"
	}
	for _, r := range no.Decision.Reasons {
		if r.Action != no.Decision.Action {
			continue
		}
		if r.Suggest != "" {
			return r.Suggest
		}
		text := no.inPlaceOf(r)
		if text != "" && !strings.Contains(r.Text, ": "+policy.NotKnown) {
			return text
		}
		if fallback == "" || r.Rule == "builtin/opaque" && text != "" {
			fallback = text
		}
	}
	return fallback
}

// inPlaceOf is what alternativeOf says of the rule, as far as it fits the step.
func (no *Refusal) inPlaceOf(r policy.Reason) string {
	known := alternativeOf()
	if r.Rule == "builtin/destructive" && r.Step < len(no.Steps) && no.Steps[r.Step].Call.Effects[atip.RemoteMutation].Value == atip.Yes {
		return known["builtin/remote"] // nothing in the workspace is like it
	}
	if r.Step >= len(no.Steps) || r.Rule != "builtin/opaque" && !strings.Contains(r.Text, ": "+policy.NotKnown) {
		return known[r.Rule]
	}
	s := no.Steps[r.Step]
	switch {
	case s.Call.Provenance.Channel == "none" && s.RunsCode == policy.CodeNone:
		return "use a tool that is known here, or a script in the workspace"
	case slices.ContainsFunc(s.Call.Nested, func(n atip.Nested) bool {
		return n.File != "" && n.File != "-" && !subpath.Within(subpath.Join(s.Cwd, n.File), no.Workspace)
	}):
		return "put the script into the workspace, where code runs without network"
	case r.Rule != "builtin/opaque":
		return ""
	}
	return known[r.Rule]
}

package approvals

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
)

// proposedRule is an allow rule as a policy file has it.
type proposedRule struct {
	ID       string         `json:"id"`
	Decision string         `json:"decision"`
	When     map[string]any `json:"when"`
	Grants   []string       `json:"grants"`
	Match    []string       `json:"match,omitempty"`
}

// propose prints the rules that would let what was asked run from now on, for a person
// to read, narrow and put into a policy. It permits nothing.
func (a Answers) propose(c *cli.Console, r approve.Request) error {
	rules, err := proposal(r)
	if err != nil {
		return err
	}
	if rules, err = tried(rules); err != nil {
		return err
	}
	file := filepath.Join(a.Dirs.Config, "policy.json")
	if c.Documents() {
		return c.Document(map[string]any{"kind": "atip-exec.proposal/1", "request": r.ID, "file": file, "rules": rules})
	}
	old := "--- " + file + "\n"
	if _, err := os.Stat(file); os.IsNotExist(err) {
		old = "--- /dev/null\n"
	}
	var b strings.Builder
	b.WriteString(old + "+++ " + file + "\n@@ rules @@\n")
	for _, rule := range rules {
		raw, err := json.Marshal(rule)
		if err != nil {
			return fault.New(errcode.Internal, err.Error())
		}
		b.WriteString("+  " + answer.Visible(string(raw)) + ",\n")
	}
	return c.Text(b.String())
}

// proposal makes a rule of each step that asked.
func proposal(r approve.Request) ([]proposedRule, error) {
	var out []proposedRule
	seen := map[string]bool{}
	steps, _ := r.Bound["steps"].([]any)
	for _, s := range steps {
		step, _ := s.(map[string]any)
		tool, danger := answer.Text(step["tool"]), answer.Texts(step["danger"])
		if len(danger) == 0 || tool == ":" {
			continue
		}
		if tool == "" || answer.Text(step["metadata"]) == "" && len(answer.Texts(step["command"])) == 0 {
			return nil, fault.New(errcode.Arguments, "no rule can be proposed: nothing is known about "+quote.Words(answer.Texts(step["argv"]))).WithFix("write metadata for the tool first", "atip generate "+tool)
		}
		command := strings.Join(answer.Texts(step["command"]), " ")
		rule := proposedRule{Decision: "allow", When: map[string]any{"tool": tool}, Grants: danger, Match: []string{quote.Words(answer.Texts(step["argv"]))}}
		if command != "" {
			rule.When["command"] = []string{command}
		}
		if hosts := hostsOf(step); len(hosts) > 0 {
			rule.When["host"] = hosts
		}
		rule.ID = ruleID(tool + " " + command)
		for seen[rule.ID] {
			rule.ID += "-2"
		}
		seen[rule.ID] = true
		out = append(out, rule)
	}
	if len(out) == 0 {
		return nil, fault.New(errcode.Arguments, "no rule can be proposed: the approval is not required by an effect of the command")
	}
	return out, nil
}

// hostsOf lists the hosts among the resources of a step, which are "kind value abs
// access class host".
func hostsOf(step map[string]any) []string {
	var out []string
	for _, resource := range answer.Texts(step["resources"]) {
		fields := strings.Split(resource, " ")
		if host := fields[len(fields)-1]; host != "" && (fields[0] == "url" || fields[0] == "host") {
			out = append(out, host)
		}
	}
	return out
}

// ruleID makes an id of words: letters, digits and dashes.
func ruleID(words string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, strings.TrimSpace(words))
	id = strings.Trim(id, "-0123456789")
	id = cmp.Or(id, "rule")
	return id[:min(len(id), 60)]
}

// tried reads the rules as a policy and runs their examples. One whose example does not
// hold outside this very directory is proposed without it.
func tried(rules []proposedRule) ([]proposedRule, error) {
	im, err := plan.NewImagination(caller.Here().Self)
	if err != nil {
		return nil, err
	}
	for i := range rules {
		raw, err := json.Marshal(map[string]any{"version": 1, "rules": rules[i : i+1]})
		if err != nil {
			return nil, fault.New(errcode.Internal, err.Error())
		}
		doc, err := policy.Parse(policy.Source{File: "proposal", Raw: raw, Layer: policy.LayerUser})
		if err != nil {
			return nil, err
		}
		if doc.CheckExamples(im.Request) != nil {
			rules[i].Match = nil
		}
	}
	return rules, nil
}

package policies

import (
	"fmt"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/policy"
)

// change is one command that two policies decide differently.
type change struct {
	Cmd   string   `json:"cmd"`
	Cwd   string   `json:"cwd,omitempty"`
	Old   string   `json:"old"`
	New   string   `json:"new"`
	Kind  string   `json:"change"` // loosened, tightened
	Rules []string `json:"rules"`  // that decide now
}

// compared is the outcome of a comparison.
type compared struct {
	Kind      string   `json:"kind"`
	Commands  int      `json:"commands"`
	Loosened  int      `json:"loosened"`
	Tightened int      `json:"tightened"`
	Changes   []change `json:"changes"`
}

// diffPolicy says which commands two policy files decide differently.
func diffPolicy(c *cli.Console, v *cli.Values, files []string) (int, error) {
	if len(files) != 2 {
		return 0, fault.New(errcode.Arguments, "policy diff: name two policy files").WithFix("name the old and the new one", "atip policy diff old.json new.json --corpus commands.jsonl")
	}
	m := caller.Here()
	var judges [2]*plan.Judge
	var sets [2]*policy.Set
	var docs [2]*policy.Document
	for i, file := range files {
		doc, err := loadPolicy(file, nil)
		if err == nil {
			sets[i], err = setWith(doc, m)
		}
		if err != nil {
			return 0, err
		}
		docs[i], judges[i] = doc, plan.NewJudge(m, sets[i])
	}
	out := compared{Kind: "atip-exec.policy-diff/1", Changes: []change{}}
	if !v.Has("corpus") && !v.Has("from-audit") {
		im, err := plan.NewImagination(m.Self)
		if err != nil {
			return 0, err
		}
		for _, row := range exampleRows(docs[:]) {
			out.add(row, im.Decide(sets[0], row.Cmd).Action.String(), im.Decide(sets[1], row.Cmd))
		}
		return out.report(c, v)
	}
	rows, err := commandsOf(v)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		old, err := row.decide(judges[0])
		if err != nil {
			return 0, err
		}
		now, err := row.decide(judges[1])
		if err != nil {
			return 0, err
		}
		out.add(row, old.Action.String(), now)
	}
	return out.report(c, v)
}

// simulatePolicy says what a policy file, or the policies in force, would have decided
// of what the audit recorded.
func simulatePolicy(c *cli.Console, v *cli.Values, files []string) (int, error) {
	if len(files) > 1 || !v.Has("from-audit") {
		return 0, fault.New(errcode.Arguments, "policy simulate: name at most one policy file, and --from-audit").WithFix("replay what was recorded", "atip policy simulate new.json --from-audit")
	}
	m := caller.Here()
	var set *policy.Set
	for _, file := range files {
		doc, err := loadPolicy(file, nil)
		if err != nil {
			return 0, err
		}
		if set, err = setWith(doc, m); err != nil {
			return 0, err
		}
	}
	rows, err := auditRows()
	if err != nil {
		return 0, err
	}
	judge := plan.NewJudge(m, set)
	out := compared{Kind: "atip-exec.policy-diff/1", Changes: []change{}}
	for _, row := range rows {
		now, err := row.decide(judge)
		if err != nil {
			return 0, err
		}
		out.add(row, row.recorded, now)
	}
	return out.report(c, v)
}

// commandsOf lists the commands of the corpora and of the audit.
func commandsOf(v *cli.Values) ([]corpusRow, error) {
	var rows []corpusRow
	for _, file := range v.All("corpus") {
		more, err := readCorpus(file)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	if v.Has("from-audit") {
		more, err := auditRows()
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// exampleRows lists the examples of the documents, each once.
func exampleRows(docs []*policy.Document) []corpusRow {
	var rows []corpusRow
	seen := map[string]bool{}
	for _, doc := range docs {
		for _, cmd := range doc.ExampleCommands() {
			if !seen[cmd] {
				seen[cmd] = true
				rows = append(rows, corpusRow{Cmd: cmd})
			}
		}
	}
	return rows
}

func (o *compared) add(row corpusRow, old string, now plan.Verdict) {
	o.Commands++
	was, _ := policy.ActionByName(old)
	if was == now.Action {
		return
	}
	x := change{Cmd: row.question().Words(), Cwd: row.Cwd, Old: old, New: now.Action.String(), Kind: "tightened", Rules: now.Rules}
	if now.Action > was {
		x.Kind = "loosened"
		o.Loosened++
	} else {
		o.Tightened++
	}
	o.Changes = append(o.Changes, x)
}

func (o *compared) report(c *cli.Console, v *cli.Values) (int, error) {
	status := 0
	if failOn := v.Get("fail-on"); failOn == "loosened" && o.Loosened > 0 || failOn == "any" && len(o.Changes) > 0 {
		status = 65
	}
	return status, answer.List(c, v, o, o.Changes, func(x change) string {
		return fmt.Sprintf("%-9s  %s -> %s  %s  %v\n", x.Kind, x.Old, x.New, answer.Visible(x.Cmd), x.Rules)
	}, fmt.Sprintf("%d commands: %d loosened, %d tightened\n", o.Commands, o.Loosened, o.Tightened))
}

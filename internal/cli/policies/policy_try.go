package policies

import (
	"errors"
	"fmt"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/policy"
)

// loadPolicy reads a policy file as the user's own and checks its examples.
func loadPolicy(file string, im *plan.Imagination) (*policy.Document, error) {
	raw, err := answer.ReadFile(file, 16<<20) // the parser says what is too long for a policy
	if err != nil {
		return nil, err
	}
	doc, err := policy.Parse(policy.Source{File: file, Raw: raw, Layer: policy.LayerUser})
	if err != nil {
		return nil, err
	}
	if im != nil {
		err = doc.CheckExamples(im.Request)
	}
	return doc, err
}

// setWith compiles the policies in force with doc in place of the user's. What a
// project or a flag adds is left out: it is not what is compared.
func setWith(doc *policy.Document, m caller.Machine) (*policy.Set, error) {
	all, err := plan.Documents(m)
	if err != nil {
		return nil, err
	}
	docs := []*policy.Document{doc}
	for _, d := range all {
		if d.Layer() == policy.LayerBuiltin || d.Layer() == policy.LayerManaged {
			docs = append(docs, d)
		}
	}
	return policy.Compile(docs)
}

// testPolicy runs every example of the policies in force, or of the files named, and
// the rows of a corpus.
func testPolicy(c *cli.Console, files []string, corpus []string) (int, error) {
	m := caller.Here()
	im, err := plan.NewImagination(m.Self)
	if err != nil {
		return 0, err
	}
	var docs []*policy.Document
	var set *policy.Set
	t := tested{Kind: "atip-exec.policy-test/1", Failed: []failedRow{}}
	for _, file := range files {
		doc, err := loadPolicy(file, nil)
		if err != nil {
			return 0, err
		}
		var failed *policy.ParseError
		switch err := doc.CheckExamples(im.Request); {
		case errors.As(err, &failed) && failed.Code == errcode.RuleExample:
			// What the verb is for, and not a policy that cannot be read.
			t.Failed = append(t.Failed, failedRow{File: file, Line: failed.Line, Why: failed.Msg})
		case err != nil:
			return 0, err
		}
		docs = append(docs, doc)
	}
	if len(files) == 1 {
		if set, err = setWith(docs[0], m); err != nil {
			return 0, err
		}
	}
	if len(files) > 1 && len(corpus) > 0 {
		return 0, fault.New(errcode.Arguments, "policy test: a corpus is judged under one policy file, or under those in force")
	}
	if len(files) == 0 {
		if docs, err = plan.Documents(m); err != nil {
			return 0, err
		}
		for _, doc := range docs {
			if err := doc.CheckExamples(im.Request); err != nil {
				return 0, err
			}
		}
	}
	judge := plan.NewJudge(m, set)
	for _, file := range corpus {
		rows, err := readCorpus(file)
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			if err := t.judge(judge, file, row); err != nil {
				return 0, err
			}
		}
	}
	for _, doc := range docs {
		t.Examples += doc.Examples()
	}
	for _, f := range t.Failed {
		if f.Cmd == "" {
			t.Examples-- // an example
		}
	}
	t.OK = len(t.Failed) == 0
	return t.report(c)
}

// tested is the outcome of a policy test.
type tested struct {
	Kind       string      `json:"kind"`
	OK         bool        `json:"ok"`
	Examples   int         `json:"examples"`
	Rows       int         `json:"rows"`
	Exact      int         `json:"exact"`
	Unsafe     int         `json:"unsafe"`     // allowed although no label allows it
	Asked      int         `json:"asked"`      // labelled allow and not allowed
	Unlabelled int         `json:"unlabelled"` // rows that say neither decision nor acceptable
	Failed     []failedRow `json:"failed"`
}

type failedRow struct {
	File  string   `json:"file"`
	Line  int      `json:"line"`
	Cmd   string   `json:"cmd"`
	Why   string   `json:"why"`
	Rules []string `json:"rules"`
}

func (t *tested) judge(j *plan.Judge, file string, row corpusRow) error {
	v, err := row.decide(j)
	if err != nil {
		return err
	}
	t.Rows++
	if row.Decision == "" && len(row.Acceptable) == 0 {
		t.Unlabelled++
	}
	action := v.Action.String()
	if action == row.Decision {
		t.Exact++
	}
	if row.Decision == "allow" && action != "allow" {
		t.Asked++
	}
	why := row.wrong(v)
	if why == "" {
		return nil
	}
	if action == "allow" {
		t.Unsafe++
	}
	if v.Err != nil {
		why += ": " + v.Err.Error()
	}
	t.Failed = append(t.Failed, failedRow{file, row.line, row.question().Words(), why, v.Rules})
	return nil
}

// wrong counts the rows that failed.
func (t *tested) wrong() (n int) {
	for _, f := range t.Failed {
		if f.Cmd != "" {
			n++
		}
	}
	return n
}

func (t *tested) report(c *cli.Console) (int, error) {
	status := 0
	if !t.OK {
		status = 65
	}
	if c.Documents() {
		return status, c.Document(t)
	}
	for _, f := range t.Failed {
		text := fmt.Sprintf("%s:%d: %s\n", f.File, f.Line, f.Why)
		if f.Cmd != "" {
			text = fmt.Sprintf("%s:%d: %s %s  %v\n", f.File, f.Line, answer.Visible(f.Cmd), f.Why, f.Rules)
		}
		if err := c.Text(text); err != nil {
			return status, err
		}
	}
	text := fmt.Sprintf("%d examples hold", t.Examples)
	if t.Rows > 0 {
		text += fmt.Sprintf("; %d rows: %d as labelled, %d not acceptable, %d allowed that must not be, %d asked that need not", t.Rows, t.Exact, t.wrong(), t.Unsafe, t.Asked)
	}
	if t.Unlabelled > 0 {
		text += fmt.Sprintf("; %d have no label, so nothing was tested of them", t.Unlabelled)
	}
	return status, c.Text(text + "\n")
}

// lintPolicy reports what is valid and probably not meant.
func lintPolicy(c *cli.Console, v *cli.Values, files []string) (int, error) {
	var docs []*policy.Document
	for _, file := range files {
		doc, err := loadPolicy(file, nil)
		if err != nil {
			return 0, err
		}
		docs = append(docs, doc)
	}
	if len(files) == 0 {
		all, err := plan.Documents(caller.Here())
		if err != nil {
			return 0, err
		}
		for _, doc := range all {
			if doc.Layer() != policy.LayerBuiltin {
				docs = append(docs, doc)
			}
		}
	}
	findings, status := []policy.Finding{}, 0
	for _, doc := range docs {
		findings = append(findings, doc.Lint(time.Now())...)
	}
	for _, f := range findings {
		if f.Severity == "error" || v.Has("strict") {
			status = 65
		}
	}
	end := ""
	if len(findings) == 0 {
		end = "nothing found\n"
	}
	return status, answer.List(c, v, map[string]any{"kind": "atip-exec.policy-lint/1", "ok": status == 0, "findings": findings}, findings, func(f policy.Finding) string {
		return fmt.Sprintf("%s:%d:%d: %s: rule %s %s\n", f.File, f.Line, f.Col, f.Severity, f.Rule, f.Text)
	}, end)
}

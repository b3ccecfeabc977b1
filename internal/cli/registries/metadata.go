// Package registries holds the verbs about metadata and its signatures: list, show, validate,
// lint, diff, scan, generate, crawl, sync, publish, lock and trust.
package registries

import (
	"fmt"
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/shims"
)

// ValidateVerb is `atip validate`.
func ValidateVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "validate needs a file").WithFix("name a document", "atip validate mytool.json")
	}
	type result struct {
		File     string         `json:"file"`
		Valid    bool           `json:"valid"`
		Findings []atip.Finding `json:"findings"`
		LeftOut  int            `json:"left_out,omitempty"`
	}
	results, status := []result{}, 0
	for _, file := range v.Rest {
		raw, err := answer.ReadFile(file, answer.MaxDocument)
		if err != nil {
			return 0, err
		}
		r := result{File: file, Valid: true, Findings: findings(raw, filepath.Base(file), v.Has("lenient"))}
		for _, f := range r.Findings {
			if f.Severity == "error" {
				r.Valid, status = false, 65
			}
		}
		if r.Findings == nil {
			r.Findings = []atip.Finding{}
		}
		r.Findings, r.LeftOut = answer.Most(v, r.Findings)
		results = append(results, r)
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.validate/1", "ok": status == 0, "files": results})
	}
	results, left := answer.Most(v, results)
	for _, r := range results {
		for _, f := range r.Findings {
			if err := c.Text(fmt.Sprintf("%s:%d:%d: %s: %s (%s)\n", r.File, f.Line, f.Col, f.Severity, f.Message, f.Pointer)); err != nil {
				return status, err
			}
		}
		end := answer.LeftOutLine(r.LeftOut)
		if r.Valid {
			end += r.File + ": valid\n"
		}
		if err := c.Text(end); err != nil {
			return status, err
		}
	}
	return status, c.Text(answer.LeftOutLine(left))
}

// findings checks a document. A document that does not load has one finding, an error.
func findings(raw []byte, name string, lenient bool) []atip.Finding {
	list := atip.Validate(raw, name)
	if !lenient {
		return list
	}
	d, err := atip.Parse(raw, atip.ParseOptions{})
	if err != nil {
		return list
	}
	out := d.Warnings()
	for _, f := range list {
		// A shim under another digest loads nowhere.
		if f.Code == errcode.MetadataBinary {
			out = append(out, f)
		}
	}
	return out
}

// ListVerb is `atip list`.
func ListVerb(c *cli.Console, v *cli.Values) (int, error) {
	if v.Has("remote") {
		return listRemote(c, v)
	}
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return 0, err
	}
	entries, err := shims.List(answer.ShimDirs(dirs))
	if err != nil {
		return 0, err
	}
	if c.Documents() {
		return 0, c.Document(map[string]any{"kind": "atip-exec.list/1", "tools": entries})
	}
	entries, left := answer.Most(v, entries)
	for _, e := range entries {
		if err := c.Text(listLine(e)); err != nil {
			return 0, err
		}
	}
	return 0, c.Text(answer.LeftOutLine(left))
}

func listLine(e shims.Entry) string {
	line := e.Name + "  " + e.Channel + ", rank " + e.Rank.String() + "  " + e.Description
	if e.Problem != "" {
		line += "  UNUSABLE: " + e.Problem
	}
	return line + "\n"
}

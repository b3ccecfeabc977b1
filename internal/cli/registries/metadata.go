// Package registries holds the verbs about metadata and its signatures: list, show, validate,
// lint, diff, scan, generate, crawl, sync, publish, lock and trust.
package registries

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/shims"
)

// reviewed is a document with what was found in it.
type reviewed struct {
	File     string         `json:"file"`
	Valid    *bool          `json:"valid,omitempty"` // of `atip validate`
	Findings []atip.Finding `json:"findings"`
	LeftOut  int            `json:"left_out,omitempty"`
}

// review shows what look finds in each of the files; the status is 65 if one is not good.
func review(c *cli.Console, v *cli.Values, verb, praise string, look func(*reviewed) (good bool, err error), line func(atip.Finding) string) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, verb+" needs a file").WithFix("name a document", "atip "+verb+" mytool.json")
	}
	results, status := []reviewed{}, 0
	texts := make([]string, 0, len(v.Rest))
	for _, file := range v.Rest {
		r := reviewed{File: file}
		good, err := look(&r)
		if err != nil {
			return 0, err
		}
		end := ""
		if good {
			end = file + ": " + praise + "\n"
		} else {
			status = 65
		}
		kept, left := answer.Most(v, r.Findings)
		r.Findings, r.LeftOut = append([]atip.Finding{}, kept...), left
		text := ""
		for _, f := range r.Findings {
			text += fmt.Sprintf("%s:%d:%d: %s", file, f.Line, f.Col, line(f))
		}
		results, texts = append(results, r), append(texts, text+answer.LeftOutLine(left)+end)
	}
	return status, answer.List(c, v, map[string]any{"kind": "atip-exec." + verb + "/1", "ok": status == 0, "files": results}, texts, func(text string) string { return text }, "")
}

// ValidateVerb is `atip validate`.
func ValidateVerb(c *cli.Console, v *cli.Values) (int, error) {
	return review(c, v, "validate", "valid", func(r *reviewed) (bool, error) {
		raw, err := answer.ReadFile(r.File, answer.MaxDocument)
		if err != nil {
			return false, err
		}
		r.Findings = findings(raw, filepath.Base(r.File), v.Has("lenient"))
		valid := !slices.ContainsFunc(r.Findings, func(f atip.Finding) bool { return f.Severity == "error" })
		r.Valid = &valid
		return valid, nil
	}, func(f atip.Finding) string { return fmt.Sprintf("%s: %s (%s)\n", f.Severity, f.Message, f.Pointer) })
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
	return 0, answer.List(c, v, map[string]any{"kind": "atip-exec.list/1", "tools": entries}, entries, listLine, "")
}

func listLine(e shims.Entry) string {
	line := e.Name + "  " + e.Channel + ", rank " + e.Rank.String() + "  " + e.Description
	if e.Problem != "" {
		line += "  UNUSABLE: " + e.Problem
	}
	return line + "\n"
}

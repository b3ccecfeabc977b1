// Package policies holds `atip policy` and `atip pattern`: writing, trying, comparing, locking
// and trusting policies.
package policies

import (
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/layers"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/policy"
)

// Verb is `atip policy`.
func Verb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "policy: say init, show, check, test, lint, diff, simulate, trust or lock").WithFix("say which", "atip policy check")
	}
	switch what := v.Rest[1:]; v.Rest[0] {
	case "init":
		return 0, initPolicy(c, v.Has("project"), what)
	case "show":
		return 0, showPolicy(c, v, what)
	case "check":
		return 0, checkPolicy(c, what)
	case "test":
		return testPolicy(c, what, v.All("corpus"))
	case "lint":
		return lintPolicy(c, v, what)
	case "diff":
		return diffPolicy(c, v, what)
	case "lock":
		return 0, lockPolicy(c, v, what)
	case "trust":
		return 0, trustPolicy(what)
	case "simulate":
		return simulatePolicy(c, v, what)
	}
	return 0, fault.New(errcode.Arguments, "policy: unknown word "+v.Rest[0]).WithFix("say init, show, check, test, lint, diff, simulate, trust or lock", "atip policy check")
}

func showPolicy(c *cli.Console, v *cli.Values, what []string) error {
	if len(what) == 1 && what[0] == "builtin" {
		return c.Text(policy.BuiltinText)
	}
	if len(what) > 1 || (len(what) == 1 && what[0] != "effective") {
		return fault.New(errcode.Arguments, "policy show: say builtin or effective")
	}
	set, err := plan.Policies(caller.Here())
	if err != nil {
		return err
	}
	doc := map[string]any{"kind": "atip-exec.policy/1", "profile": set.Profile(), "switches": set.Switches(), "sources": set.Sources(), "warnings": set.Warnings(), "sandbox": set.Sandbox()}
	if c.Documents() {
		return c.Document(doc)
	}
	text := "profile " + set.Profile() + "\n"
	switches, left := answer.Most(v, set.Switches())
	for _, s := range switches {
		text += "switch  " + s + "\n"
	}
	text += answer.LeftOutLine(left)
	sources, left := answer.Most(v, set.Sources())
	for _, s := range sources {
		text += "layer   " + s.Layer.String() + "  " + s.File + "\n"
	}
	return c.Text(text + answer.LeftOutLine(left))
}

// checkPolicy parses the files named, or every layer in force here.
func checkPolicy(c *cli.Console, files []string) error {
	im, err := plan.NewImagination(caller.Here().Self)
	if err != nil {
		return err
	}
	for _, file := range files {
		doc, err := loadPolicy(file, im)
		if err != nil {
			return err
		}
		if why := layers.Unsafe(file, caller.Here().UID); why != "" {
			c.Warn("it would not be loaded from where it lies: " + why)
		}
		set, err := policy.Compile([]*policy.Document{policy.Builtin(), doc})
		if err != nil {
			return err
		}
		for _, w := range set.Warnings() {
			c.Warn(w)
		}
	}
	if len(files) == 0 {
		set, err := plan.Policies(caller.Here())
		if err != nil {
			return err
		}
		for _, w := range set.Warnings() {
			c.Warn(w)
		}
		for _, s := range set.Sources() {
			files = append(files, s.File)
		}
	}
	text := ""
	for _, file := range files {
		text += file + ": good\n"
	}
	return c.Answer(map[string]any{"kind": "atip-exec.policy/1", "ok": true, "files": files}, text)
}

package tools

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/selftest"
	"github.com/atip-dev/atip-exec/sandbox"
)

func sandboxVerb(c *cli.Console, v *cli.Values) (int, error) {
	switch v.Rest[0] {
	case "test":
		if len(v.Rest) > 1 {
			return 0, fault.New(errcode.Arguments, "sandbox test takes no argument").WithFix("name nothing after it", "atip sandbox test")
		}
		return sandboxTest(c, v)
	case "clean":
		return cleanVerb(c, v)
	case "quarantine":
		return quarantineVerb(c, v)
	}
	return 0, fault.New(errcode.Arguments, "sandbox: unknown action "+v.Rest[0]).WithFix("see `atip sandbox --help`", "atip sandbox test")
}

// sandboxTest tries to get out of the sandbox and prints which guarantee held.
func sandboxTest(c *cli.Console, v *cli.Values) (int, error) {
	m := caller.Here()
	profile, err := plan.SandboxPolicy(m)
	if err != nil {
		return 0, err
	}
	if v.Has("tier") {
		profile.Tier, _ = sandbox.TierByName(v.Get("tier"))
	}
	// A start forgets the answer of the probe if it fails, which must not cost runs theirs.
	state, err := os.MkdirTemp("", "atip-sandbox-state-")
	if err != nil {
		return 0, fault.New(errcode.StatusWrite, err.Error())
	}
	defer os.RemoveAll(state)
	if canonical, err := filepath.EvalSymlinks(state); err == nil {
		state = canonical
	}
	report, err := selftest.Run(context.Background(), selftest.Options{Self: m.Self, State: state, Policy: profile, Names: plan.ProtectedNames()})
	if err != nil {
		return 0, err
	}
	status := 0
	if !report.OK {
		status = 69
	}
	return status, c.Answer(report, testTable(report, c.Verbose > 0))
}

// testTable is the report for a person: a line for each guarantee, and for each probe that
// was not simply refused.
func testTable(r *selftest.Report, all bool) string {
	out := "tier " + r.Tier + ", Landlock ABI " + strconv.Itoa(r.ABI) + "\n\n"
	marks := map[string]string{"holds": "✔", "escaped": "✘", "unproven": "✘", "gap": "-", "n/a": "-"}
	for _, g := range r.Guarantees {
		line := marks[g.Status] + " " + pad(g.Guarantee, 13) + pad(g.Status, 9) + strconv.Itoa(g.Denied) + " refused"
		for _, n := range []struct {
			count int
			what  string
		}{{g.Escaped, "got through"}, {g.NA, "n/a"}, {g.Unclear, "unclear"}} {
			if n.count > 0 {
				line += ", " + strconv.Itoa(n.count) + " " + n.what
			}
		}
		out += line
		if g.Why != "" {
			out += "\n    " + g.Why
		}
		out += "\n"
	}
	for _, p := range r.Probes {
		if all || p.Status == "unclear" || p.Status == "launch-fail" {
			out += "\n" + pad(p.Status, 12) + p.Guarantee + " " + p.Family + "/" + p.Name + ": inside " + p.Inside + ", outside " + p.Outside
		}
	}
	if all {
		out += "\n"
	}
	return out
}

func pad(s string, n int) string {
	for len(s) < n {
		s += " "
	}
	return s + " "
}

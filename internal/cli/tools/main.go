// Package tools holds the verbs of atip: everything that is not on the path of a
// command, with the imports that such verbs may afford.
package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/cli/audits"
	"github.com/atip-dev/atip-exec/internal/cli/completions"
	"github.com/atip-dev/atip-exec/internal/cli/policies"
	"github.com/atip-dev/atip-exec/internal/cli/registries"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/scan"
	"github.com/atip-dev/atip-exec/internal/selftest"
)

// verb carries out one verb; it returns the exit status of a verdict ("the chain
// is broken"), or an error.
type verb func(c *cli.Console, v *cli.Values) (int, error)

func verbs(name string) verb {
	handOver := func(*cli.Console, *cli.Values) (int, error) { return 0, cli.HandOver("atip-verify", os.Args[1:]) }
	return map[string]verb{
		"audit":         audits.Verb,
		"validate":      registries.ValidateVerb,
		"list":          registries.ListVerb,
		"show":          registries.ShowVerb,
		"resolve":       registries.ResolveVerb,
		"undo":          undoVerb,
		"checkpoint":    checkpointVerb,
		"forget":        forgetVerb,
		"scan":          registries.ScanVerb,
		"sync":          registries.SyncVerb,
		"fetch-shim":    registries.FetchShimVerb,
		"generate":      registries.GenerateVerb,
		"publish":       registries.PublishVerb,
		"lock":          registries.LockVerb,
		"crawl":         registries.CrawlVerb,
		"lint":          registries.LintVerb,
		"diff":          registries.DiffVerb,
		"compile":       compileVerb,
		"completion":    completions.Verb,
		"safety-prompt": safetyPromptVerb,
		"pattern":       policies.PatternVerb,
		"policy":        policies.Verb,
		"doctor":        doctorVerb,
		"init":          initVerb,
		"self-check":    selfCheckVerb,
		"shim":          shimVerb,
		"sandbox":       sandboxVerb,
		"requests":      approvals.RequestsVerb,
		"approve":       approvals.ApproveVerb,
		"deny":          approvals.DenyVerb,
		"delegate":      approvals.DelegateVerb,
		"run":           runfileVerb,
		"workspace":     workspaceVerb,
		"prime":         primeVerb,
		"mcp":           mcpVerb,
		"call":          callVerb,
		"skill":         skillVerb,
		"man":           manVerb,
		"redact":        redactVerb,
		"verify":        handOver,
		"sign":          handOver,
		"attest":        handOver,
		"trust":         registries.TrustVerb,
	}[name]
}

// Main is atip. It returns the exit status.
func Main(argv []string) (status int) {
	c := cli.NewConsole()
	defer func() {
		if r := recover(); r != nil {
			status = c.Fail(cli.Panicked(r, c))
		}
	}()
	if name := filepath.Base(argv[0]); name == "run" || name == "run.exe" {
		argv = append([]string{"atip", "run"}, argv[1:]...)
	}
	if len(argv) > 1 && argv[1] == scan.ProbeVerb {
		return scan.ProbeMain(argv[2:])
	}
	if len(argv) > 1 && argv[1] == selftest.Verb {
		return selftest.Main(argv[2:])
	}
	if len(argv) > 1 && argv[1] == completions.CompleteVerb {
		return completions.Complete(c, argv[2:])
	}
	if len(argv) > 2 && argv[1] == "help" {
		return c.HelpOn(argv[2:])
	}
	at := verbAt(argv)
	if at < 0 {
		return general(c, argv[1:])
	}
	spec, _ := cli.SpecOf(argv[at])
	args := append(append([]string{}, argv[1:at]...), argv[at+1:]...)
	v, err := cli.Parse(spec, args, os.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	c.Apply(v)
	if l := answer.ListingOf(c, v); l != nil {
		c.Shorten, c.Columns = l.Print, len(l.Fields) > 0
	}
	if v.Has("help") {
		return failed(c, c.Text(cli.Help(spec)), 0)
	}
	if err := permitted(spec, v, argv[1:]); err != nil {
		return c.Fail(err)
	}
	code, err := verbs(argv[at])(c, v)
	return failed(c, err, code)
}

// permitted judges a verb that no person types at a terminal as a command would be judged that
// did the same; one that widens what runs may do is not for anybody else.
func permitted(spec cli.Spec, v *cli.Values, words []string) error {
	acts := spec.Acting(v)
	if acts == cli.Widens {
		if spec.Machines != "" && v.Has(spec.Machines) && !insideRun() {
			return nil
		}
		a, err := approvals.Open()
		if err != nil {
			return err
		}
		t, err := a.OwnTerminal()
		if err != nil {
			fix, example := "type it on your own terminal, outside atip-exec", ""
			if spec.Machines != "" && !insideRun() {
				// One verb has such a flag, and its --dry-run lists what it found.
				fix += "; --dry-run shows what it would do, and --" + spec.Machines + " does it without a terminal"
				example = "atip " + quote.Words(append(words, "--dry-run"))
			}
			return fault.New(errcode.Denied, "atip "+quote.Words(words)+" changes what commands may do; it needs your own terminal: "+err.Error()).WithFix(fix, example)
		}
		t.Close()
		return nil
	}
	paths := cli.OwnPaths(spec, v)
	paths = slices.DeleteFunc(paths, func(p plan.OwnPath) bool { return !strings.ContainsAny(p.Value, "/") })
	if len(paths) == 0 && acts != cli.Destroys || atTerminal() {
		return nil
	}
	var effects []atip.Effect
	if acts == cli.Destroys {
		effects = []atip.Effect{atip.Delete, atip.Destructive}
	}
	return plan.JudgeVerb(caller.Here(), append([]string{"atip"}, words...), paths, effects...)
}

func insideRun() bool {
	return os.Getenv("ATIP_EXEC_SANDBOX") != "" || os.Getenv("ATIP_EXEC_PARENT") != ""
}

// atTerminal reports whether a person types here.
func atTerminal() bool {
	if insideRun() {
		return false
	}
	t, err := approvals.OpenTerminal()
	if err != nil {
		return false
	}
	t.Close()
	return true
}

func failed(c *cli.Console, err error, code int) int {
	if err != nil {
		return c.Fail(err)
	}
	return code
}

// verbAt is where the verb stands, -1 if there is none. Flags may stand before it, each with a value: which
// they are is known once it is found. Any other word is a verb that is spelt wrong, and what follows it is
// not the verb.
func verbAt(argv []string) int {
	for i := 1; i < len(argv); i++ {
		switch {
		case verbs(argv[i]) != nil:
			return i
		case !strings.HasPrefix(argv[i], "-") && !takesValue(argv[i-1]):
			return -1
		}
	}
	return -1
}

// takesValue reports a flag that has its value in the next word, of any verb.
func takesValue(word string) bool {
	return slices.ContainsFunc(cli.Specs(), func(s cli.Spec) bool {
		return slices.ContainsFunc(s.Flags, func(f cli.Flag) bool {
			return f.Value != "" && (word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short))
		})
	})
}

// general answers what needs no verb.
func general(c *cli.Console, args []string) int {
	for _, word := range args {
		switch word {
		case "-h", "--help", "help":
			return failed(c, c.Text(Help()), 0)
		case "-V", "--version", "version":
			return failed(c, c.Text("atip "+cli.Version+"\n"), 0)
		}
	}
	at := slices.IndexFunc(args, func(word string) bool { return !strings.HasPrefix(word, "-") })
	if at < 0 {
		return c.Fail(fault.New(errcode.Arguments, "no verb given").WithFix("see `atip --help`", "atip audit verify"))
	}
	f := fault.New(errcode.Arguments, "unknown verb "+args[at])
	if _, ok := cli.SpecOf(args[at]); ok { // verbAt would have found it among ours
		return c.Fail(f.WithFix(args[at]+" is a verb of atip-exec", quote.Words(append([]string{"atip-exec"}, args[at:]...))))
	}
	if near := cli.NearVerb(args[at]); near != "" {
		return c.Fail(f.WithFix("did you mean "+near+"?", ""))
	}
	return c.Fail(f.WithFix("see `atip --help`", "atip audit verify"))
}

// Help lists the verbs of atip.
func Help() string {
	out := "Approvals, policies, metadata, registries and checks.\n\nUsage: atip VERB [flags]\n" + cli.VerbList("atip")
	return out + "\nSee `atip VERB --help`.\n"
}

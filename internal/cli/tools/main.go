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
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/scan"
	"github.com/atip-dev/atip-exec/internal/selftest"
)

// verb carries out one verb; it returns the exit status of a verdict ("the chain
// is broken"), or an error.
type verb func(c *cli.Console, v *cli.Values) (int, error)

func verbs(name string) verb {
	switch name {
	case "audit":
		return auditVerb
	case "validate":
		return validateVerb
	case "list":
		return listVerb
	case "show":
		return showVerb
	case "resolve":
		return resolveVerb
	case "undo":
		return undoVerb
	case "checkpoint":
		return checkpointVerb
	case "forget":
		return forgetVerb
	case "scan":
		return scanVerb
	case "sync":
		return syncVerb
	case "fetch-shim":
		return fetchShimVerb
	case "generate":
		return generateVerb
	case "publish":
		return publishVerb
	case "lock":
		return lockVerb
	case "crawl":
		return crawlVerb
	case "lint":
		return lintVerb
	case "diff":
		return diffVerb
	case "compile":
		return compileVerb
	case "completion":
		return completionVerb
	case "safety-prompt":
		return safetyPromptVerb
	case "pattern":
		return patternVerb
	case "policy":
		return policyVerb
	case "doctor":
		return doctorVerb
	case "init":
		return initVerb
	case "sandbox":
		return sandboxVerb
	case "requests":
		return requestsVerb
	case "approve":
		return approveVerb
	case "deny":
		return denyVerb
	case "delegate":
		return delegateVerb
	case "run":
		return runfileVerb
	case "workspace":
		return workspaceVerb
	case "prime":
		return primeVerb
	case "mcp":
		return mcpVerb
	case "call":
		return callVerb
	case "skill":
		return skillVerb
	case "man":
		return manVerb
	case "redact":
		return redactVerb
	case "verify", "sign", "attest":
		return handToVerifier
	case "trust":
		return trustVerb
	}
	return nil
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
	if len(argv) > 1 && argv[1] == completeVerb {
		return complete(c, argv[2:])
	}
	if len(argv) > 2 && argv[1] == "help" {
		return c.HelpOn(argv[2:])
	}
	// Flags may stand before the verb; which they are is known once it is found.
	at := -1
	for i, word := range argv[1:] {
		if run := verbs(word); run != nil {
			at = i + 1
			break
		}
	}
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
	if l := listingOf(c, v); l != nil {
		c.Shorten, c.Columns = l.print, len(l.fields) > 0
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

// handToVerifier goes on as the program that links the signature libraries.
func handToVerifier(*cli.Console, *cli.Values) (int, error) {
	return 0, cli.HandOver("atip-verify", os.Args[1:])
}

// permitted judges a verb that no person types at a terminal as a command would be judged that
// did the same; one that widens what runs may do is not for anybody else.
func permitted(spec cli.Spec, v *cli.Values, words []string) error {
	acts := spec.Acting(v)
	if acts == cli.Widens {
		if spec.Machines != "" && v.Has(spec.Machines) && !insideRun() {
			return nil
		}
		a, err := openAnswers()
		if err != nil {
			return err
		}
		t, err := a.ownTerminal()
		if err != nil {
			fix, example := "type it on your own terminal, outside atip-exec", ""
			if spec.Machines != "" && !insideRun() {
				// One verb has such a flag, and its --dry-run lists what it found.
				fix += "; --dry-run shows what it would do, and --" + spec.Machines + " does it without a terminal"
				example = "atip " + plan.Quote(append(words, "--dry-run"))
			}
			return fault.New(errcode.Denied, "atip "+plan.Quote(words)+" changes what commands may do; it needs your own terminal: "+err.Error()).WithFix(fix, example)
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
	t, err := openTerminal()
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
	f := fault.New(errcode.Arguments, "no verb given")
	if len(args) > 0 {
		f = fault.New(errcode.Arguments, "unknown verb "+args[0])
	}
	return c.Fail(f.WithFix("see `atip --help`", "atip audit verify"))
}

// Help lists the verbs of atip.
func Help() string {
	out := "Approvals, policies, metadata, registries and checks.\n\nUsage: atip VERB [flags]\n" + cli.VerbList("atip")
	return out + "\nSee `atip VERB --help`.\n"
}

// Package tools holds the verbs of atip: everything that is not on the path of a
// command, with the imports that such verbs may afford.
package tools

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
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
	case "redact":
		return redactVerb
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
	if len(argv) > 1 && argv[1] == scan.ProbeVerb {
		return scan.ProbeMain(argv[2:])
	}
	if len(argv) > 1 && argv[1] == selftest.Verb {
		return selftest.Main(argv[2:])
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
	if v.Has("help") {
		return failed(c, c.Text(cli.Help(spec)), 0)
	}
	code, err := verbs(argv[at])(c, v)
	return failed(c, err, code)
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
	f := fault.New("E1004", "no verb given")
	if len(args) > 0 {
		f = fault.New("E1004", "unknown verb "+args[0])
	}
	return c.Fail(f.WithFix("see `atip --help`", "atip audit verify"))
}

// Help lists the verbs of atip.
func Help() string {
	out := "Everything beside the running of commands.\n\nUsage: atip VERB [flags]\n\nVerbs:\n"
	for _, s := range cli.Specs() {
		if s.Program == "atip" {
			out += "  " + s.Verb + "\n      " + s.Summary + "\n"
		}
	}
	return out + "\n`atip VERB --help` describes one.\n"
}

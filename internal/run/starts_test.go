package run

import (
	"go/ast"
	"go/token"
	"path"
	"testing"
)

// starters are the files that may start a program in another way than outside.Command, which
// makes an environment of its own, each with what it starts.
var starters = map[string]string{
	"internal/outside/outside.go":        "the one function",
	"sandbox/launch_linux.go":            "the stage of a confined run: this program again",
	"sandbox/stage_linux.go":             "the command, confined",
	"sandbox/worker_linux.go":            "the command, confined",
	"sandbox/start_other.go":             "the command, where nothing confines it and policy permits that",
	"internal/cli/process_unix.go":       "atip instead of this process: what the caller typed, with his environment",
	"internal/cli/process_windows.go":    "the same",
	"internal/cli/approvals/delegate.go": "atip-exec instead of this process, which judges what the caller typed",
	"internal/cli/tools/run_unix.go":     "the same",
	"internal/cli/tools/run_other.go":    "the same",
	"internal/cli/tools/run.go":          "atip-exec, which judges a function of a Runfile",
	"internal/cli/policies/pattern.go":   "atip-exec, which judges a step",
	"internal/cli/tools/call.go":         "atip-exec, which judges a call",
	"internal/cli/tools/doctor.go":       "our verifier beside this program",
	"internal/cli/registries/publish.go": "our verifier beside this program",
	"internal/cli/tools/tryout.go":       "files that init and shim have written, for their self-tests",
	"internal/mcp/job.go":                "atip-exec, which judges a call",
	"internal/priming/priming.go":        "atip-exec, which judges the question",
	"internal/standin/standin_linux.go":  "the command in whose place the shell started this program, confined as it is",
	"internal/nest/broker.go":            "this program again, with an environment that the parent run made",
	"internal/scan/probe.go":             "this program again, with an environment of its own",
	"trust/distro/rpm.go":                "rpm of the system",
	"trust/settle/settle.go":             "our verifier beside this program",
	"internal/selftest/":                 "probes of the self-test",
	"internal/escape/":                   "probes of the self-test",
	"internal/corpus/":                   "git, for tests",
	"internal/built/built.go":            "the go command, for tests",
}

// TestNothingElseStarts: a program beside the sandbox has the rights of the user, so none gets
// the environment of an agent.
func TestNothingElseStarts(t *testing.T) {
	found := 0
	sources(t, func(name string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch pkg.Name + "." + sel.Sel.Name {
			case "exec.Command", "exec.CommandContext", "os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "unix.Exec":
				found++
				if starters[name] == "" && starters[path.Dir(name)+"/"] == "" {
					t.Errorf("%s: %s.%s starts a program; use outside.Command", set.Position(sel.Pos()), pkg.Name, sel.Sel.Name)
				}
			}
			return true
		})
	})
	if found < 10 {
		t.Errorf("only %d starts were found: the test looks at the wrong place", found)
	}
}

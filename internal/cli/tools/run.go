package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/runfile"
)

// runfileVerb runs a function of a Runfile, or describes what is there.
func runfileVerb(c *cli.Console, v *cli.Values) (int, error) {
	if dir := v.Get("working-dir"); dir != "" {
		if err := os.Chdir(dir); err != nil {
			return 0, fault.New(errcode.NoInputFile, "--working-dir: "+err.Error()).With("directory", dir)
		}
	}
	if v.Has("serve-mcp") {
		return serveRunfile(c, v)
	}
	f, err := answer.Runfile(v.Get("runfile"))
	if err != nil {
		return 0, err
	}
	for _, w := range f.Warnings {
		c.Warn(w)
	}
	switch {
	case v.Has("inspect"):
		functions, err := f.Offered(v.Has("all"), v.Has("readonly"))
		if err != nil {
			return 0, err
		}
		return 0, c.Document(f.Inspect(functions, v.Get("format")))
	case v.Has("list"), len(v.Rest) == 0:
		return 0, listFunctions(c, v, f)
	}
	fn, words, err := f.Find(v.Rest)
	if err != nil {
		return 0, err
	}
	if v.Has("readonly") && !fn.Safe {
		return 0, fault.New(errcode.Denied, "--readonly: "+fn.Name+" has no @safe").WithFix("call a function with @safe, or add it if the function changes nothing", "")
	}
	args, err := fn.Bind(words)
	if err != nil {
		return 0, err
	}
	call, err := scriptOf(f, fn, args)
	if err != nil {
		return 0, err
	}
	if d := v.DurationOf("timeout"); d > 0 && (call.Timeout == 0 || d < call.Timeout) {
		call.Timeout = d
	}
	if v.Has("show-script") {
		return 0, c.Answer(map[string]any{"kind": "atip-exec.runfile/1", "function": fn.Name, "interpreter": call.Interpreter, "code": call.Code, "args": args, "ceiling": call.Ceiling, "limited": call.Limited}, call.Code+"\n")
	}
	return 0, startFunction(call, passedOn(v))
}

// scriptOf makes a call ready to run here: many systems have python3 and no python.
func scriptOf(f *runfile.File, fn *runfile.Function, args []string) (*runfile.Call, error) {
	call, err := f.Script(fn, args, defaultShell())
	if err == nil && call.Interpreter == "python" {
		if _, missing := exec.LookPath("python"); missing != nil {
			call.Interpreter = "python3"
		}
	}
	return call, err
}

// passedOn are the flags of ours that atip-exec has, too.
func passedOn(v *cli.Values) []string {
	var flags []string
	for _, name := range []string{"quiet", "no-color", "dry-run"} {
		if v.Has(name) {
			flags = append(flags, "--"+name)
		}
	}
	for range v.CountOf("verbose") {
		flags = append(flags, "-v")
	}
	if v.Has("output") {
		flags = append(flags, "--output", v.Get("output"))
	}
	for _, file := range v.All("policy") {
		flags = append(flags, "--policy", file)
	}
	return flags
}

// defaultShell runs functions that name no interpreter: RUN_SHELL if that is one, bash, sh.
func defaultShell() string {
	if shell := os.Getenv("RUN_SHELL"); filepath.IsAbs(shell) {
		switch filepath.Base(shell) {
		case "bash", "sh", "dash", "zsh", "ksh":
			return shell
		}
	}
	for _, shell := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(shell); err == nil {
			return "bash"
		}
	}
	return "sh"
}

type functionDocument struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Params      []string `json:"params"`
	Tool        string   `json:"tool"`
	File        string   `json:"file"`
	Line        int      `json:"line"`
	Safe        bool     `json:"safe"`
	Ceiling     []string `json:"ceiling,omitempty"`
}

func listFunctions(c *cli.Console, v *cli.Values, f *runfile.File) error {
	if !c.Documents() {
		functions, left := answer.Most(v, f.Functions)
		return c.Text(runfile.List(functions) + answer.LeftOutLine(left))
	}
	list := []functionDocument{}
	for _, fn := range f.Functions {
		d := functionDocument{Name: fn.Name, Description: fn.Desc, Params: []string{}, Tool: fn.ToolName(), File: fn.File, Line: fn.Line, Safe: fn.Safe, Ceiling: fn.Effects}
		for _, p := range fn.Params {
			d.Params = append(d.Params, p.Name)
		}
		list = append(list, d)
	}
	return c.Document(map[string]any{"kind": "atip-exec.runfile/1", "file": f.Path, "instructions": f.Instructions, "functions": list})
}

// beside is the path of a program that lies beside our own executable.
func beside(name string) string {
	self := caller.Here().Self
	if strings.HasSuffix(self, ".exe") {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(self), name)
}

func missingCompanion(program string, err error) error {
	return fault.New(errcode.NoCompanion, program+": "+err.Error()).WithFix("install `atip-exec` beside `atip`", "go install github.com/atip-dev/atip-exec/cmd/...")
}

package tools

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/provider"
)

// plannedCall is one call of a model with the command line that it stands for.
type plannedCall struct {
	provider.Call
	argv    []string
	effects atip.Effects
	err     error
}

// callVerb runs the calls of a model's response, each through the whole of atip-exec, and
// prints what the provider wants back: a foreign format.
func callVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "call needs the tools that the model was given").WithFix("name them", "atip call --provider openai gh git <response.json")
	}
	if !v.Has("provider") {
		return 0, fault.New(errcode.FlagValue, "call needs --provider").WithFix("choose a provider", "--provider openai")
	}
	raw, err := io.ReadAll(io.LimitReader(os.Stdin, provider.MaxResponse+1))
	if err != nil {
		return 0, fault.New(errcode.NoInputFile, "stdin: "+err.Error())
	}
	name := v.Get("provider")
	calls, err := provider.Calls(name, raw)
	if err != nil {
		return 0, err
	}
	planned, err := planCalls(v, calls)
	if err != nil {
		return 0, err
	}
	if v.Has("parse-only") {
		list := []any{}
		for _, p := range planned {
			one := map[string]any{"id": p.ID, "name": p.Name, "argv": p.argv}
			if p.err != nil {
				one["error"] = fault.From(p.err)
			}
			list = append(list, one)
		}
		return 0, c.Document(map[string]any{"kind": "atip-exec.call/1", "calls": list})
	}
	flags := policyFlags(v)
	if v.Has("timeout") {
		flags = append(flags, "--timeout", v.Get("timeout"))
	}
	return 0, c.Document(provider.Results(name, runCalls(planned, flags)))
}

// planCalls finds the command line of each call. Names are looked up in the table that the
// functions were compiled by, never split.
func planCalls(v *cli.Values, calls []provider.Call) ([]plannedCall, error) {
	type compiledTool struct {
		atip.Compiled
		effects map[string]atip.Effects
	}
	var tools []compiledTool
	for _, word := range v.Rest {
		s, err := answer.DocumentedSubject(word)
		if err != nil {
			return nil, err
		}
		compiled, err := s.Document().Compile(s.Provenance, atip.CompileOptions{Provider: v.Get("provider"), Action: v.Get("flatten") == "action"})
		if err != nil {
			return nil, err
		}
		t := compiledTool{compiled, map[string]atip.Effects{}}
		for _, f := range compiled.List(false) {
			t.effects[f.Name] = f.Effects
		}
		tools = append(tools, t)
	}
	var out []plannedCall
	for _, call := range calls {
		p := plannedCall{Call: call}
		i := slices.IndexFunc(tools, func(t compiledTool) bool { return t.Names[call.Name] != nil })
		switch {
		case i < 0:
			p.err = fault.New(errcode.NoFunction, "there is no function "+call.Name).WithFix("call a function that was declared", "")
		case call.Bad != "":
			p.err = fault.New(errcode.ArgumentType, call.Name+": "+call.Bad).WithFix("send an object", "")
		default:
			p.effects = tools[i].effects[call.Name]
			p.argv, p.err = tools[i].Call(call.Name, call.Arguments)
		}
		out = append(out, p)
	}
	return out, nil
}

// conflict reports calls that must not run side by side: one of them may change what the
// other reads or changes. What is not known may be so.
func conflict(a, b *plannedCall) bool {
	changes := func(p *plannedCall) bool {
		return p.err == nil && slices.ContainsFunc([]atip.Effect{atip.Write, atip.Delete, atip.Destructive, atip.RemoteMutation, atip.Billable},
			func(e atip.Effect) bool { return p.effects[e].Value != atip.No })
	}
	return changes(a) || changes(b)
}

// maxSideBySide is how many calls run at a time.
const maxSideBySide = 4

// sideBySide cuts calls into stretches, in their order, whose calls do not conflict: a call that
// changes something is alone in its own.
func sideBySide(calls []plannedCall) (stretches [][]plannedCall) {
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && to-from < maxSideBySide && !slices.ContainsFunc(calls[from:to], func(p plannedCall) bool { return conflict(&p, &calls[to]) }) {
			to++
		}
		stretches = append(stretches, calls[from:to])
		from = to
	}
	return stretches
}

// runCalls runs the calls of one stretch at a time.
func runCalls(calls []plannedCall, flags []string) []provider.Result {
	results := make([]provider.Result, 0, len(calls))
	for _, stretch := range sideBySide(calls) {
		from := len(results)
		results = results[:from+len(stretch)]
		var all sync.WaitGroup
		for i := range stretch {
			all.Go(func() { results[from+i] = runCall(&stretch[i], flags) })
		}
		all.Wait()
	}
	return results
}

func runCall(p *plannedCall, flags []string) provider.Result {
	r := provider.Result{Call: p.Call}
	if p.err != nil {
		r.IsError, r.Text = true, string(fault.From(p.err).JSON())
		return r
	}
	program := beside("atip-exec")
	cmd := exec.Command(program, append(append(append([]string{"--output", "json"}, flags...), "--"), p.argv...)...)
	out, err := cmd.Output()
	var envelope struct {
		OK     bool `json:"ok"`
		Result struct {
			ExitCode int    `json:"exit_code"`
			Stdout   string `json:"stdout"`
			Stderr   string `json:"stderr"`
			StdoutB  []byte `json:"stdout_b64"`
		} `json:"result"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(out, &envelope) != nil {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		r.IsError, r.Text = true, string(fault.From(missingCompanion(program, err)).JSON())
		return r
	}
	r.IsError = !envelope.OK
	text := envelope.Result.Stdout
	if envelope.Result.StdoutB != nil {
		text = strings.ToValidUTF8(string(envelope.Result.StdoutB), "\uFFFD")
	}
	if envelope.Error != nil {
		text += `{"error":` + string(envelope.Error) + "}"
	} else if !envelope.OK {
		raw, _ := json.Marshal(map[string]any{"exit_code": envelope.Result.ExitCode, "stdout": text, "stderr": envelope.Result.Stderr})
		text = string(raw)
	}
	r.Text = text
	return r
}

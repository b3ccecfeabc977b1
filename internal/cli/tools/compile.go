package tools

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// compileVerb prints function declarations in the form of one provider. They are a
// foreign format: nothing of ours is added to them.
func compileVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "compile needs one document or tool").WithFix("name a file or a tool", "atip compile --provider openai gh.json")
	}
	s, err := answer.DocumentedSubject(v.Rest[0])
	if err != nil {
		return 0, err
	}
	if v.Has("system") {
		return 0, c.Text(s.Document().SafetyPrompt(s.Provenance))
	}
	if !v.Has("provider") {
		return 0, fault.New(errcode.FlagValue, "compile needs --provider").WithFix("choose a provider", "--provider openai")
	}
	o := atip.CompileOptions{Provider: v.Get("provider"), Strict: v.Has("strict"), Action: v.Get("flatten") == "action"}
	for _, list := range v.All("commands") {
		o.Commands = append(o.Commands, strings.Split(list, ",")...)
	}
	out, err := s.Document().Compile(s.Provenance, o)
	if err != nil {
		return 0, err
	}
	for _, w := range out.Warnings {
		c.Warn(s.Name + ": " + w)
	}
	if v.Has("names") {
		return 0, c.Document(map[string]any{"kind": "atip-exec.names/1", "names": out.Names})
	}
	return 0, c.Document(out.Functions)
}

func safetyPromptVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "safety-prompt needs a document or a tool").WithFix("name files or tools", "atip safety-prompt gh")
	}
	for i, word := range v.Rest {
		s, err := answer.DocumentedSubject(word)
		if err != nil {
			return 0, err
		}
		text := s.Document().SafetyPrompt(s.Provenance)
		if i > 0 {
			text = "\n" + text
		}
		if err := c.Text(text); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

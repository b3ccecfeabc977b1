package registries

import (
	"fmt"
	"os"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
)

// ResolveVerb prints what a document says of an argv. Nothing is decided and nothing
// is started; `atip-exec explain` does the same for what would really run.
func ResolveVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.NoCommand, "resolve needs a command").WithFix("write the command after `--`", "atip resolve --metadata gh.json -- gh pr merge 42")
	}
	var s answer.Subject
	var err error
	if file := v.Get("metadata"); file != "" {
		s, err = answer.SubjectFromFile(file)
	} else {
		s, err = answer.DocumentedSubject(v.Rest[0])
	}
	if err != nil {
		return 0, err
	}
	if name := v.Get("rank"); name != "" {
		rank, _ := atip.RankByName(name)
		s.Found.Provenance.Rank = rank
	}
	call := s.Found.Resolve(v.Rest, atip.ResolveOptions{Env: os.LookupEnv, EnvNames: variableNames()})
	if world, err := here(); err == nil {
		for i := range call.Resources {
			world.Fill(&call.Resources[i], call.Chdir)
		}
	}
	if c.Documents() {
		return 0, c.Document(struct {
			Kind string `json:"kind"`
			atip.Call
			Effects map[string]atip.Fact `json:"effects"`
		}{"atip-exec.resolve/1", call, call.Effects.Map()})
	}
	return 0, c.Text(resolveText(call))
}

func variableNames() []string {
	var out []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		out = append(out, name)
	}
	return out
}

// here is this directory, for the classes of paths.
func here() (place.World, error) {
	dirs, _, err := answer.Home()
	if err != nil {
		return place.World{}, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return place.World{}, err
	}
	w := place.World{Home: dirs.Home, Cwd: cwd, Config: dirs.Config, Data: dirs.Data, State: dirs.State, Runtime: dirs.Runtime, Managed: place.Managed}
	w.Workspace, w.GitDirs, _ = place.FindWorkspace(cwd, dirs, os.Geteuid())
	return w.Resolved(), nil
}

func resolveText(call atip.Call) string {
	var b strings.Builder
	line := func(label, text string) {
		fmt.Fprintf(&b, "%-16s %s\n", answer.Plain(label), answer.Plain(text))
	}
	line("command", strings.Join(append([]string{call.Tool}, call.Path...), " ")+" ("+call.Exactness.String()+")")
	for _, p := range call.AltPaths {
		line("or", strings.Join(append([]string{call.Tool}, p...), " "))
	}
	for _, o := range call.Options {
		text := o.Flag
		if o.Value != "" {
			text += " " + o.Value
		}
		if o.Maybe {
			text += "  (perhaps)"
		}
		line("option "+o.Name, text)
	}
	for _, o := range call.UnknownOptions {
		line("unknown option", o)
	}
	for _, p := range call.Positionals {
		line("argument", strings.TrimSpace(p.Name+" "+p.Value))
	}
	for _, n := range call.Nested {
		line("runs", strings.TrimSpace(n.Kind+" "+strings.Join(n.Argv, " ")+n.Text))
	}
	for _, r := range call.Resources {
		target := r.Value
		if r.Abs != "" {
			target = r.Abs
		}
		line("touches", r.Access.String()+" "+target+" ("+r.Class.String()+")")
	}
	for i, f := range call.Effects {
		text := f.Value.String()
		if f.Value != atip.Unknown {
			text += "  by " + f.Source + f.Pointer
			if f.Clause != "" {
				text += " clause " + f.Clause
			}
		}
		line(atip.Effect(i).String(), text)
	}
	for _, w := range call.Warnings {
		line("warning", w)
	}
	return b.String()
}

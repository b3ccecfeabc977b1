package policies

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/shims"
)

// namedPattern is a pattern with where it comes from.
type namedPattern struct {
	Name   string       `json:"name"` // TOOL/NAME, or NAME of a file of patterns
	Source string       `json:"source"`
	Rank   atip.Rank    `json:"rank"`
	Body   atip.Pattern `json:"pattern"`
}

// PatternVerb is `atip pattern`.
func PatternVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) > 0 {
		switch v.Rest[0] {
		case "list":
			return 0, listPatterns(c, v)
		case "show":
			return 0, showPattern(c, v.Rest[1:])
		case "run":
			return runPattern(c, v.Rest[1:])
		}
	}
	return 0, fault.New(errcode.Arguments, "pattern needs list, show or run").WithFix("choose one", "atip pattern list")
}

func listPatterns(c *cli.Console, v *cli.Values) error {
	tools := v.Rest[1:]
	_, at, err := answer.Home()
	if err != nil {
		return err
	}
	list, err := patternsOfFiles(at)
	if err != nil {
		return err
	}
	if len(tools) == 0 {
		entries, err := shims.List(at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.HasPatterns && !slices.Contains(tools, e.Name) {
				tools = append(tools, e.Name)
			}
		}
	}
	for _, tool := range tools {
		more, err := patternsOfTool(tool)
		if err != nil {
			return err
		}
		list = append(list, more...)
	}
	return answer.List(c, v, map[string]any{"kind": "atip-exec.pattern/1", "patterns": list}, list, func(p namedPattern) string {
		how := "advice"
		if p.why() == "" {
			how = "can be run"
		}
		return answer.Plain(p.Name) + "  " + how + "  " + answer.Plain(p.Body.Description) + "\n"
	}, "")
}

func patternsOfFiles(at shims.Dirs) ([]namedPattern, error) {
	files, err := shims.PatternFiles(at)
	if err != nil {
		return nil, err
	}
	list := []namedPattern{}
	for _, f := range files {
		for _, p := range f.Patterns {
			list = append(list, namedPattern{p.Name, "file:" + f.Path, f.Rank, p})
		}
	}
	return list, nil
}

func patternsOfTool(tool string) ([]namedPattern, error) {
	s, err := answer.DocumentedSubject(tool)
	if err != nil {
		return nil, err
	}
	var list []namedPattern
	for _, p := range s.Document().Patterns() {
		list = append(list, namedPattern{s.Name + "/" + p.Name, s.Provenance.Source, s.Provenance.Rank, p})
	}
	return list, nil
}

// findPattern looks for TOOL/NAME in the metadata of a tool as it is installed here,
// for NAME in the files of patterns.
func findPattern(name string) (namedPattern, error) {
	var list []namedPattern
	var err error
	if tool, _, ok := cutLast(name, "/"); ok {
		list, err = patternsOfTool(tool)
		name = filepath.Base(tool) + name[len(tool):]
	} else {
		_, at, homeErr := answer.Home()
		if homeErr != nil {
			return namedPattern{}, homeErr
		}
		list, err = patternsOfFiles(at)
	}
	if err != nil {
		return namedPattern{}, err
	}
	var found []namedPattern
	for _, p := range list {
		if p.Name == name {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return namedPattern{}, fault.New(errcode.NoInputFile, "no pattern "+name).WithFix("`atip pattern list` shows the patterns", "atip pattern list")
	case 1:
		return found[0], nil
	}
	return namedPattern{}, fault.New(errcode.Arguments, "two patterns are called "+name+": in "+found[0].Source+" and in "+found[1].Source).WithFix("rename or remove one", "")
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// why says why a pattern is not run, "" if it may be.
func (p namedPattern) why() string {
	switch {
	case !p.Body.Executable:
		return "its author marks it as advice"
	case p.Rank < atip.Org:
		return "its source is of rank " + p.Rank.String() + ", and only org or vendor may propose commands to run"
	}
	return ""
}

// bound reads NAME k=v… and puts the values in.
func bound(args []string) (namedPattern, [][]string, error) {
	p, err := findPattern(args[0])
	if err != nil {
		return p, nil, err
	}
	values := map[string]string{}
	for _, pair := range args[1:] {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return p, nil, fault.New(errcode.Arguments, strconv.Quote(pair)+" is not NAME=VALUE").WithFix("give each variable a value", "atip pattern run "+args[0]+" branch=topic")
		}
		if _, twice := values[name]; twice {
			return p, nil, fault.New(errcode.Arguments, name+" is given twice")
		}
		values[name] = value
	}
	steps, err := p.Body.Bind(values)
	return p, steps, err
}

func showPattern(c *cli.Console, args []string) error {
	if len(args) == 0 {
		return fault.New(errcode.Arguments, "pattern show needs a name").WithFix("name a pattern", "atip pattern show gh/review-pr")
	}
	var steps [][]string
	p, err := findPattern(args[0])
	if err == nil && len(args) > 1 {
		p, steps, err = bound(args)
	}
	if err != nil {
		return err
	}
	if c.Documents() {
		doc := map[string]any{"kind": "atip-exec.pattern/1", "name": p.Name, "source": p.Source, "rank": p.Rank, "pattern": p.Body}
		if steps != nil {
			doc["argv"] = steps
		}
		return c.Document(doc)
	}
	text := answer.Plain(p.Name) + "  " + answer.Plain(p.Body.Description) + "\n  from " + answer.Plain(p.Source) + ", rank " + p.Rank.String() + "\n"
	if why := p.why(); why != "" {
		text += "  not run: " + why + "\n"
	}
	for _, v := range p.Body.Variables {
		text += "  variable " + answer.Plain(v.Name) + "  " + answer.Plain(strings.TrimSpace(v.Type+"  "+v.Description)) + "\n"
	}
	for i, s := range p.Body.Steps {
		line := s.Command
		if steps != nil {
			line = quoted(steps[i])
		}
		text += "  " + strconv.Itoa(i+1) + ". " + answer.Plain(line) + "\n"
	}
	return c.Text(text)
}

// quoted shows words so that it can be seen where each begins and ends.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; w == "" || strings.ContainsAny(w, " \t\"'\\$`|&;<>(){}[]*?#~!") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// runPattern runs the steps one after the other, each through the whole of atip-exec,
// and stops at the first that fails. Nothing starts unless all of them can be bound.
func runPattern(c *cli.Console, args []string) (int, error) {
	if len(args) == 0 {
		return 0, fault.New(errcode.Arguments, "pattern run needs a name").WithFix("name a pattern", "atip pattern run gh/review-pr number=42")
	}
	p, steps, err := bound(args)
	if err != nil {
		return 0, err
	}
	if why := p.why(); why != "" {
		return 0, fault.New(errcode.Denied, "the pattern "+p.Name+" is not run: "+why).With("source", p.Source).WithFix("run the steps that you want one by one", "atip pattern show "+args[0])
	}
	program := filepath.Join(filepath.Dir(caller.Here().Self), "atip-exec")
	for i, words := range steps {
		c.Note("step " + strconv.Itoa(i+1) + " of " + strconv.Itoa(len(steps)) + ": " + answer.Plain(quoted(words)))
		if status, err := runStep(program, words); err != nil || status != 0 {
			return status, err
		}
	}
	return 0, nil
}

func runStep(program string, words []string) (int, error) {
	cmd := exec.Command(program, append([]string{"--"}, words...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fault.New(errcode.NoCompanion, program+": "+err.Error()).WithFix("install `atip-exec` beside `atip`", "go install github.com/atip-dev/atip-exec/cmd/...")
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			// At a terminal the step has had it already, and may have ended; a second one
			// does no harm.
			cmd.Process.Signal(s)
		case err := <-done:
			var exit *exec.ExitError
			switch {
			case err == nil:
				return 0, nil
			case errors.As(err, &exit) && exit.ExitCode() >= 0:
				return exit.ExitCode(), nil
			case errors.As(err, &exit):
				return 70, nil // atip-exec itself was killed
			}
			return 0, fault.New(errcode.NoCompanion, program+": "+err.Error())
		}
	}
}

package generate

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// AskWith runs the tool with words and variables, confined, and returns what it printed.
type AskWith func(ctx context.Context, env []string, words ...string) (text, why string, err error)

// Completion asks a tool what it offers to complete. How that is asked hangs on the
// framework, which its help tells: each has a convention of its own.
//
//	cobra     TOOL __complete WORDS… ""        candidates, one a line, then ":" and a number
//	click     _TOOL_COMPLETE=zsh_complete TOOL  candidates of COMP_WORDS, three lines each
//	clap      TOOL completions fish             a script, if the help names such a command
//	argparse  TOOL --print-completion bash      a script, if the help names such an option
//	others    the script for fish that is installed for the tool; nothing is started
//
// Where the framework cannot be told, the first of cobra's answer and the script counts.
func Completion(ctx context.Context, ask AskWith, name string, help Help, scripts []string, progress func(words []string)) (Node, error) {
	c := completer{walker: walker{ctx: ctx, progress: progress}, with: ask, name: name}
	root := Node{Help: Help{Framework: help.Framework}}
	var err error
	switch help.Framework {
	case "click":
		err = c.click(&root, nil)
	case "clap", "argparse":
		err = c.script(&root, help)
	case "", "cobra":
		err = c.cobra(&root, nil)
	}
	if err == nil && root.empty() {
		if text, ok := installedScript(name, scripts); ok {
			root = fishScript(text, name, help.Framework == "clap")
			root.Help.Framework = help.Framework
		}
	}
	return root, err
}

func (n *Node) empty() bool { return len(n.Kids) == 0 && len(n.Help.Options) == 0 }

type completer struct {
	walker
	with AskWith
	name string
}

// run asks once, within the bounds of a walk; "" if there is no answer.
func (c *completer) run(path []string, env []string, words ...string) (string, error) {
	if c.runs++; c.runs > maxRuns || c.ctx.Err() != nil {
		return "", nil
	}
	if c.progress != nil {
		c.progress(path)
	}
	text, why, err := c.with(c.ctx, env, words...)
	if err != nil || why != "" {
		return "", err
	}
	return plainText(text), nil
}

// cobra asks for the subcommands and for the flags of a command. Candidates without a
// description are values, not commands.
func (c *completer) cobra(n *Node, path []string) error {
	ask := func(last string) ([]candidate, error) {
		text, err := c.run(path, nil, append(append([]string{"__complete"}, path...), last)...)
		list, ok := cobraCandidates(text)
		n.Failed = n.Failed || !ok
		return list, err
	}
	flags, err := ask("-")
	if err != nil || n.Failed {
		return err
	}
	n.addFlags(flags)
	names, err := ask("")
	if err != nil {
		return err
	}
	return c.descend(n, path, names, c.cobra)
}

func cobraCandidates(text string) (list []candidate, ok bool) {
	for line := range strings.SplitSeq(text, "\n") {
		if number, isEnd := strings.CutPrefix(strings.TrimSpace(line), ":"); isEnd {
			if _, err := strconv.Atoi(number); err == nil {
				return list, true
			}
		}
		word, description, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(word, "_activeHelp_") && len(list) < maxEntries {
			list = append(list, candidate{strings.TrimSpace(word), strings.TrimSpace(description)})
		}
	}
	return nil, false
}

// click asks through variables: the words stand in COMP_WORDS. It starts the tool
// without a word, so only one whose help says that it is made with click is asked.
func (c *completer) click(n *Node, path []string) error {
	variable := "_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(c.name)) + "_COMPLETE=zsh_complete"
	ask := func(last string) ([]candidate, error) {
		words := strings.Join(append(append([]string{c.name}, path...), last), " ")
		text, err := c.run(path, []string{variable, "COMP_WORDS=" + words, "COMP_CWORD=" + strconv.Itoa(len(path)+1)})
		return clickCandidates(text), err
	}
	flags, err := ask("-")
	if err != nil {
		return err
	}
	n.addFlags(flags)
	n.Failed = len(flags) == 0 // every command of click has --help
	names, err := ask("")
	if err != nil {
		return err
	}
	return c.descend(n, path, names, c.click)
}

func clickCandidates(text string) (list []candidate) {
	lines := strings.Split(text, "\n")
	for i := 0; i+2 < len(lines) && len(list) < maxEntries; i += 3 {
		if lines[i] != "plain" {
			if lines[i] != "file" && lines[i] != "dir" {
				return nil
			}
			continue
		}
		description := strings.TrimSpace(lines[i+2])
		if description == "_" {
			description = ""
		}
		list = append(list, candidate{strings.TrimSpace(lines[i+1]), description})
	}
	return list
}

type candidate struct{ word, description string }

func (n *Node) addFlags(list []candidate) {
	for i, f := range list {
		flag, _, rest := cutFlag(f.word)
		if flag == "" || rest != "" && rest != "=" {
			continue
		}
		if last := len(n.Help.Options) - 1; last >= 0 && len(flag) == 2 && f.description != "" && list[i-1].description == f.description && strings.HasPrefix(list[i-1].word, "--") {
			// The letter of the option before it.
			o := &n.Help.Options[last]
			o.Flags = append(o.Flags, flag)
			continue
		}
		o := Option{Flags: []string{flag}, Description: f.description}
		if rest == "=" {
			o.Arity = One
		} else if isHelp(o.Flags) {
			o.Arity = None
		}
		n.Help.Options = mergeOptions(n.Help.Options, []Option{o})
	}
}

func (c *completer) descend(n *Node, path []string, names []candidate, next func(*Node, []string) error) error {
	for _, k := range names {
		if !commandName(k.word) || k.description == "" || k.word == "help" || k.word == "completion" || n.find(k.word) >= 0 || contains(path, k.word) {
			continue
		}
		if len(path) >= maxLevels || c.runs >= maxRuns {
			n.Failed = true
			break
		}
		kid := Node{Command: Command{Name: k.word, Description: k.description}}
		if err := next(&kid, append(append([]string{}, path...), k.word)); err != nil {
			return err
		}
		n.Kids = append(n.Kids, kid)
	}
	return nil
}

// script runs what the help offers for making a completion script.
func (c *completer) script(n *Node, help Help) error {
	for _, k := range help.Commands {
		switch k.Name {
		case "completions", "completion", "generate-completion", "generate-completions", "gen-completions", "shell-completions":
			text, err := c.run([]string{k.Name}, nil, k.Name, "fish")
			if err == nil {
				n.take(fishScript(text, c.name, help.Framework == "clap"))
			}
			return err
		}
	}
	for _, o := range help.Options {
		for _, f := range o.Flags {
			words := []string{f, "fish"}
			switch f {
			case "--completions", "--completion", "--generate-completion", "--generate-completions", "--generate-shell-completion":
			case "--generate":
				words = []string{f, "complete-fish"}
			case "--print-completion":
				words = []string{f, "bash"}
			default:
				continue
			}
			text, err := c.run(words, nil, words...)
			if err != nil {
				return err
			}
			if f == "--print-completion" {
				n.take(shtabScript(text))
			} else {
				n.take(fishScript(text, c.name, help.Framework == "clap"))
			}
			return nil
		}
	}
	return nil
}

func (n *Node) take(found Node) {
	found.Help.Framework = n.Help.Framework
	*n = found
}

// ScriptDirs are the directories where completion scripts for fish lie.
func ScriptDirs(programs ...string) []string {
	var out []string
	for _, p := range append(programs, "/usr/bin/x", "/usr/local/bin/x") {
		share := filepath.Join(filepath.Dir(filepath.Dir(p)), "share", "fish")
		for _, dir := range [...]string{"vendor_completions.d", "completions"} {
			if at := filepath.Join(share, dir); p != "" && !contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

func installedScript(name string, dirs []string) (string, bool) {
	for _, dir := range dirs {
		if raw, err := regular.Read(filepath.Join(dir, name+".fish"), maxText); err == nil {
			return plainText(string(raw)), true
		}
	}
	return "", false
}

package generate

import (
	"context"
	"slices"
	"strings"
)

// Bounds of one generation.
const (
	maxLevels = 3
	maxRuns   = 300
)

// Ask runs the tool with words, confined, and returns what it printed; why says that
// there is no answer.
type Ask func(ctx context.Context, words ...string) (text, why string, err error)

// Walk asks a tool for the help of itself and of its subcommands.
func Walk(ctx context.Context, ask Ask, progress func(words []string)) (Node, error) {
	w := walker{ctx: ctx, ask: ask, progress: progress}
	root := Node{}
	if err := w.visit(&root, nil); err != nil {
		return root, err
	}
	return root, nil
}

type walker struct {
	ctx      context.Context
	ask      Ask
	progress func([]string)
	runs     int
}

func (w *walker) visit(n *Node, path []string) error {
	if w.runs++; w.runs > maxRuns || w.ctx.Err() != nil {
		n.Failed = true
		return nil
	}
	if w.progress != nil {
		w.progress(path)
	}
	text, why, err := w.ask(w.ctx, append(append([]string{}, path...), "--help")...)
	if err != nil {
		return err
	}
	if why != "" || strings.TrimSpace(text) == "" {
		n.Failed = true
		return nil
	}
	n.Help = Parse(text)
	if len(path) > 0 && len(n.Help.Options) == 0 && len(n.Help.Commands) == 0 {
		// Perhaps a complaint: nobody can tell it from a command without options.
		n.Failed = true
	}
	if len(path) > 0 && sameCommands(n.Help, path) {
		// The tool ignores the word and prints its own help again.
		n.Help = Help{}
		n.Failed = true
		return nil
	}
	for _, c := range n.Help.Commands {
		if c.Name == "help" || c.Name == "completion" {
			continue
		}
		kid := Node{Command: c}
		if len(path)+1 >= maxLevels+1 {
			n.Failed = true
			break
		}
		if err := w.visit(&kid, append(append([]string{}, path...), c.Name)); err != nil {
			return err
		}
		n.Kids = append(n.Kids, kid)
	}
	return nil
}

// sameCommands reports a help that lists the very word that led to it.
func sameCommands(h Help, path []string) bool {
	return slices.ContainsFunc(h.Commands, func(c Command) bool { return c.Name == path[len(path)-1] })
}

// VersionOf finds the first word of a text that looks like a version.
func VersionOf(text string) string {
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimPrefix(strings.Trim(word, ",;()\"'"), "v")
		digits, dots := 0, 0
		for _, r := range word {
			switch {
			case r >= '0' && r <= '9':
				digits++
			case r == '.':
				dots++
			}
		}
		if digits > 0 && dots > 0 && len(word) <= 40 && word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return ""
}

package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
)

// shellLines judges the commands of the shell that stand in the program text of an
// editor, a debugger or Tcl: "!rm x" of ed, "shell rm x" of gdb, "exec rm x". Where such a line could
// stand in another form, what runs is not known.
func (c *collector) shellLines(s *Step, n atip.Nested, text string, via []string) error {
	if n.Language != "ed" && n.Language != "gdb" && n.Language != "tcl" {
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		command, ok := escape(n.Language, line)
		switch {
		case ok && command != "":
			if err := c.shell(s, command, via); err != nil {
				return err
			}
		case !ok:
			s.RunsCode = policy.CodeOpaque
		}
	}
	return nil
}

// escape returns the command of a line, "" if it has none; ok is false if one cannot be told
// from text.
func escape(language, line string) (command string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	if language == "gdb" {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "!"):
			return line[1:], true
		case word != "" && strings.HasPrefix("shell", word) && len(word) > 1:
			return rest, true
		case strings.HasPrefix(word, "mak"), word == "pipe", word == "|", strings.HasPrefix(word, "att"), strings.HasPrefix(word, "tar"), word == "source", word == "so":
			return "", false
		}
		return "", true
	}
	if language == "tcl" {
		_, after, _ := strings.Cut(line, "exec ")
		return strings.TrimRight(after, "]}; "), true
	}
	before, after, found := strings.Cut(line, "!")
	if !found {
		return "", true
	}
	before = strings.TrimLeft(before, "0123456789,.$;+- \t")
	if before == "" || before == "r " || before == "w " || before == "e " || before == "r" || before == "w" || before == "e" {
		return after, true
	}
	// An exclamation mark in a text or a pattern.
	return "", false
}

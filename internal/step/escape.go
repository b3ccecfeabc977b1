package step

import "strings"

// Escape returns the command of a line, "" if it has none; ok is false if one cannot be told
// from text.
func Escape(language, line string) (command string, ok bool) {
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

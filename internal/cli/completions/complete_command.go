package completions

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims"
)

// ofCommand offers what the metadata of a wrapped tool has for the word at the cursor:
// sub-commands, values of enumerations, and options where the word begins as one. The
// document is the one of the name, or of the file that a scan found under it: the file itself is
// not read.
func ofCommand(at shims.Dirs, words []string, begun string) []candidate {
	if len(words) == 0 {
		return nil
	}
	name := filepath.Base(words[0])
	q := shims.Query{Effective: name, Invoked: name, Believed: true}
	if index, err := shims.ReadIndex(at); err == nil {
		q.Digest = strings.TrimPrefix(index.Tools[name].Hash, "sha256:")
	}
	found, err := shims.Lookup(q, at)
	if err != nil || found.Document == nil {
		return nil
	}
	return commandCandidates(found.Document.Commands(found.Provenance), words[1:], begun)
}

// commandCandidates walks from the tool along the words in front of the cursor.
func commandCandidates(commands []atip.Command, words []string, begun string) []candidate {
	named := func(path []string) *atip.Command {
		i := slices.IndexFunc(commands, func(c atip.Command) bool { return !c.Bare && slices.Equal(c.Path, path) })
		if i < 0 {
			return nil
		}
		return &commands[i]
	}
	here := named(nil)
	if here == nil {
		return nil
	}
	var path []string
	seen := 0 // plain words behind the path
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "--":
			return nil
		case strings.HasPrefix(word, "-") && word != "-":
			o := optionOf(here, word)
			if o == nil || strings.Contains(word, "=") || o.Arity <= 0 {
				continue
			}
			if i+o.Arity >= len(words) {
				return enumOf(*o) // the word at the cursor is its value
			}
			i += o.Arity
		default:
			if next := named(append(slices.Clone(path), word)); next != nil && seen == 0 {
				here, path = next, next.Path
			} else {
				seen++
			}
		}
	}
	var list []candidate
	if strings.HasPrefix(begun, "-") {
		for _, o := range slices.Concat(here.Options, here.Inherited) {
			for _, flag := range o.Flags {
				list = append(list, candidate{flag, o.Description})
			}
		}
		return list
	}
	if seen == 0 {
		for _, c := range commands {
			if n := len(c.Path); n == len(path)+1 && !c.Bare && slices.Equal(c.Path[:n-1], path) {
				list = append(list, candidate{c.Path[n-1], c.Description})
			}
		}
	}
	if n := len(here.Arguments); n > 0 && (seen < n || here.Arguments[n-1].Variadic) {
		list = append(list, enumOf(here.Arguments[min(seen, n-1)])...)
	}
	return list
}

func optionOf(c *atip.Command, word string) *atip.Declared {
	flag, _, _ := strings.Cut(word, "=")
	for _, list := range [][]atip.Declared{c.Options, c.Inherited} {
		for i := range list {
			if slices.Contains(list[i].Flags, flag) {
				return &list[i]
			}
		}
	}
	return nil
}

func enumOf(d atip.Declared) []candidate {
	var list []candidate
	for _, word := range d.Enum {
		list = append(list, candidate{word, d.Description})
	}
	return list
}

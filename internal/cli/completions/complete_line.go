package completions

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/shims"
)

// These are asked with the whole line in front of the cursor, the program first. offerPlace has a last
// line that says what the shell adds to the words; a shell that cannot asks for offerLine.
const (
	offerPlace = "place"
	offerLine  = "line"
)

// lineMark stands before the word at the cursor: PowerShell before 7.3 drops an empty argument.
const lineMark = "begun:"

// What a shell adds to our words, or completes where there are none.
const (
	addsFiles   = "files"
	addsDirs    = "dirs"
	addsTools   = "tools"    // programs of PATH, or a path
	addsCommand = "command " // the line from that word on is a command of its own
)

// ofLine walks along the line as the programs do: what can follow, and what the shell adds.
func ofLine(at shims.Dirs, words []string, begun string) (list []candidate, adds string) {
	if len(words) == 0 {
		return nil, ""
	}
	program := strings.TrimSuffix(filepath.Base(words[0]), ".exe")
	spec, place := cli.Root(), 0
	names := verbNames(cli.Specs(), program)
	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			if spec.Verb == "" && program == "atip" {
				return nil, ""
			}
			if !takesCommand(spec) {
				return nil, addsFiles
			}
			return wrapped(at, words, i+1, begun)
		case len(word) > 1 && word[0] == '-':
			f := taking(spec, word)
			if f == nil {
				continue
			}
			if i++; i < len(words) && words[i] == "=" {
				i++ // bash makes a word of it
			}
			if i >= len(words) {
				return ofOffer(offerOf(*f), words, begun)
			}
			if f.Name == "command" {
				return nil, addsFiles
			}
		case spec.Verb == "" && slices.Contains(names, word):
			spec, _ = cli.SpecOf(word)
		default:
			switch offerAt(spec, place).kind {
			case offerVerbOrIt, offerCommand:
				if program == "atip" && spec.Verb == "" {
					return nil, ""
				}
				return wrapped(at, words, i, begun)
			}
			place++
		}
	}
	if strings.HasPrefix(begun, "-") {
		return ofFlags(spec, program, words, begun)
	}
	o := offerAt(spec, place)
	if o.kind != offerVerbOrIt {
		return ofOffer(o, words, begun)
	}
	if list = verbCandidates(names); program == "atip" {
		return list, ""
	}
	return list, addsTools
}

// wrapped completes a command that begins at a word of the line: by its metadata, or else as the shell would.
func wrapped(at shims.Dirs, words []string, from int, begun string) ([]candidate, string) {
	if from >= len(words) {
		return nil, addsTools
	}
	return ofCommand(at, words[from:], begun), addsCommand + strconv.Itoa(from)
}

// ofFlags completes a word that begins as a flag, or the value behind it in the same word.
func ofFlags(s cli.Spec, program string, words []string, begun string) (list []candidate, adds string) {
	if flag, value, ok := strings.Cut(begun, "="); ok {
		f := taking(s, flag)
		if f == nil {
			return nil, ""
		}
		list, adds = ofOffer(offerOf(*f), words, value)
		for i := range list {
			list[i].word = flag + "=" + list[i].word
		}
		return list, adds
	}
	for _, f := range s.Flags {
		if s.Verb == "" && program == "atip" && f.Name != "help" && f.Name != "version" {
			continue
		}
		for _, name := range spellings(f) {
			list = append(list, candidate{name, f.Help})
		}
	}
	return list, ""
}

// taking is the flag of a word whose value is the next word, nil if it has none.
func taking(s cli.Spec, word string) *cli.Flag {
	if strings.HasPrefix(word, "--") {
		i := slices.IndexFunc(s.Flags, func(f cli.Flag) bool { return "--"+f.Name == word })
		if i < 0 || !Valued(s.Flags[i]) {
			return nil
		}
		return &s.Flags[i]
	}
	for n, letter := range []byte(word[1:]) {
		i := slices.IndexFunc(s.Flags, func(f cli.Flag) bool { return f.Short == letter })
		if i < 0 || !Valued(s.Flags[i]) {
			continue
		}
		if n < len(word)-2 {
			return nil // the rest of the word is its value
		}
		return &s.Flags[i]
	}
	return nil
}

// ofOffer is what completes one word, and what the shell adds.
func ofOffer(o offer, words []string, begun string) (list []candidate, adds string) {
	switch o.kind {
	case offerAsked:
		if o.what == cli.OfferTools || o.what == cli.OfferParameters {
			adds = addsFiles
		}
		return candidates(o.what, words[1:], begun), adds
	case offerWords:
		for _, word := range o.words {
			list = append(list, candidate{word, ""})
		}
	case offerVerb:
		list = verbCandidates(verbNames(cli.Specs(), "atip-exec"))
	case offerFiles:
		return nil, addsFiles
	case offerDirs:
		return nil, addsDirs
	case offerTools, offerCommand:
		return nil, addsTools
	}
	return list, ""
}

func verbCandidates(names []string) (list []candidate) {
	for _, name := range names {
		s, _ := cli.SpecOf(name)
		list = append(list, candidate{name, s.Summary})
	}
	return list
}

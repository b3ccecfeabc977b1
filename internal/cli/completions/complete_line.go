package completions

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/shims"
)

// offerLine is asked with the whole line in front of the cursor, the program first, by a shell
// whose script does not know our verbs and flags.
const offerLine = "line"

// lineMark stands before the word at the cursor: PowerShell before 7.3 drops an empty argument.
const lineMark = "begun:"

// powershellCompletion is the script for PowerShell. It asks for the whole line; where there is
// no answer PowerShell offers files.
const powershellCompletion = "# Completion of atip-exec and atip for PowerShell, written by `atip completion powershell`.\n" +
	`Register-ArgumentCompleter -Native -CommandName 'atip-exec', 'atip' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    & atip __complete line "` + lineMark + `$wordToComplete" -- $words 2>$null | ForEach-Object {
        $word, $text = $_ -split "` + "`t" + `", 2
        if (-not $text) { $text = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $text)
    }
}
`

// ofLine walks along the line as the programs do, and offers what the script of another shell
// would.
func ofLine(at shims.Dirs, words []string, begun string) []candidate {
	if len(words) == 0 {
		return nil
	}
	program := strings.TrimSuffix(filepath.Base(words[0]), ".exe")
	spec, place := cli.Root(), 0
	names := verbNames(cli.Specs(), program)
	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			if spec.Verb == "" && program == "atip" || !takesCommand(spec) {
				return nil
			}
			return ofCommand(at, words[i+1:], begun)
		case len(word) > 1 && word[0] == '-':
			f := taking(spec, word)
			if f == nil {
				continue
			}
			if i++; i >= len(words) {
				return ofOffer(at, offerOf(*f), words, begun)
			}
			if f.Name == "command" {
				return nil
			}
		case spec.Verb == "" && slices.Contains(names, word):
			spec, _ = cli.SpecOf(word)
		default:
			switch offerAt(spec, place).kind {
			case offerVerbOrIt, offerCommand:
				if program == "atip" && spec.Verb == "" {
					return nil
				}
				return ofCommand(at, words[i:], begun)
			}
			place++
		}
	}
	if strings.HasPrefix(begun, "-") {
		var list []candidate
		for _, f := range spec.Flags {
			for _, name := range spellings(f) {
				list = append(list, candidate{name, f.Help})
			}
		}
		return list
	}
	if o := offerAt(spec, place); o.kind != offerVerbOrIt {
		return ofOffer(at, o, words, begun)
	}
	return ofOffer(at, offer{kind: offerVerb, words: names}, words, begun)
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

// ofOffer is what completes one word, as far as the shell does not do it better.
func ofOffer(at shims.Dirs, o offer, words []string, begun string) []candidate {
	var list []candidate
	switch o.kind {
	case offerAsked:
		return candidates(o.what, words[1:], begun)
	case offerWords:
		for _, word := range o.words {
			list = append(list, candidate{word, ""})
		}
	case offerVerb:
		if o.words == nil {
			o.words = verbNames(cli.Specs(), "atip-exec")
		}
		for _, name := range o.words {
			s, _ := cli.SpecOf(name)
			list = append(list, candidate{name, s.Summary})
		}
	case offerTools, offerCommand:
		return candidates(cli.OfferTools, nil, begun)
	}
	return list
}

package generate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outline is a node and all below it as lines.
func outline(n Node) string {
	var b strings.Builder
	var walk func(n Node, indent string)
	walk = func(n Node, indent string) {
		b.WriteString(indent + n.Name)
		if n.Failed {
			b.WriteString(" failed")
		}
		b.WriteString(strings.TrimPrefix(shape(Help{Options: n.Help.Options}), ": ") + "\n")
		for _, k := range n.Kids {
			walk(k, indent+" ")
		}
	}
	walk(n, "")
	return b.String()
}

// answers is a tool that knows what to say to words and variables.
func answers(texts map[string]string, asked *[]string) AskWith {
	return func(_ context.Context, env []string, words ...string) (string, string, error) {
		key := strings.Join(append(append([]string{}, env...), words...), " ")
		*asked = append(*asked, key)
		text, ok := texts[key]
		if !ok {
			return "", "answered with status 1", nil
		}
		return text, "", nil
	}
}

const fishOfClap = `function __fish_build_needs_command
end
complete -c build -n "__fish_build_needs_command" -s o -l output -d 'Where to' -r -F
complete -c build -n "__fish_build_needs_command" -s q -l quiet -d 'Less'
complete -c build -n "__fish_build_needs_command" -f -a "remove" -d 'Remove it'
complete -c build -n "__fish_build_needs_command" -f -a "help" -d 'Help'
complete -c build -n "__fish_build_using_subcommand remove" -l mode -d 'How' -r -f -a "fast\t'quick'
slow\t''"
complete -c build -n "__fish_build_using_subcommand remove" -l force -d 'Even so'
complete -c build -n "__fish_build_using_subcommand remove; and not __fish_seen_subcommand_from all" -f -a "all" -d 'Every one'
complete -c build -n "__fish_build_using_subcommand remove; and __fish_seen_subcommand_from all" -l deep -r
complete -c build -n "__fish_custom" -l elsewhere -r
complete -c other -l not-ours
complete -c build -n "__fish_build_needs_command" -a "(__values)" -d 'Values'
complete -c build -n "unclosed
`

const bashOfShtab = `_shtab_arg_subparsers=('make-it' 'purge')
_shtab_arg_option_strings=('-h' '--help' '-f' '--file')
_shtab_arg_make_it_option_strings=('-h' '--deep' '--fmt')
_shtab_arg_purge_option_strings=('-h')
_shtab_arg_make_it___fmt_choices=('json' 'yaml')
_shtab_arg__h_nargs=0
_shtab_arg___help_nargs=0
_shtab_arg_make_it__h_nargs=0
_shtab_arg_make_it___deep_nargs=0
`

func TestCompletion(t *testing.T) {
	scripts := t.TempDir()
	if err := os.WriteFile(filepath.Join(scripts, "plain.fish"), []byte("complete -c plain -s v -l verbose -d 'More'\ncomplete -c plain -l help\ncomplete -xc plain -l size -a 's m l'\ncomplete -fc plain -n __fish_use_subcommand -a wipe -d 'Wipes it'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const click = "_MY_CLI_COMPLETE=zsh_complete COMP_WORDS=my-cli"
	for _, c := range []struct {
		name, tool, help string
		texts            map[string]string
		want             string
		most             int // how often the tool is started
	}{
		{"cobra", "cob", "Usage:\n  cob [command]\n\nAvailable Commands:\n  x   y\n\nFlags:\n  -h, --help   help\n", map[string]string{
			"__complete -":             "--help\thelp for cob\n-h\thelp for cob\n--config\tfile\n:4\nCompletion ended with directive: ShellCompDirectiveNoFileComp\n",
			"__complete ":              "remove\tRemove it\nlist\tList\nhelp\tHelp\nvalue\n_activeHelp_ hint\n:4\n",
			"__complete remove -":      "--all\tevery\n--out=\twhere\n:4\n",
			"__complete remove ":       "alpha\nbeta\n:4\n",
			"__complete list -":        "no answer of cobra\n",
			"__complete list anything": "",
		}, "--help|-h --config?\n remove--all? --out=\n list failed\n", 5},
		{"click", "my-cli", "Usage: my-cli\n\nOptions:\n  --help  Show this message and exit.\n", map[string]string{
			click + " - COMP_CWORD=1":         "plain\n--help\nShow this message and exit.\n",
			click + "  COMP_CWORD=1":          "plain\ndrop-db\nDrops it\nplain\nvalue\n_\nfile\nx\n_\n",
			click + " drop-db - COMP_CWORD=2": "plain\n--force\nYes.\nplain\n--name\n_\n",
			click + " drop-db  COMP_CWORD=2":  "",
		}, "--help\n drop-db--force? --name?\n", 4},
		{"clap", "build", "Usage: build\n\nCommands:\n  completions  Print them\n\nOptions:\n  -h, --help  Print help\n", map[string]string{"completions fish": fishOfClap},
			"-o|--output= -q|--quiet\n remove--mode={fast,slow} --force\n  all--deep=\n", 1},
		{"clap by an option", "build", "Usage: build\n\nOptions:\n      --generate <KIND>  scripts\n  -h, --help  Print help\n", map[string]string{"--generate complete-fish": fishOfClap},
			"-o|--output= -q|--quiet\n remove--mode={fast,slow} --force\n  all--deep=\n", 1},
		{"argparse", "arg", "usage: arg\n\noptions:\n  -h, --help  show this help message and exit\n  --print-completion {bash,zsh}  print it\n", map[string]string{"--print-completion bash": bashOfShtab},
			"-h --help -f? --file?\n make-it-h --deep --fmt?{json,yaml}\n purge-h?\n", 1},
		{"installed", "plain", "Usage: plain\n  -v  x\n      --help     display this help and exit\n", nil, "-v|--verbose? --help --size={s,m,l}\n wipe\n", 0},
		{"nothing known", "plain", "", nil, "-v|--verbose? --help --size={s,m,l}\n wipe\n", 1},
		{"nothing at all", "nobody", "", nil, " failed\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			root, err := Completion(context.Background(), answers(c.texts, &asked), c.tool, Parse(c.help), []string{scripts}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := outline(root); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
			if len(asked) > c.most {
				t.Errorf("asked %q", asked)
			}
			harmlessNowhere(t, root)
		})
	}
}

// A tool whose completions never end is asked a bounded number of times.
func TestCompletionEnds(t *testing.T) {
	runs := 0
	endless := func(_ context.Context, _ []string, words ...string) (string, string, error) {
		runs++
		if words[len(words)-1] == "-" {
			return "--x\ty\n:4\n", "", nil
		}
		return strings.Repeat("a", runs) + "\tmore\n" + strings.Repeat("b", runs) + "\tmore\n:0\n", "", nil
	}
	root, err := Completion(context.Background(), endless, "t", Help{Framework: "cobra"}, nil, nil)
	if err != nil || runs > maxRuns || !root.anyFailed() {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// FuzzScripts: no script makes the readers fail, and what they write claims nothing
// harmless.
func FuzzScripts(f *testing.F) {
	f.Add(fishOfClap, "build")
	f.Add(bashOfShtab, "arg")
	f.Add("complete -c\ncomplete -ct -sx -l\ncomplete --command=t --short-option=a -xa 'b c'\n_shtab_a_option_strings=('-x'\n", "t")
	f.Fuzz(func(t *testing.T, text, name string) {
		text = plainText(text)
		harmlessNowhere(t, fishScript(text, name, true))
		harmlessNowhere(t, shtabScript(text))
		list, _ := cobraCandidates(text)
		var n Node
		n.addFlags(append(list, clickCandidates(text)...))
		harmlessNowhere(t, n)
	})
}

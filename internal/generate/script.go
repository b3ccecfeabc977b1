package generate

import "strings"

// fishScript reads the "complete" lines of a completion script for fish. A condition
// says which command a line is about; one that is not understood leaves its line out.
// In the scripts of clap an option that is not said to need a value takes none.
func fishScript(text, name string, clap bool) Node {
	var root Node
	before, lines := "", 0
	for line := range strings.SplitSeq(text, "\n") {
		// A quoted list of values goes over several lines.
		line = strings.TrimSpace(before + line)
		words, ok := scriptWords(line)
		if !ok && strings.HasPrefix(line, "complete ") && lines < 200 {
			before = line + "\n"
			lines++
			continue
		}
		before, lines = "", 0
		if !ok || len(words) < 3 || words[0] != "complete" {
			continue
		}
		l := readFishLine(words)
		path, known := fishPath(l.condition)
		if l.command != name || !known || len(path) > maxLevels {
			continue
		}
		n := &root
		for _, w := range path {
			n = n.kid(w)
		}
		switch {
		case len(l.flags) > 0:
			o := Option{Flags: l.flags, Description: l.description}
			switch {
			case l.required:
				o.Arity, o.Enum = One, l.values()
			case clap || isHelp(l.flags):
				o.Arity = None
			}
			if len(n.Help.Options) < maxEntries {
				n.Help.Options = mergeOptions(n.Help.Options, []Option{o})
			}
		case len(path) < maxLevels:
			for _, w := range strings.Fields(l.arguments) {
				// Words without a description are values.
				if commandName(w) && l.description != "" && !strings.Contains(l.arguments, "(") && len(n.Kids) < maxEntries {
					n.kid(w).Description = l.description
				}
			}
		}
	}
	root.drop("help")
	return root
}

func (n *Node) drop(name string) {
	kept := n.Kids[:0]
	for _, k := range n.Kids {
		if k.Name != name {
			kept = append(kept, k)
		}
	}
	n.Kids = kept
}

type fishLine struct {
	command, condition, arguments, description string
	flags                                      []string
	required                                   bool
}

// values are the words that a line offers for the value of an option.
func (l *fishLine) values() []string {
	if strings.ContainsAny(l.arguments, "($") {
		return nil
	}
	arguments := strings.ReplaceAll(l.arguments, `\t`, "\t")
	if !strings.Contains(arguments, "\t") {
		return words(strings.Join(strings.Fields(arguments), " "), " ")
	}
	var out []string
	for v := range strings.SplitSeq(arguments, "\n") {
		word, _, _ := strings.Cut(v, "\t")
		if word = strings.TrimSpace(word); word != "" && len(word) <= 64 {
			out = append(out, word)
		}
	}
	return out
}

func readFishLine(words []string) (l fishLine) {
	for i := 1; i < len(words); i++ {
		w, value, attached := strings.Cut(words[i], "=")
		next := func() string {
			if attached {
				return value
			}
			if i+1 < len(words) {
				i++
				return words[i]
			}
			return ""
		}
		letters := ""
		switch w {
		case "--command":
			l.command = next()
			continue
		case "--condition":
			l.condition = next()
			continue
		case "--description":
			l.description = next()
			continue
		case "--arguments":
			l.arguments = next()
			continue
		case "--short-option":
			l.flag("-", next())
			continue
		case "--long-option":
			l.flag("--", next())
			continue
		case "--old-option":
			l.flag("-", next())
			continue
		case "--require-parameter", "--exclusive":
			l.required = true
			continue
		}
		if len(w) < 2 || w[0] != '-' || w[1] == '-' {
			continue
		}
		letters, attached = words[i][1:], false
	cluster:
		for j := range len(letters) {
			take := func() string {
				if j+1 < len(letters) {
					return letters[j+1:]
				}
				return next()
			}
			switch letters[j] {
			case 'r', 'x':
				l.required = true
			case 'c':
				l.command = take()
				break cluster
			case 'n':
				l.condition = take()
				break cluster
			case 'd':
				l.description = take()
				break cluster
			case 'a':
				l.arguments = take()
				break cluster
			case 's':
				l.flag("-", take())
				break cluster
			case 'l':
				l.flag("--", take())
				break cluster
			case 'o':
				l.flag("-", take())
				break cluster
			case 'w', 'p':
				take()
				break cluster
			}
		}
	}
	return l
}

func (l *fishLine) flag(dashes, name string) {
	if flag, _, rest := cutFlag(dashes + name); flag != "" && rest == "" {
		l.flags = append(l.flags, flag)
	}
}

// fishPath reads which command a condition speaks of.
func fishPath(condition string) (path []string, known bool) {
	if condition == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(condition, "; and ", ";"), ";") {
		words := strings.Fields(part)
		if len(words) > 0 && words[0] == "and" {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		switch f := words[0]; {
		case f == "not" && len(words) > 1 && (strings.Contains(words[1], "seen_subcommand_from") || strings.HasSuffix(words[1], "_using_subcommand")):
		case f == "__fish_use_subcommand", f == "__fish_is_first_token", f == "__fish_no_arguments", strings.HasSuffix(f, "_needs_command"):
			path = nil
		case f == "__fish_seen_subcommand_from", strings.HasSuffix(f, "_using_subcommand"), strings.HasSuffix(f, "_using_command"):
			if len(words) != 2 || !commandName(words[1]) {
				return nil, false // several commands, or options before them
			}
			path = append(path, words[1])
		default:
			return nil, false
		}
	}
	return path, true
}

// scriptWords splits a line of a script into words; ok is false for a line that does
// not end within itself.
func scriptWords(line string) (out []string, ok bool) {
	var word strings.Builder
	open, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && i+1 < len(line) && (quote == 0 || line[i+1] == quote || line[i+1] == '\\'):
			i++
			switch e := line[i]; {
			case quote == 0 && e == 'n':
				word.WriteByte('\n')
			case quote == 0 && e == 't':
				word.WriteByte('\t')
			default:
				word.WriteByte(e)
			}
			open = true
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case c == ' ' || c == '\t':
			if open {
				out = append(out, word.String())
				word.Reset()
				open = false
			}
		case c == '#' && !open:
			return out, true
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out, quote == 0
}

// shtabScript reads the tables of a completion script for bash as shtab writes them for
// programs of argparse: _shtab_PROG_SUB_option_strings=('-h' '--help') and the like.
func shtabScript(text string) Node {
	tables := map[string][]string{}
	prog := ""
	for line := range strings.SplitSeq(text, "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || !strings.HasPrefix(name, "_shtab_") || len(tables) > maxEntries {
			continue
		}
		value = strings.TrimSuffix(strings.TrimPrefix(value, "("), ")")
		list, ok := scriptWords(value)
		if !ok {
			continue
		}
		tables[name] = list
		if at, ok := strings.CutSuffix(name, "_option_strings"); ok && (prog == "" || len(at) < len(prog)) {
			prog = at
		}
	}
	var root Node
	if prog != "" {
		root.fromTables(tables, prog, 0)
	}
	return root
}

func (n *Node) fromTables(tables map[string][]string, at string, depth int) {
	for _, f := range tables[at+"_option_strings"] {
		flag, _, rest := cutFlag(f)
		if flag == "" || rest != "" {
			continue
		}
		o := Option{Flags: []string{flag}}
		key := at + "_" + strings.ReplaceAll(flag, "-", "_")
		if args := tables[key+"_nargs"]; len(args) == 1 && args[0] == "0" {
			o.Arity = None
		} else if choices := tables[key+"_choices"]; len(choices) > 0 {
			o.Enum = choices
		}
		n.Help.Options = append(n.Help.Options, o)
	}
	for _, sub := range tables[at+"_subparsers"] {
		if !commandName(sub) {
			continue
		}
		if depth >= maxLevels {
			n.Failed = true
			return
		}
		n.kid(sub).fromTables(tables, at+"_"+strings.NewReplacer("-", "_", ".", "_").Replace(sub), depth+1)
	}
}

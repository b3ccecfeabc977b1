package tools

import (
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/step"
)

// TestFacesAgree holds that every verb and flag of the one table is in each face that is
// made of it: parser, help, manual pages, --agent, the skill of our own and the schemas of our MCP
// tools. Completion reads the table itself.
func TestFacesAgree(t *testing.T) {
	pages := map[string]string{"atip-exec": manPage("atip-exec"), "atip": manPage("atip")}
	skill := selfSkill()
	commands, _ := cli.AgentDocument()["commands"].(map[string]any)
	for _, s := range cli.Specs() {
		if s.Verb != "" && !step.OwnVerb(s.Verb) {
			t.Errorf("%s is no verb of the command line", s.Verb)
		}
		if s.Verb != "" && s.Program == "atip" && verbs(s.Verb) == nil {
			t.Errorf("atip %s does nothing", s.Verb)
		}
		help := cli.Help(s)
		command, _ := commands[s.Verb].(map[string]any)
		options, _ := command["options"].([]any)
		if len(options) != len(s.Flags) {
			t.Errorf("--agent: %q has %d options, and the table %d flags", s.Verb, len(options), len(s.Flags))
		}
		for face, text := range map[string]string{"man": pages[s.Program], "skill": skill} {
			if s.Verb != "" && !strings.Contains(text, s.Verb) && !strings.Contains(text, strings.ReplaceAll(s.Verb, "-", `\-`)) {
				t.Errorf("%s: the verb %s is missing", face, s.Verb)
			}
		}
		_, section, _ := strings.Cut(pages[s.Program], ".SS "+roff(s.Program+" "+s.Verb)+"\n")
		if s.Verb == "" {
			_, section, _ = strings.Cut(pages[s.Program], ".SH FLAGS\n")
		}
		section, _, _ = strings.Cut(section, "\n.SS ")
		for _, f := range s.Flags {
			if !strings.Contains(help, "--"+f.Name) {
				t.Errorf("help: %s --%s is missing", s.Verb, f.Name)
			}
			if !strings.Contains(section, `\-\-`+roff(f.Name)+`\fR`) {
				t.Errorf("man: %s --%s is missing", s.Verb, f.Name)
			}
			if s.Verb == "" && !strings.Contains(skill, "`--"+f.Name+"`") {
				t.Errorf("skill: --%s is missing", f.Name)
			}
		}
	}
}

// TestSchemasAgree holds the arguments of our MCP tools against the flags that they stand for.
func TestSchemasAgree(t *testing.T) {
	tools := map[string]map[string]any{}
	for _, tool := range ownTools(nil, false) {
		tools[tool.Name] = tool.Schema.(property)["properties"].(property)
	}
	same := func(tool, argument, verb, flag string) {
		t.Helper()
		spec, _ := cli.SpecOf(verb)
		i := slices.IndexFunc(spec.Flags, func(f cli.Flag) bool { return f.Name == flag })
		p, _ := tools[tool][argument].(property)
		if i < 0 || p == nil {
			t.Errorf("%s: %s is there: %v; the flag --%s of %q: %v", tool, argument, p != nil, flag, verb, i >= 0)
			return
		}
		f := spec.Flags[i]
		if text, _ := p["description"].(string); text == "" || !strings.HasPrefix(f.Help, text) || f.Kind == cli.Bool && p["type"] != "boolean" {
			t.Errorf("%s: %s says %q, and --%s %q", tool, argument, text, flag, f.Help)
		}
	}
	of := flagsOfCalls()
	for argument, flag := range of {
		same("exec", argument, "", flag)
	}
	same("explain", "cwd", "explain", "directory")
	// No other argument of exec is the name of a flag: such a one would be described twice.
	root := cli.Root()
	for argument := range tools["exec"] {
		if of[argument] != "" || argument == "stdin" || argument == "command" {
			continue // a text to read and a string to judge, where the flags name a mode and a string
		}
		if slices.ContainsFunc(root.Flags, func(f cli.Flag) bool { return strings.ReplaceAll(f.Name, "-", "_") == argument }) {
			t.Errorf("exec: %s is not described by the table", argument)
		}
	}
	spec, _ := cli.SpecOf("prime")
	flags := 0
	for _, f := range spec.Flags {
		if slices.ContainsFunc(root.Flags, func(o cli.Flag) bool { return o.Name == f.Name }) {
			continue
		}
		flags++
		words := strings.Split(f.Name, "-")
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		same("prime", strings.Join(words, ""), "prime", f.Name)
	}
	if flags != len(tools["prime"]) {
		t.Errorf("prime has %d arguments and %d flags", len(tools["prime"]), flags)
	}
}

// TestFormatPages: each page of section 5 has the text of its document and requests of man(7) only.
func TestFormatPages(t *testing.T) {
	for _, p := range formatPages() {
		text, err := manFormat(p)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(text) < 500 || !strings.Contains(text, ".SH DESCRIPTION\n") {
			t.Errorf("%s: %d bytes, or no description", p.name, len(text))
		}
		for i, line := range strings.Split(text, "\n") {
			request, _, _ := strings.Cut(line, " ")
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !slices.Contains([]string{".TH", ".SH", ".SS", ".PP", ".TP", ".IP", ".RS", ".RE", ".nf", ".fi", ".br"}, request) {
				t.Errorf("%s:%d: %q is a request by accident", p.name, i+1, line)
			}
			if strings.Contains(line, "](") || strings.Contains(line, " **") || strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d: %q is still Markdown", p.name, i+1, line)
			}
		}
	}
}

// TestMarkdown holds each form that the documents use.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"A `b-c` and **d** of [e](f.md#g).":         ".PP\nA \\fBb\\-c\\fR and \\fBd\\fR of e.\n",
		"[x](https://a.example/b)":                  ".PP\nx <https://a.example/b>\n",
		"'quoted'\n.dot \\ slash":                   ".PP\n\\(aqquoted\\(aq\n\\&.dot \\e slash\n",
		"- one\n  more\n- two":                      ".IP \\(bu 4\none\nmore\n.IP \\(bu 4\ntwo\n",
		"10. ten":                                   ".IP 10. 4\nten\n",
		"| h | i |\n|---|---|\n| `a\\|b` | c | d |": ".TP\n\\fBa|b\\fR\nc\n.br\nd\n",
		"```json\n.a\n# b\n```":                     ".PP\n.RS 4\n.nf\n\\&.a\n# b\n.fi\n.RE\n",
		"# T\nx\n## S `t`\n### u":                   ".SH DESCRIPTION\n.PP\nx\n.SH S T\n.SS u\n",
	} {
		r := roffWriter{level: 1}
		if r.markdown(text); r.out.String() != want {
			t.Errorf("%q: %q, want %q", text, r.out.String(), want)
		}
	}
	if text, level := section("# a\n## b\nx\n```\n## c\n```\ny\n### d\nz\n## c\nw", "b"); level != 2 || text != "x\n```\n## c\n```\ny\n### d\nz" {
		t.Errorf("%d %q", level, text)
	}
	if _, level := section("# a", "b"); level != 0 {
		t.Error("a heading that is not there was found")
	}
}

// TestVerbAt: a word that is no verb ends the search, so that a verb spelt wrong does not make a later
// word the verb, as `atip polcy deny ID` would deny.
func TestVerbAt(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"atip audit verify": 1, "atip -q audit": 2, "atip --policy FILE approve ID": 3, "atip --policy=FILE approve ID": 2, "atip polcy deny ID": -1, "atip -q polcy deny ID": -1,
		"atip polcy explain deny": -1, "atip explain audit": -1, "atip": -1, "atip -x": -1,
	} {
		if got := verbAt(strings.Fields(line)); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}

package tools

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/effects"
)

// TestFacesAgree holds that every verb and flag of the one table is in each face that is
// made of it: parser, help, manual pages, completion, --agent and the skill of our own.
func TestFacesAgree(t *testing.T) {
	bash, zsh, fish := bashCompletion(cli.Specs()), zshCompletion(cli.Specs()), fishCompletion(cli.Specs())
	pages := map[string]string{"atip-exec": manPage("atip-exec"), "atip": manPage("atip")}
	skill := selfSkill()
	commands, _ := cli.AgentDocument()["commands"].(map[string]any)
	for _, s := range cli.Specs() {
		if s.Verb != "" && !effects.OwnVerb(s.Verb) {
			t.Errorf("%s is no verb of the command line", s.Verb)
		}
		if s.Verb != "" && s.Program == "atip" && verbs(s.Verb) == nil {
			t.Errorf("atip %s does nothing", s.Verb)
		}
		for _, a := range s.Args {
			for face, text := range map[string][2]string{"bash": {bash, "'ask " + string(a.Offer) + "'"}, "zsh": {zsh, "__atip_ask " + string(a.Offer)}, "fish": {fish, "(__atip_ask " + string(a.Offer) + ")"}} {
				if a.Offer != "" && !strings.Contains(text[0], text[1]) {
					t.Errorf("%s: what completes %s of %s is not asked", face, a.Name, s.Verb)
				}
			}
		}
		help := cli.Help(s)
		command, _ := commands[s.Verb].(map[string]any)
		options, _ := command["options"].([]any)
		if len(options) != len(s.Flags) {
			t.Errorf("--agent: %q has %d options, and the table %d flags", s.Verb, len(options), len(s.Flags))
		}
		for face, text := range map[string]string{"bash": bash, "zsh": zsh, "fish": fish, "man": pages[s.Program], "skill": skill} {
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
			for face, text := range map[string]string{"help": help, "bash": bash, "zsh": zsh} {
				if !strings.Contains(text, "--"+f.Name) {
					t.Errorf("%s: %s --%s is missing", face, s.Verb, f.Name)
				}
			}
			if !strings.Contains(fish, " -l "+f.Name+" ") {
				t.Errorf("fish: %s --%s is missing", s.Verb, f.Name)
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

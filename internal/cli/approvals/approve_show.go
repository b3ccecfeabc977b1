package approvals

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/quote"
)

// render writes out everything that a grant of the request would bind. It reads the
// bound object and not the request's own words about itself: only that is signed.
func render(r approve.Request, times int) string {
	var b strings.Builder
	line := func(name, value string) {
		fmt.Fprintf(&b, "%-10s %s\n", name, answer.Visible(value))
	}
	words := answer.Texts(r.Bound["argv"])
	line("Request", r.ID+", "+time.Since(r.Created).Round(time.Second).String()+" ago")
	line("Asked by", fmt.Sprintf("agent %s, session %q, process %d, user %v on %s", answer.Text(r.Bound["agent"]), answer.Text(r.Bound["session"]), r.Requester.PID, r.Bound["uid"], answer.Text(r.Bound["host"])))
	line("Command", quote.Words(words))
	if plain := strings.Join(words, " "); !ascii(plain) {
		line("in ASCII", strings.Trim(fmt.Sprintf("%+q", plain), `"`))
	}
	if outer := answer.Text(r.Bound["inside"]); outer != "" {
		line("Inside of", outer+", which may run any code")
	}
	line("In", answer.Text(r.Bound["cwd"]))
	line("Why", strings.Join(answer.Texts(r.Bound["rules"]), ", "))
	steps, _ := r.Bound["steps"].([]any)
	for i, s := range steps {
		step, _ := s.(map[string]any)
		fmt.Fprintf(&b, "Step %d\n", i+1)
		if len(steps) > 1 || strings.Join(answer.Texts(step["argv"]), "\x00") != strings.Join(words, "\x00") {
			line("  argv", quote.Words(answer.Texts(step["argv"])))
		}
		if via := answer.Texts(step["via"]); len(via) > 0 {
			line("  inside", strings.Join(via, ", "))
		}
		line("  program", answer.Text(step["path"])+"  sha256:"+answer.Text(step["sha256"])+"  "+answer.Text(step["trust"]))
		line("  may", strings.Join(harms(step), ", "))
		for _, resource := range answer.Texts(step["resources"]) {
			line("  on", resource)
		}
	}
	if refs, _ := r.Bound["refs"].(map[string]any); len(refs) > 0 {
		for _, name := range slices.Sorted(maps.Keys(refs)) {
			line("Sends", name+"  "+sent(answer.Text(refs[name]), r.Display.Subjects))
		}
	}
	for _, command := range answer.Texts(r.Bound["refsChangedBy"]) {
		line("Or", "what "+command+" makes of it, which runs in the same command: this approval does not fix the commit")
	}
	if hooks := answer.Texts(r.Bound["hooksOff"]); len(hooks) > 0 {
		line("Skips", "the repository's hooks "+strings.Join(hooks, ", "))
	}
	if files, _ := r.Bound["files"].(map[string]any); len(files) > 0 {
		for _, path := range slices.Sorted(maps.Keys(files)) {
			line("Reads", path+"  "+answer.Text(files[path]))
		}
	}
	line("Stdin", answer.Text(r.Bound["stdin"]))
	if env, _ := r.Bound["env"].(map[string]any); len(env) > 0 {
		line("Variables", strings.Join(slices.Sorted(maps.Keys(env)), " "))
	}
	line("Digest", r.Digest)
	if scope, ok := approve.ScopeOf(r.Bound); ok && times == 0 {
		line("Session", scope.Session+" of agent "+scope.Agent+" in "+scope.Workspace)
		for _, s := range scope.Steps {
			line("  any", strings.Join(append([]string{s.Tool}, s.Command...), " ")+"  sha256:"+s.SHA256)
			line("  may", strings.Join(s.Effects, ", "))
			line("  hosts", strings.Join(s.Hosts, " "))
			line("  paths", strings.Join(s.Paths, " "))
		}
		line("Times", "as often as it likes for eight hours, with other arguments too")
	} else if times > 1 {
		line("Times", fmt.Sprintf("up to %d runs within an hour", times))
	} else {
		line("Times", "one run within ten minutes")
	}
	return b.String()
}

// sent shows an object by its short id and, where it is known, the first line of its message.
func sent(id string, subjects map[string]string) string {
	short := id
	if len(id) == 40 || len(id) == 64 {
		short = id[:12]
	}
	if subject := subjects[id]; subject != "" {
		short += fmt.Sprintf("  %q", subject)
	}
	return short
}

// harms lists the dangers of a step, the certain ones first.
func harms(step map[string]any) []string {
	effects, _ := step["effects"].(map[string]any)
	var certain, perhaps []string
	for _, name := range answer.Texts(step["danger"]) {
		if answer.Text(effects[name]) == "yes" {
			certain = append(certain, name)
		} else {
			perhaps = append(perhaps, name+"?")
		}
	}
	if len(certain)+len(perhaps) == 0 {
		return []string{"nothing dangerous"}
	}
	return append(certain, perhaps...)
}

// grave reports whether the request is one that nobody may agree to by habit, and
// lists the resources of such steps.
func grave(r approve.Request) (bool, []string) {
	var named []string
	found := false
	steps, _ := r.Bound["steps"].([]any)
	for _, s := range steps {
		step, _ := s.(map[string]any)
		for _, name := range answer.Texts(step["danger"]) {
			switch name {
			case "destructive", "irreversible", "billable":
				found = true
				for _, resource := range answer.Texts(step["resources"]) {
					// "kind value abs access class host": the value is what people know.
					if fields := strings.Split(resource, " "); len(fields) > 2 && fields[1] != "" {
						named = append(named, fields[1])
					}
				}
			}
		}
	}
	return found, named
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

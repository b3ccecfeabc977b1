package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Finding is something in a document that is valid and probably not meant.
type Finding struct {
	Severity string `json:"severity"` // error: it has no effect, or breaks a promise; warning: it is risky
	Rule     string `json:"rule,omitempty"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Text     string `json:"text"`
}

// Lint looks for rules that can never apply, that cover more than their author may
// think, or that no example holds to their meaning.
func (d *Document) Lint(now time.Time) []Finding {
	var out []Finding
	rules := append([]rule(nil), d.rules...)
	for i := range d.profiles {
		rules = append(rules, d.profiles[i].rules...)
	}
	for i := range rules {
		r := &rules[i]
		if r.form {
			continue // the words of another standard
		}
		add := func(severity, text string) {
			out = append(out, Finding{severity, r.id, r.file, r.line, r.col, text})
		}
		for j := range rules[:i] {
			if shadows(&rules[j], r) {
				add("error", "has no effect: "+rules[j].id+" says the same of the same commands")
				break
			}
		}
		if !r.expires.IsZero() && !now.Before(r.expires) {
			add("error", "has no effect: it expired "+r.expires.Format(time.DateOnly))
		}
		if unsatisfiable(&r.when) {
			add("error", "has no effect: its conditions exclude each other")
		}
		if namesApproval(r.suggest) || namesApproval(r.reason) {
			add("error", "its text tells how permission is given; an agent would follow that")
		}
		if r.decision == Allow {
			lintAllow(r, add)
		} else if r.decision == Deny {
			lintDeny(r, add)
		}
	}
	return out
}

// lintDeny finds rules that judge what a command line names where something else also holds
// code that names nothing to it.
func lintDeny(r *rule, add func(severity, text string)) {
	if len(r.notMatch) == 0 {
		add("warning", "has no notMatch: nothing shows what it must leave alone")
	}
	if r.when.path != nil && len(r.when.path.glob) > 0 {
		add("warning", "judges the paths that a command names: paths.protected and paths.secret hold code and tests to them too")
	}
	if slices.ContainsFunc(r.when.host, func(h hostPattern) bool { return !h.isKind }) {
		add("warning", "judges the hosts that a command names: network.deny holds code and tests to them too")
	}
}

func lintAllow(r *rule, add func(severity, text string)) {
	if len(r.match) == 0 {
		add("warning", "has no match: nothing shows what it is for")
	}
	for _, t := range r.when.tool {
		switch {
		case strings.ContainsAny(t, "*?["):
			add("warning", fmt.Sprintf("allows every tool whose name matches %q, also one that is installed later", t))
		case runsAnything(t):
			add("warning", t+" runs whatever it is told: this allows any program")
		}
	}
	if len(r.when.tool) == 0 && len(r.when.command) == 0 && r.when.path == nil && len(r.when.host) == 0 {
		add("warning", "names no tool, path or host: it covers every command with these effects")
	}
	if r.when.ci != nil && *r.when.ci {
		add("warning", "counts wherever CI is set, and an agent can set CI")
	}
	if slices.ContainsFunc(r.when.host, wide) {
		add("warning", "the host pattern covers strangers' machines")
	}
}

// shadows reports whether b adds nothing to a.
func shadows(a, b *rule) bool {
	if a.decision != b.decision || a.sw != nil || b.sw != nil || !reflect.DeepEqual(a.when, b.when) || len(a.unless) > 0 || a.onUnknown != b.onUnknown {
		return false
	}
	if b.decision == Allow {
		return a.grants&b.grants == b.grants && len(b.lifts) == 0 && a.expires.IsZero()
	}
	return a.floor <= b.floor
}

// unsatisfiable finds conditions on one effect that contradict each other.
func unsatisfiable(w *when) bool {
	for i, a := range w.effects {
		if slices.ContainsFunc(w.effects[:i], func(b effectCond) bool { return a.effect == b.effect && a.value != b.value }) {
			return true
		}
	}
	return w.rankBelow != nil && w.rankAtLeast != nil && *w.rankAtLeast >= *w.rankBelow
}

// namesApproval reports whether a text that agents read names the way around it.
func namesApproval(text string) bool {
	text = strings.ToLower(text)
	for _, word := range [...]string{"approve", "approval", "atip policy", "policy.json", "approvers"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// runsAnything names interpreters and programs that start others.
func runsAnything(tool string) bool {
	switch tool[strings.LastIndexByte(tool, '/')+1:] {
	case "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "perl", "ruby", "php", "lua", "pwsh", "osascript",
		"env", "sudo", "doas", "su", "xargs", "find", "timeout", "nohup", "nice", "setsid", "watch", "ssh", "parallel", "busybox", "npx", "bunx", "uvx", "pipx", "awk", "eval":
		return true
	}
	return false
}

// wide reports whether a host pattern reaches machines of strangers.
func wide(h hostPattern) bool {
	return h.isKind && h.kind == HostPublic || h.text == "*" || h.suffix != "" && strings.Count(h.suffix, ".") == 1
}

package policy

import (
	"math/rand/v2"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// TestEveryUseOfAnOption: in an allow rule and in an exception each use of an option must match,
// since the last one usually wins and an agent writes the words.
func TestEveryUseOfAnOption(t *testing.T) {
	allow := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"rules":[{"id":"dev","decision":"allow","when":{"tool":"kubectl","option":{"context":"dev-*"}},"grants":["network","remoteMutation","destructive"]}]}`))
	deny := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"rules":[{"id":"no","decision":"deny","when":{"tool":"kubectl","command":["delete"]},"unless":[{"option":{"context":"dev-*"}}]},
		{"id":"dev","decision":"allow","when":{"tool":"kubectl"},"grants":["network","remoteMutation","destructive"]}]}`))
	dry := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"rules":[{"id":"dry","decision":"allow","when":{"tool":"kubectl","option":{"dry-run":true}},"grants":["network","remoteMutation","destructive"]}]}`))
	use := optionUse
	maybe := use("context", "dev-b")
	maybe.Maybe = true
	for _, row := range []struct {
		name    string
		options []atip.OptionUse
		set     *Set
		want    Action
	}{
		{"one", []atip.OptionUse{use("context", "dev-a")}, allow, Allow},
		{"twice the same", []atip.OptionUse{use("context", "dev-a"), use("context", "dev-a")}, allow, Allow},
		{"another value behind", []atip.OptionUse{use("context", "dev-a"), use("context", "prod")}, allow, Confirm},
		{"another value before", []atip.OptionUse{use("context", "prod"), use("context", "dev-a")}, allow, Confirm},
		{"one that is not sure", []atip.OptionUse{use("context", "dev-a"), maybe}, allow, Confirm},
		{"no option", nil, allow, Confirm},
		{"exception", []atip.OptionUse{use("context", "dev-a")}, deny, Allow},
		{"exception and another value", []atip.OptionUse{use("context", "dev-a"), use("context", "prod")}, deny, Deny},
		{"switch", []atip.OptionUse{use("dry-run", "")}, dry, Allow},
		{"switch, off", []atip.OptionUse{use("dry-run", "false")}, dry, Confirm},
		{"switch, on and off", []atip.OptionUse{use("dry-run", ""), use("dry-run", "false")}, dry, Confirm},
		{"switch, of a kind", []atip.OptionUse{use("dry-run", "client")}, dry, Allow},
		{"switch, none", []atip.OptionUse{use("dry-run", "none")}, dry, Confirm},
		{"switch and its opposite", []atip.OptionUse{use("dry-run", ""), use("no-dry-run", "")}, dry, Confirm},
	} {
		st := tool("kubectl delete pod", "network", "remoteMutation", "destructive")
		st.Call.Options = row.options
		if d := row.set.Decide(requestOf(st)); d.Action != row.want {
			t.Errorf("%s: %v, want %v: %v", row.name, d.Action, row.want, ruleNames(d))
		}
	}
	st := tool("kubectl frobnicate", "network", "remoteMutation", "destructive")
	st.Call.Exactness, st.Call.Options = atip.Unresolved, []atip.OptionUse{use("context", "dev-a")}
	if d := allow.Decide(requestOf(st)); d.Action == Allow {
		t.Error("an unresolved call, whose other words may be options, is allowed")
	}
}

// TestMoreUsesNeverLoosen: one more use of an option, path or host that a rule speaks of never
// loosens, whatever stands there already.
func TestMoreUsesNeverLoosen(t *testing.T) {
	w := world{rand.New(rand.NewPCG(3, 14))}
	rules := []string{
		`{"id":"a","decision":"allow","when":{"tool":"kubectl","option":{"context":"dev-*"}},"grants":["network","remoteMutation","destructive","write"]}`,
		`{"id":"b","decision":"allow","when":{"tool":"kubectl","option":{"dry-run":true}},"grants":["network","remoteMutation","destructive","write"]}`,
		`{"id":"c","decision":"deny","when":{"tool":"kubectl"},"unless":[{"option":{"context":"dev-*"}}]}`,
		`{"id":"d","decision":"deny","when":{"tool":"kubectl"},"unless":[{"host":["docs.rs"]}]}`,
		`{"id":"e","decision":"deny","when":{"tool":"kubectl"},"unless":[{"path":{"class":["workspace"],"access":["write"]}}]}`,
		`{"id":"f","decision":"allow","when":{"tool":"kubectl","host":["docs.rs"]},"grants":["network","write","remoteMutation","destructive"]}`,
		`{"id":"g","decision":"confirm","when":{"tool":"kubectl","option":{"dry-run":true}}}`,
	}
	option := func() atip.OptionUse {
		u := optionUse(pick(w, "context", "dry-run", "no-dry-run", "other"), pick(w, "", "dev-a", "prod", "false", "none", "true"))
		u.Maybe = w.one(4)
		return u
	}
	// The first use can satisfy a rule that none satisfied; a later one cannot.
	loose, tight := 0, 0
	for range 20000 {
		text := rules[w.IntN(len(rules))]
		if w.one(2) {
			text += "," + rules[w.IntN(len(rules))]
		}
		doc, err := Parse(Source{File: "user.json", Raw: []byte(`{"version":1,"rules":[` + text + `]}`), Layer: LayerUser, Trusted: true})
		if err != nil {
			continue // the same rule twice
		}
		s := mustCompile(t, doc)
		st := tool("kubectl delete pod", "write", pick(w, "network", "remoteMutation"), pick(w, "destructive", "write"))
		for range 1 + w.IntN(2) {
			st.Call.Options = append(st.Call.Options, option())
		}
		st = st.host(pick(w, "docs.rs", "evil.example"), 443).on("write:" + pick(w, "workspace", "outside") + ":/x")
		before := s.Decide(requestOf(st)).Action
		more := st
		more.Call.Options = append(append([]atip.OptionUse(nil), st.Call.Options...), option())
		named := func(name string) bool {
			for _, u := range st.Call.Options {
				if u.Name == name {
					return true
				}
			}
			return false
		}
		if last := more.Call.Options[len(more.Call.Options)-1]; !named(last.Name) && last.Name != "no-dry-run" && last.Name != "other" {
			more.Call.Options = st.Call.Options
		}
		more = more.host(pick(w, "docs.rs", "evil.example"), 443).on("write:" + pick(w, "workspace", "outside") + ":/y")
		after := s.Decide(requestOf(more)).Action
		if after > before {
			t.Fatalf("rules %s: %v with %+v, %v with %+v", text, before, st.Call.Options, after, more.Call.Options)
		}
		if after < before {
			tight++
		}
		if before == Allow {
			loose++
		}
	}
	if loose < 500 || tight < 500 {
		t.Errorf("%d allowed, %d tightened: the test shows nothing", loose, tight)
	}
}

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// CheckExamples runs the examples of the document's rules: resolve turns a shell
// string into the request it would make in a directory. Whether the whole decision
// allows is not asked, only whether the rule itself speaks: a match it must apply to
// some step, a notMatch to none.
func (d *Document) CheckExamples(resolve func(cmd, cwd string) (Request, error)) error {
	alone := *d
	alone.hasProfile = false // another document may define it, and no rule depends on it
	s, err := Compile([]*Document{&alone})
	if err != nil {
		return err
	}
	for i := range d.rules {
		if err := s.checkRule(&d.rules[i], resolve); err != nil {
			return err
		}
	}
	for p := range d.profiles {
		for i := range d.profiles[p].rules {
			if err := s.checkRule(&d.profiles[p].rules[i], resolve); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Set) checkRule(r *rule, resolve func(cmd, cwd string) (Request, error)) error {
	for _, list := range [...]struct {
		examples []example
		want     bool
		word     string
	}{{r.match, true, "match"}, {r.notMatch, false, "notMatch"}} {
		for _, x := range list.examples {
			fail := func(why string) error {
				return &ParseError{Code: errcode.RuleExample, File: r.file, Line: x.line, Col: x.col,
					Msg: fmt.Sprintf("rule %s: example %q of %s: %s", r.id, x.command, list.word, why)}
			}
			req, err := resolve(x.command, x.cwd)
			if err != nil {
				return fail(err.Error())
			}
			x.state(&req)
			if got := s.speaks(r, &req); got != list.want {
				if got {
					return fail("the rule applies to it")
				}
				return fail("the rule does not apply to it")
			}
		}
	}
	return nil
}

// state gives the command of an example the effects that it says, as metadata of that rank
// would, or its metadata that rank. A tool that is not known is then one with these effects, and its words up to the
// first option are its command.
func (x *example) state(req *Request) {
	at := slices.IndexFunc(req.Steps, func(s Step) bool { return slices.Equal(s.Call.Argv, x.argv) })
	if len(x.effects) == 0 && x.rank == nil || at < 0 {
		return
	}
	c := &req.Steps[at].Call
	if c.Exactness == atip.Unresolved && len(x.effects) > 0 {
		c.Provenance.Channel, c.Provenance.Rank, c.Exactness = "override", atip.Org, atip.Exact
		for _, word := range c.Argv[min(1, len(c.Argv)):] {
			if strings.HasPrefix(word, "-") {
				break
			}
			c.Path = append(c.Path, word)
		}
	}
	if x.rank != nil {
		c.Provenance.Rank = *x.rank
		for e := range c.Effects {
			c.Effects[e].Rank = *x.rank
		}
	}
	for _, s := range x.effects {
		c.Effects[s.effect] = atip.Fact{Value: s.value, Source: "example", Rank: c.Provenance.Rank}
	}
}

// speaks reports whether the rule applies to some step or edge of the request.
func (s *Set) speaks(r *rule, req *Request) bool {
	for i := range req.Steps {
		j := judged{facts: newFacts(s, req, &req.Steps[i])}
		if r.when.edge != nil && !edgeInto(req, r, i) {
			continue
		}
		if r.decision == Allow {
			if j.static(&r.when, true) == isYes && j.covers(r, 0) {
				return true
			}
			continue
		}
		t := j.static(&r.when, false)
		if t == isNo {
			continue
		}
		v := j.under(0)
		if _, _, applies := j.restricts(candidate{r, t}, &v, nil); applies {
			return true
		}
	}
	return false
}

func edgeInto(req *Request, r *rule, step int) bool {
	return slices.ContainsFunc(req.Edges, func(e Edge) bool { return e.To == step && slices.Contains(r.when.edge, e.Kind) })
}

// ExampleCommands lists the examples of all rules.
func (d *Document) ExampleCommands() []string {
	var out []string
	add := func(rules []rule) {
		for i := range rules {
			for _, list := range [...][]example{rules[i].match, rules[i].notMatch} {
				for _, x := range list {
					out = append(out, x.command)
				}
			}
		}
	}
	add(d.rules)
	for i := range d.profiles {
		add(d.profiles[i].rules)
	}
	return out
}

// HasExamples reports whether some rule of the document has examples.
func (d *Document) HasExamples() bool { return d.Examples() > 0 }

// Examples is how many examples the rules have.
func (d *Document) Examples() int { return len(d.ExampleCommands()) }

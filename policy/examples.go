package policy

import "fmt"

// CheckExamples runs the examples of the document's rules: resolve turns a shell
// string into the request it would make. Whether the whole decision allows is not
// asked, only whether the rule itself speaks: a match it must apply to some step,
// a notMatch to none.
func (d *Document) CheckExamples(resolve func(cmd string) (Request, error)) error {
	s, err := Compile([]*Document{d})
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

func (s *Set) checkRule(r *rule, resolve func(cmd string) (Request, error)) error {
	for _, list := range [...]struct {
		examples []example
		want     bool
		word     string
	}{{r.match, true, "match"}, {r.notMatch, false, "notMatch"}} {
		for _, x := range list.examples {
			fail := func(why string) error {
				return &ParseError{Code: "E2042", File: r.file, Line: x.line, Col: x.col,
					Msg: fmt.Sprintf("rule %s: example %q of %s: %s", r.id, x.command, list.word, why)}
			}
			req, err := resolve(x.command)
			if err != nil {
				return fail(err.Error())
			}
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
	for _, e := range req.Edges {
		if e.To == step && contains(r.when.edge, e.Kind) {
			return true
		}
	}
	return false
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

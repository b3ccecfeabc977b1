package atip

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// find looks a flag up where the reading stands. Before the command word it also
// asks all commands below: conflict means that they disagree on its arity.
func (r *reading) find(flag string) (o *option, conflict bool) {
	if o = r.n.inScope(flag); o != nil {
		return o, false
	}
	if r.n.kids.ok() && !r.moved {
		return r.n.fromDescendants(flag)
	}
	return nil, false
}

func (r *reading) add(u use) {
	if u.opt != nil && u.opt.pending {
		u.pending = true
		u.arity = u.opt.arity
	}
	r.uses = append(r.uses, u)
}

// long reads --name or --name=value.
func (r *reading) long(w string) {
	flag, value, has := strings.Cut(w, "=")
	o, conflict := r.find(flag)
	if o == nil && !conflict && len(flag) > 4 {
		o = r.n.inScope(flag[1:]) // programs whose long flags have one dash mostly take two
	}
	switch {
	case o != nil:
		r.take(use{opt: o, flag: flag, value: value, hasValue: has})
	case conflict:
		r.disputed(use{flag: flag, value: value, hasValue: has})
	case r.negation(flag, value, has):
	case r.abbreviation(flag, value, has):
	default:
		r.unknownFlag(flag, value, has)
	}
}

func (r *reading) negation(flag, value string, has bool) bool {
	if !r.n.conv.negation || !strings.HasPrefix(flag, "--no-") {
		return false
	}
	o, _ := r.find("--" + flag[len("--no-"):])
	if o == nil || !o.boolean() && !o.optional {
		return false
	}
	r.add(use{opt: o, flag: flag, value: value, hasValue: has, negated: true})
	return true
}

// abbreviation reads an unknown long flag that begins declared ones. Whether the tool
// takes it is stated by parse.abbrev; if it is not stated, each candidate is a maybe.
func (r *reading) abbreviation(flag, value string, has bool) bool {
	if r.n.conv.abbrev == No || len(flag) < 3 {
		return false
	}
	var candidates []*option
	for n := r.n; n != nil; n = n.parent {
		for i := range n.options {
			o := &n.options[i]
			for _, f := range o.flags {
				if len(f) > len(flag) && strings.HasPrefix(f, flag) && strings.HasPrefix(f, "--") {
					candidates = append(candidates, o)
					break
				}
			}
		}
	}
	if len(candidates) == 0 {
		return false
	}
	r.bounded = true
	if len(candidates) == 1 && r.n.conv.abbrev == Yes {
		r.take(use{opt: candidates[0], flag: flag, value: value, hasValue: has})
		return true
	}
	r.noteUnknown(flag)
	agreed := true
	for _, o := range candidates {
		agreed = agreed && o.arity == candidates[0].arity
	}
	for _, o := range candidates[1:] {
		r.add(use{opt: o, flag: flag, value: value, hasValue: has, maybe: true})
	}
	first := use{opt: candidates[0], flag: flag, value: value, hasValue: has, maybe: true}
	if agreed {
		r.take(first)
		return true
	}
	r.add(first)
	r.mayTakeWord(has)
	return true
}

// unknownFlag records a flag that nothing declares; the next word may be its value.
func (r *reading) unknownFlag(flag, value string, has bool) {
	r.noteUnknown(flag)
	r.suspicious = r.suspicious || strings.ContainsAny(value, commandSigns)
	r.uses = append(r.uses, use{flag: flag, value: value, hasValue: has})
	r.mayTakeWord(has)
}

// commandSigns tell a command from a name, a number or a URL.
const commandSigns = " \t\n;|&<>()$`"

// disputed records a flag that the commands below declare with different arities.
func (r *reading) disputed(u use) {
	r.bounded = true
	u.pending = true
	if u.hasValue {
		u.arity = 1
		r.uses = append(r.uses, u)
		return
	}
	if r.at < len(r.argv) {
		with := u
		with.arity, with.value, with.hasValue = 1, r.argv[r.at], true
		other := r.fork()
		other.uses = append(other.uses, with)
		other.at++
		r.later(other)
	}
	r.uses = append(r.uses, u)
}

func (r *reading) noteUnknown(flag string) {
	r.bounded = true
	if slices.Contains(r.unknown, flag) {
		return
	}
	r.unknown = append(r.unknown, flag)
	r.suspicious = r.suspicious || namesDanger(flag)
}

// namesDanger reports flags whose very name speaks of harm, whatever the tool.
func namesDanger(flag string) bool {
	flag = strings.ToLower(flag)
	for _, w := range [...]string{"delete", "destroy", "purge", "prune", "wipe", "force", "hard", "overwrite", "exec", "eval", "hook", "plugin"} {
		if strings.Contains(flag, w) {
			return true
		}
	}
	return false
}

// mayTakeWord forks: in the other reading the last use takes the next word.
func (r *reading) mayTakeWord(has bool) {
	if has || r.at >= len(r.argv) {
		return
	}
	r.suspicious = r.suspicious || r.uses[len(r.uses)-1].opt == nil && strings.ContainsAny(r.argv[r.at], commandSigns)
	other := r.fork()
	u := &other.uses[len(other.uses)-1]
	u.value, u.hasValue = r.argv[r.at], true
	other.at++
	r.later(other)
}

// take consumes the words of a known option.
func (r *reading) take(u use) {
	o := u.opt
	switch {
	case o.optional || o.arity == 0:
		r.add(u)
	case o.arity > 0:
		if u.hasValue {
			u.values = append(u.values, u.value)
		}
		for len(u.values) < o.arity && r.at < len(r.argv) {
			u.values = append(u.values, r.argv[r.at])
			r.at++
		}
		if len(u.values) < o.arity {
			r.bounded = true // dangling
		}
		if len(u.values) > 0 {
			u.value, u.hasValue = u.values[0], true
		}
		r.add(u)
	case o.arity == arityRest:
		u.values = append(u.values, r.argv[r.at:]...)
		r.at = len(r.argv)
		r.takeAll(u)
	case o.arity == arityTerminator:
		from := r.at
		for r.at < len(r.argv) && !r.n.conv.endsWords(r.argv, from, r.at) {
			r.at++
		}
		u.values = append(u.values, r.argv[from:r.at]...)
		if r.at < len(r.argv) {
			r.at++
		} else {
			r.bounded = true
		}
		r.takeAll(u)
	default:
		r.bounded = true
		r.add(u)
		r.mayTakeWord(u.hasValue)
	}
}

func (r *reading) takeAll(u use) {
	if len(u.values) > 0 {
		u.value, u.hasValue = u.values[0], true
	}
	r.add(u)
}

// short reads -x, a cluster, or a long name behind one dash.
func (r *reading) short(w string) {
	c := &r.n.conv
	if c.numeric && isDigits(w[1:]) {
		r.uses = append(r.uses, use{flag: w, value: w[1:], hasValue: true, opt: &option{name: "number", flags: []string{w}, arity: 0}})
		return
	}
	if len(w) > 2 {
		flag, value, has := strings.Cut(w, "=")
		if len(flag) > 2 {
			if o, conflict := r.find(flag); o != nil {
				r.take(use{opt: o, flag: flag, value: value, hasValue: has})
				return
			} else if conflict {
				r.disputed(use{flag: flag, value: value, hasValue: has})
				return
			}
		}
	}
	if !c.bundle && len(w) > 2 {
		r.notBundled(w)
		return
	}
	r.cluster(w)
}

// notBundled reads -oVALUE where letters do not cluster.
func (r *reading) notBundled(w string) {
	if o, _ := r.find(w[:2]); o != nil && r.n.conv.attached && (o.arity != 0 || o.optional) {
		r.take(use{opt: o, flag: w[:2], value: w[2:], hasValue: true})
		return
	}
	flag, value, has := strings.Cut(w, "=")
	r.unknownFlag(flag, value, has)
}

func (r *reading) cluster(w string) {
	body := w[1:]
	for i, n := 0, 0; i < len(body); i += n {
		n = letterLen(body[i:])
		flag := "-" + body[i:i+n]
		rest := body[i+n:]
		o, conflict := r.find(flag)
		if o == nil {
			if conflict && rest == "" {
				r.disputed(use{flag: flag})
				return
			}
			r.unknownLetter(w, i, flag, rest)
			return
		}
		u := use{opt: o, flag: flag}
		if rest != "" && rest[0] == '=' {
			u.value, u.hasValue, u.afterEquals = rest[1:], true, true
			r.take(u)
			return
		}
		if o.arity == arityUnknown && rest != "" {
			r.laterLetters(use{opt: o, flag: flag, value: rest, hasValue: true, maybe: true}, rest)
			return
		}
		if o.arity != 0 || o.optional {
			if rest != "" && (r.n.conv.attached || o.optional) {
				u.value, u.hasValue = rest, true
			}
			r.take(u)
			if u.hasValue || rest == "" {
				return
			}
			continue
		}
		r.add(u)
	}
}

// unknownLetter reads the rest of a cluster from its first unknown letter: that
// letter may take the rest as its value, so the later ones are maybes.
func (r *reading) unknownLetter(w string, i int, flag, rest string) {
	if i == 0 && len(w) > 2 {
		r.noteUnknown(w)
	} else {
		r.noteUnknown(flag)
	}
	r.suspicious = r.suspicious || namesDanger(w)
	r.laterLetters(use{flag: flag, value: rest, hasValue: rest != "", maybe: rest != ""}, rest)
}

// laterLetters records a letter that may or may not take the rest of its cluster,
// and the rest as maybes.
func (r *reading) laterLetters(first use, rest string) {
	r.bounded = true
	r.add(first)
	takesWord := true
	for rest != "" {
		n := letterLen(rest)
		flag, tail := "-"+rest[:n], rest[n:]
		rest = tail
		o, _ := r.find(flag)
		if o == nil {
			continue
		}
		u := use{opt: o, flag: flag, maybe: true}
		if o.arity != 0 || o.optional {
			u.value, u.hasValue = tail, tail != ""
			r.add(u)
			takesWord = tail == "" && !o.optional
			break
		}
		takesWord = tail != ""
		r.add(u)
	}
	if takesWord {
		r.mayTakeWord(false)
	}
}

// bareCluster reads letters without a dash, as tar and ps take them: options that
// take words take them in order from what follows.
func (r *reading) bareCluster(w string) {
	for w != "" {
		n := letterLen(w)
		flag := "-" + w[:n]
		w = w[n:]
		o, _ := r.find(flag)
		if o == nil {
			r.noteUnknown(flag)
			r.uses = append(r.uses, use{flag: flag, maybe: true})
			continue
		}
		r.take(use{opt: o, flag: flag})
	}
}

// letterLen is the length of the letter that s begins with. Words need not be valid
// UTF-8; a stray byte is a letter of its own.
func letterLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// Prepared is the part of a start that depends on no decision: the default paths are
// looked up, and their rules stand in a ruleset. It is made while policy decides.
type Prepared struct {
	done   chan struct{}
	files  Files
	abi    int
	grants []Grant
	// rulesets differ in one thing: the second is for runs that may start nothing else,
	// and grants no EXECUTE. -1 is none.
	rulesets [2]int
}

// Prepare begins to look up the default paths and to build their rules. Hand Files to
// Derive and the result to Start through Cmd.Prepared. Nothing is confined by it, and
// a start that was decided otherwise does not use it.
func Prepare(home string, pathDirs []string) *Prepared {
	p := &Prepared{done: make(chan struct{}), files: HostFiles(), rulesets: [2]int{-1, -1}}
	go func() {
		defer close(p.done)
		d := deriver{in: Input{Home: home, PathDirs: pathDirs, Root: os.Getuid() == 0, Files: p.files}}
		d.system()
		d.home()
		p.grants = d.set.compact()
		if p.abi, _, _ = landlockABI(); p.abi != 0 {
			p.build()
		}
	}()
	return p
}

// build opens each path once for both rulesets. If anything fails there are none, and
// the start builds its own and reports the error.
func (p *Prepared) build() {
	for i := range p.rulesets {
		rs, err := createRuleset(NetNone, p.abi)
		if err != nil {
			p.free()
			return
		}
		p.rulesets[i] = rs
	}
	for _, g := range p.grants {
		plain := g
		plain.Rights &^= Exec
		if addRules(p.rulesets[:], []Grant{g, plain}, p.abi) != nil {
			p.free()
			return
		}
	}
}

func (p *Prepared) free() {
	for i, rs := range p.rulesets {
		if rs >= 0 {
			unix.Close(rs)
		}
		p.rulesets[i] = -1
	}
}

// Files is the file system with what Prepare has looked up.
func (p *Prepared) Files() Files {
	<-p.done
	return p.files
}

// Close frees what no start has taken.
func (p *Prepared) Close() {
	<-p.done
	p.free()
}

// take returns the ruleset and the grants of profile that are not in it, if it allows
// nothing that the profile does not and handles what the profile needs handled.
func (p *Prepared) take(profile *Profile, abi int) (ruleset int, rest []Grant, ok bool) {
	if p == nil {
		return -1, nil, false
	}
	<-p.done
	which, without := 0, Rights(0)
	if profile.SubprocessNo {
		which, without = 1, Exec
	}
	if p.rulesets[which] < 0 || p.abi != abi || profile.Net.Mode == NetFull {
		return -1, nil, false
	}
	all := profile.grants()
	for _, g := range p.grants {
		var have Rights
		for _, a := range all {
			if a.Path == g.Path || a.Dir && within(g.Path, a.Path) {
				have |= a.Rights
			}
		}
		if !covered(have, g.Rights&^without) {
			return -1, nil, false
		}
	}
	for _, a := range all {
		if !p.has(a, without) {
			rest = append(rest, a)
		}
	}
	ruleset, p.rulesets[which] = p.rulesets[which], -1
	return ruleset, rest, true
}

func (p *Prepared) has(a Grant, without Rights) bool {
	for _, g := range p.grants {
		if g.Path == a.Path && g.Dir == a.Dir && covered(g.Rights&^without, a.Rights) {
			return true
		}
	}
	return false
}

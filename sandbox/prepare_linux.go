package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// Prepared is the part of a start that depends on no decision: the default paths are
// looked up, and their rules stand in a ruleset. It is made while policy decides.
type Prepared struct {
	done    chan struct{}
	files   Files
	abi     int
	ruleset int
	grants  []Grant
}

// Prepare begins to look up the default paths and to build their rules. Hand Files to
// Derive and the result to Start through Cmd.Prepared. Nothing is confined by it, and
// a start that was decided otherwise does not use it.
func Prepare(home string, pathDirs []string) *Prepared {
	p := &Prepared{done: make(chan struct{}), files: HostFiles(), ruleset: -1}
	go func() {
		defer close(p.done)
		d := deriver{in: Input{Home: home, PathDirs: pathDirs, Root: os.Getuid() == 0, Files: p.files}}
		d.system()
		d.home()
		p.grants = d.set.compact()
		if p.abi, _, _ = landlockABI(); p.abi == 0 {
			return
		}
		if rs, err := buildRuleset(&Profile{Read: p.grants}, p.abi, nil); err == nil {
			p.ruleset = rs
		}
	}()
	return p
}

// Files is the file system with what Prepare has looked up.
func (p *Prepared) Files() Files {
	<-p.done
	return p.files
}

// Close frees what no start has taken.
func (p *Prepared) Close() {
	<-p.done
	if p.ruleset >= 0 {
		unix.Close(p.ruleset)
		p.ruleset = -1
	}
}

// take returns the ruleset and the grants of profile that are not in it, if it allows
// nothing that the profile does not and handles what the profile needs handled.
func (p *Prepared) take(profile *Profile, abi int) (ruleset int, rest []Grant, ok bool) {
	if p == nil {
		return -1, nil, false
	}
	<-p.done
	if p.ruleset < 0 || p.abi != abi || profile.Net.Mode == NetFull {
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
		if !covered(have, g.Rights) {
			return -1, nil, false
		}
	}
	for _, a := range all {
		if !p.has(a) {
			rest = append(rest, a)
		}
	}
	ruleset, p.ruleset = p.ruleset, -1
	return ruleset, rest, true
}

func (p *Prepared) has(a Grant) bool {
	for _, g := range p.grants {
		if g.Path == a.Path && g.Dir == a.Dir && covered(g.Rights, a.Rights) {
			return true
		}
	}
	return false
}

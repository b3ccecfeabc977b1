package sandbox

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Prepared is the part of a start that hardly depends on a decision: the default paths
// are looked up, and their rules stand in a ruleset. It is made while policy decides.
type Prepared struct {
	looked chan struct{} // files and grants are there
	done   chan struct{} // so is the ruleset, or none will be
	choice chan bool
	chosen sync.Once

	files   Files
	abi     int
	grants  []Grant // what the ruleset allows
	ruleset int     // -1 is none
}

// Prepare begins to look up the default paths. Hand Files to Derive and the result to
// Start through Cmd.Prepared. Nothing is confined by it, and a start that was decided
// otherwise does not use it.
func Prepare(home string, pathDirs []string) *Prepared {
	p := &Prepared{looked: make(chan struct{}), done: make(chan struct{}), choice: make(chan bool, 1), files: HostFiles(), ruleset: -1}
	go func() {
		defer close(p.done)
		d := deriver{in: Input{Home: home, Root: os.Getuid() == 0, Files: p.files}}
		d.system()
		d.home()
		p.grants = d.set.compact()
		// Looked up only: what is granted of PATH is judged, and one rule that the profile does not
		// have makes all of them useless.
		for _, dir := range pathDirs {
			d.pathEntry(dir)
		}
		close(p.looked)
		if subprocessNo, wanted := <-p.choice; wanted {
			p.build(subprocessNo)
		}
	}()
	return p
}

// Rules begins to build the rules of the default paths. Whether the run may start other
// programs is the one thing that they depend on; a wrong guess costs time only.
func (p *Prepared) Rules(subprocessNo bool) {
	p.chosen.Do(func() { p.choice <- subprocessNo })
}

// build makes the ruleset. If that fails there is none, and the start builds its own and
// reports the error.
func (p *Prepared) build(subprocessNo bool) {
	if p.abi, _, _ = landlockABI(); p.abi == 0 {
		return
	}
	if subprocessNo {
		for i := range p.grants {
			p.grants[i].Rights &^= Exec
		}
	}
	if rs, err := buildRuleset(&Profile{Read: p.grants}, p.abi, nil); err == nil {
		p.ruleset = rs
	}
}

// Files is the file system with what Prepare has looked up.
func (p *Prepared) Files() Files {
	<-p.looked
	return p.files
}

// Close frees what no start has taken.
func (p *Prepared) Close() {
	p.chosen.Do(func() { close(p.choice) })
	<-p.done
	if p.ruleset >= 0 {
		unix.Close(p.ruleset)
		p.ruleset = -1
	}
}

// take returns the ruleset and the grants of profile that are not in it, if it allows
// nothing that the profile does not and handles what the profile needs handled.
func (p *Prepared) take(profile *Profile, abi int) (ruleset int, rest []Grant, ok bool) {
	if p == nil || profile.Net.Mode == NetFull {
		return -1, nil, false
	}
	p.Rules(profile.SubprocessNo || profile.Ceiling == ExecClosed)
	<-p.done
	if p.ruleset < 0 || p.abi != abi {
		return -1, nil, false
	}
	all := profile.grants()
	for _, g := range p.grants {
		var have Rights
		for _, a := range all {
			if a.Path == g.Path || a.Dir && subpath.Within(g.Path, a.Path) {
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

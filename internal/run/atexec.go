package run

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// maxAnswers bounds what a run remembers of its decisions at exec.
const maxAnswers = 4096

// maxRefusedStarts is how many refused starts are told one by one.
const maxRefusedStarts = 20

// atExec decides the starts of one run when they happen.
type atExec struct {
	x *execution

	mu      sync.Mutex // a decision at a time: they share what is remembered of files
	answers map[[sha256.Size]byte]gate.Verdict
	spent   bool // the start at hand was permitted by an approval

	decided atomic.Int64 // starts that were decided, each time one happened

	told     sync.Mutex
	refused  int
	refusals []refusedStart // the first maxRefusedStarts of them
}

// startsRecord is what the audit keeps of the starts that were decided when they happened.
type startsRecord struct {
	Decided  int64          `json:"decided"`
	Refused  int            `json:"refused,omitempty"`
	Refusals []refusedStart `json:"refusals,omitempty"`
}

type refusedStart struct {
	Argv    []string `json:"argv"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
}

func (g *atExec) record() startsRecord {
	g.told.Lock()
	defer g.told.Unlock()
	return startsRecord{Decided: g.decided.Load(), Refused: g.refused, Refusals: slices.Clone(g.refusals)}
}

// gateRules is how the starts of this run are decided, nil if they are not.
func (x *execution) gateRules() *gate.Rules {
	p := x.plan
	if !p.gated() {
		return nil
	}
	g := &atExec{x: x, answers: map[[sha256.Size]byte]gate.Verdict{}}
	rules := &gate.Rules{Decide: g.decide, Refused: g.report}
	x.atExec = g
	if p.steps[0].RunsCode != policy.CodeNone && !p.inv.IsShell {
		rules.First = gate.Code
	}
	return rules
}

func (g *atExec) decide(s gate.Start) gate.Verdict {
	g.decided.Add(1)
	info, err := s.File.Stat()
	if err != nil {
		return gate.Verdict{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00%s\x00", s.Path, s.Zone, s.Cwd)
	dev, ino := fileID("/proc/self/fd/" + strconv.Itoa(int(s.File.Fd())))
	fmt.Fprintf(h, "%d\x00%d\x00%d\x00", dev, ino, info.ModTime().UnixNano())
	for _, list := range [...][]string{s.Argv, s.Env} {
		fmt.Fprintf(h, "%d\x00", len(list))
		for _, w := range list {
			fmt.Fprintf(h, "%d\x00%s", len(w), w)
		}
	}
	key := [sha256.Size]byte(h.Sum(nil))
	g.mu.Lock()
	defer g.mu.Unlock()
	if v, ok := g.answers[key]; ok {
		return v
	}
	g.spent = false
	v, why := g.judge(s, info)
	if why != nil {
		v.Why = why
	}
	// An approval is for one start, and a question may have been answered when it is asked again.
	if len(g.answers) < maxAnswers && !g.spent && (why == nil || why.Code != errcode.ApprovalRequired) {
		g.answers[key] = v
	}
	return v
}

// judge decides one start as if its words had been typed there, with what the run was
// granted as the most that it can be given.
func (g *atExec) judge(s gate.Start, info os.FileInfo) (gate.Verdict, *fault.Fault) {
	p := g.x.plan
	if s.Zone == gate.Code && !p.policies.Restricts() {
		return gate.Verdict{Go: true}, nil
	}
	if s.Cwd == "" {
		return gate.Verdict{}, fault.New(errcode.Denied, "denied: the directory of "+Quote(s.Argv)+" was removed")
	}
	// Without deferred words the plan has judged all that is typed, and documents are what is
	// left to hold.
	typed := s.Zone == gate.Typed && p.deferred
	if typed {
		for _, st := range p.steps {
			if !st.AtExec && slices.Equal(st.Argv, s.Argv) && st.Cwd == s.Cwd && sameFile(st.ID.Canonical, info) {
				return gate.Verdict{Go: true, Words: true, Code: st.RunsCode != policy.CodeNone}, nil
			}
		}
	}
	words, f := wordsOf(s, p.env.entries, typed)
	if f != nil {
		return gate.Verdict{}, f
	}
	if !sameFile(s.Path, info) {
		// A file of the run's own temporary directory, which has another name out here: whatever
		// it is, the run wrote it.
		if ownWrites(p, s.Path) {
			return gate.Verdict{Go: true, Words: true, Code: true}, nil
		}
		return gate.Verdict{}, fault.New(errcode.Denied, "denied: "+Quote(s.Argv)+": "+s.Path+" is another file outside of the run")
	}
	sub := p.below(words, s)
	defer sub.Close()
	if !typed {
		sub.policies = p.policies.Written()
	}
	if err := stages(sub.identify, sub.decide); err != nil {
		return gate.Verdict{}, fault.From(err)
	}
	if err := g.permitted(sub); err != nil {
		return gate.Verdict{}, fault.From(err)
	}
	if typed {
		if beyond := beyond(sub.Decision.Grants, p.Decision.Grants); beyond != "" {
			return gate.Verdict{}, fault.New(errcode.Denied, "denied: "+Quote(s.Argv)+" needs "+beyond+", which this run was not granted").WithFix("start it by itself", "atip-exec -- "+Quote(s.Argv))
		}
	}
	return gate.Verdict{Go: true, Words: true, Code: sub.steps[0].RunsCode != policy.CodeNone}, nil
}

// permitted is nil if the decision allows the start, or an approval covers it.
func (g *atExec) permitted(sub *Plan) error {
	refusal := sub.Refusal()
	if refusal == nil {
		return nil
	}
	y := &execution{plan: sub, redact: g.x.redact}
	if err := y.permit(refusal); err != nil {
		return y.refuse(err)
	}
	g.spent = true
	return y.spend()
}

// below is the plan of one start of this run: the same place, policies and machine, with the
// environment of the process.
func (p *Plan) below(words []string, s gate.Start) *Plan {
	sub := newPlan(Invocation{Argv: words, Policies: p.inv.Policies, Profiles: p.inv.Profiles, CI: p.inv.CI, Ceiling: p.inv.Ceiling}, p.machine)
	sub.machine.Environ = slices.DeleteFunc(slices.Clone(s.Env), func(e string) bool { return strings.HasPrefix(e, "ATIP_") })
	for _, entry := range p.machine.Environ {
		if strings.HasPrefix(entry, "ATIP_") {
			sub.machine.Environ = append(sub.machine.Environ, entry)
		}
	}
	sub.Cwd, sub.Workspace, sub.dirs, sub.gitDirs, sub.shimDirs = s.Cwd, p.Workspace, p.dirs, p.gitDirs, p.shimDirs
	sub.world, sub.policies, sub.host, sub.locks, sub.private, sub.files = p.world, p.policies, p.host, p.locks, p.private, p.files
	sub.world.Cwd = s.Cwd
	return sub
}

// wordsOf are the words of a start as they would be typed: by the path of the file, and with
// the variables in front that differ from those of the run and change what programs do.
func wordsOf(s gate.Start, env []string, typed bool) ([]string, *fault.Fault) {
	if len(s.Argv) == 0 {
		return nil, fault.New(errcode.Denied, "denied: "+s.Path+" was started without arguments")
	}
	name := strings.TrimPrefix(filepath.Base(s.Argv[0]), "-")
	if typed && name != filepath.Base(s.Path) {
		// Programs with several names look at this one.
		if real, err := filepath.EvalSymlinks(s.Path); err != nil || filepath.Base(real) != name {
			return nil, fault.New(errcode.Denied, "denied: "+Quote(s.Argv)+": "+s.Path+" would be started under another name")
		}
	}
	words := append([]string{s.Path}, s.Argv[1:]...)
	var set []string
	for _, entry := range s.Env {
		switch name, _, _ := strings.Cut(entry, "="); {
		case slices.Contains(env, entry), name == "PWD", name == "OLDPWD", name == "SHLVL", name == "_":
		default:
			set = append(set, entry)
		}
	}
	if len(set) > 0 {
		words = append(append([]string{"/usr/bin/env"}, set...), words...)
	}
	return words, nil
}

// ownWrites reports whether a path lies where only runs of this workspace write.
func ownWrites(p *Plan, path string) bool {
	return subpath.Within(path, p.Workspace) || subpath.Within(path, p.private) || slices.ContainsFunc(p.world.TmpDirs, func(dir string) bool { return subpath.Within(path, dir) })
}

// beyond names what a start would be granted that the run does not hold, "" for nothing.
func beyond(start, run policy.Grants) string {
	switch {
	case start.Net > run.Net && start.Net > policy.NetLoopback:
		return "the network"
	case start.Effects&^run.Effects != 0:
		return strings.Join(dangersOf(start.Effects&^run.Effects), ", ")
	}
	return ""
}

func sameFile(path string, info os.FileInfo) bool {
	other, err := os.Stat(path)
	return err == nil && os.SameFile(other, info)
}

// report tells of a start that did not happen, once it is known that it did not.
func (g *atExec) report(r gate.Report) {
	g.told.Lock()
	defer g.told.Unlock()
	f, ok := r.Why.(*fault.Fault) // a remembered one is told again
	if !ok && r.Why != nil {
		f = fault.New(errcode.Denied, "denied: "+Quote(r.Start.Argv)+": "+r.Why.Error())
	}
	if f == nil {
		f = fault.New(errcode.Denied, "denied: "+Quote(r.Start.Argv))
	}
	g.x.startRefused.Store(true)
	if g.refused++; g.refused > maxRefusedStarts {
		return
	}
	argv := g.x.cleanAll(r.Start.Argv)
	f.With("at", "exec").With("argv", argv).With("zone", r.Start.Zone.String())
	f.Redact(g.x.clean)
	g.refusals = append(g.refusals, refusedStart{Argv: argv, Code: f.Code, Message: f.Message})
	g.x.note("start_refused", f)
}

// Package starts decides further starts of programs of one run when they happen.
package starts

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/permit"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// maxAnswers bounds what a run remembers of its decisions at exec.
const maxAnswers = 4096

// maxRefusedStarts is how many refused starts are told one by one.
const maxRefusedStarts = 20

// Decider decides the starts of one run when they happen.
type Decider struct {
	plan  *plan.Plan
	clean func(string) string
	note  func(kind string, detail any) // tells of a start that was refused

	restricts bool      // documents restrict what code of the workspace may start
	self      [2]uint64 // device and inode of this program, zero where it stands for no command

	deciding sync.Mutex // a decision at a time: they share what is remembered of files
	spent    bool       // the start at hand was permitted by an approval

	mu      sync.Mutex
	answers map[[sha256.Size]byte]gate.Verdict
	stands  map[int]gate.Zone // the processes that became stand-ins, and on whose behalf
	coming  func(pid int, argv []string, cwd string)

	decided atomic.Int64 // starts that were decided, each time one happened

	told     sync.Mutex
	refused  int
	refusals []refusedStart // the first maxRefusedStarts of them
}

// Record is what the audit keeps of the starts that were decided when they happened.
type Record struct {
	Decided  int64          `json:"decided"`
	Refused  int            `json:"refused,omitempty"`
	Refusals []refusedStart `json:"refusals,omitempty"`
}

type refusedStart struct {
	Argv    []string `json:"argv"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
}

// Record is what was decided so far.
func (g *Decider) Record() Record {
	g.told.Lock()
	defer g.told.Unlock()
	return Record{Decided: g.decided.Load(), Refused: g.refused, Refusals: slices.Clone(g.refusals)}
}

// New is what decides the starts of a plan, nil if nothing does.
func New(p *plan.Plan, clean func(string) string, note func(kind string, detail any)) *Decider {
	if !p.Gated() {
		return nil
	}
	g := &Decider{plan: p, clean: clean, note: note, restricts: p.Policies.Restricts(), answers: map[[sha256.Size]byte]gate.Verdict{}}
	if len(p.Own) > 0 {
		g.self[0], g.self[1] = place.FileID(p.Machine.Self)
	}
	return g
}

// Rules are what the gate holds starts to, nil without a decider.
func (g *Decider) Rules() *gate.Rules {
	if g == nil {
		return nil
	}
	rules := &gate.Rules{Known: g.known, Decide: g.decide, Refused: g.report, Traced: g.plan.Traces()}
	if g.plan.Steps[0].RunsCode != policy.CodeNone && !g.plan.Invocation.IsShell {
		rules.First = gate.Code
	}
	return rules
}

// Refused reports whether a start was refused, which was said.
func (g *Decider) Refused() bool {
	if g == nil {
		return false
	}
	g.told.Lock()
	defer g.told.Unlock()
	return g.refused > 0
}

// known is what was decided before about the same start: about the same file where the answer hung
// on that alone, else about the same words.
func (g *Decider) known(s gate.Start) (gate.Verdict, bool) {
	g.decided.Add(1)
	if len(g.plan.Own) > 0 { // of every start, as a process may become something else
		if v, ok := g.stand(s); ok {
			return v, true
		}
	}
	if g.free(s) {
		return gate.Verdict{Go: true}, true
	}
	file, whole := keyOf(s, false), keyOf(s, true)
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Zone == gate.Code && s.Cwd != "" {
		if v, ok := g.answers[file]; ok {
			return v, true
		}
	}
	v, ok := g.answers[whole]
	return v, ok
}

// keyOf is what an answer hung on: the file, or also words, directory and environment.
func keyOf(s gate.Start, whole bool) [sha256.Size]byte {
	data := make([]byte, 0, 4096)
	add := func(word string) {
		data = append(binary.LittleEndian.AppendUint64(data, uint64(len(word))), word...)
	}
	for _, n := range [...]uint64{s.ID.Dev, s.ID.Ino, uint64(s.ID.Size), uint64(s.ID.Mtime), uint64(s.ID.Ctime), uint64(s.Zone)} {
		data = binary.LittleEndian.AppendUint64(data, n)
	}
	add(s.Path)
	if whole {
		add(s.Cwd)
		for _, list := range [...][]string{s.Argv, s.Env} {
			data = binary.LittleEndian.AppendUint64(data, uint64(len(list)))
			for _, w := range list {
				add(w)
			}
		}
	}
	return sha256.Sum256(data)
}

// free reports whether a start needs no decision: code of the workspace could do itself what it starts.
func (g *Decider) free(s gate.Start) bool { return s.Zone == gate.Code && !g.restricts }

func (g *Decider) decide(s gate.Start) gate.Verdict {
	g.deciding.Lock()
	defer g.deciding.Unlock()
	g.spent = false
	v, why := g.judge(s)
	if why != nil {
		v.Why = why
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// An approval is for one start, and a question may have been answered when it is asked again.
	if len(g.answers) < maxAnswers && !g.spent && (why == nil || why.Code != errcode.ApprovalRequired) {
		g.answers[keyOf(s, !v.File)] = v
	}
	return v
}

// stand notes which process becomes a stand-in. It gains nothing by that: what it hands on is judged
// by whoever answers it.
func (g *Decider) stand(s gate.Start) (gate.Verdict, bool) {
	v, ok := g.standsFor(s)
	if ok && g.coming != nil && s.Zone == gate.Typed && g.plan.OwnStep(s.Argv, s.Cwd) != nil {
		g.coming(s.PID, s.Argv, s.Cwd)
	}
	return v, ok
}

// Stands has coming told of each own step that the shell of the run starts, before it is.
func (g *Decider) Stands(coming func(pid int, argv []string, cwd string)) {
	if g != nil {
		g.coming = coming
	}
}

func (g *Decider) standsFor(s gate.Start) (gate.Verdict, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.stands, s.PID)
	if g.self[1] == 0 || g.self != [2]uint64{s.ID.Dev, s.ID.Ino} || len(s.Argv) == 0 || !slices.ContainsFunc(g.plan.Own, func(o plan.OwnStep) bool { return o.Argv[0] == s.Argv[0] }) {
		return gate.Verdict{}, false
	}
	if g.stands == nil {
		g.stands = map[int]gate.Zone{}
	}
	if len(g.stands) >= maxAnswers {
		clear(g.stands) // those that still ask are then nobody's
	}
	g.stands[s.PID] = s.Zone
	return gate.Verdict{Go: true, File: true}, true // nobody traces a stand-in
}

// Typed reports a stand-in that the shell of the run has started, and no code of the workspace.
func (g *Decider) Typed(pid int) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	zone, ok := g.stands[pid]
	return ok && zone == gate.Typed
}

// judge decides one start as if its words had been typed there, with what the run was
// granted as the most that it can be given.
func (g *Decider) judge(s gate.Start) (gate.Verdict, *fault.Fault) {
	p := g.plan
	if g.free(s) {
		return gate.Verdict{Go: true}, nil
	}
	if s.Cwd == "" {
		return gate.Verdict{}, fault.New(errcode.Denied, "denied: the directory of "+quote.Words(s.Argv)+" was removed")
	}
	// Without deferred words the plan has judged all that is typed, and documents are what is
	// left to hold.
	typed := s.Zone == gate.Typed && p.JudgesTyped()
	if !typed && s.Zone == gate.Typed && len(p.Own) > 0 && !p.Policies.Restricts() {
		// The gate only tells whom the shell has started from whom its code has.
		code := true
		for _, st := range p.Steps {
			if slices.Equal(st.Argv, s.Argv) && st.Cwd == s.Cwd && s.ID.At(st.ID.Canonical) {
				code = st.RunsCode != policy.CodeNone
			}
		}
		return gate.Verdict{Go: true, Code: code}, nil
	}
	if typed {
		for _, st := range p.Steps {
			if !st.AtExec && slices.Equal(st.Argv, s.Argv) && st.Cwd == s.Cwd && s.ID.At(st.ID.Canonical) {
				return gate.Verdict{Go: true, Words: true, Code: st.RunsCode != policy.CodeNone}, nil
			}
		}
	}
	words, f := wordsOf(s, p.Env.Entries, typed)
	if f != nil {
		return gate.Verdict{}, f
	}
	if !s.ID.At(s.Path) {
		// A file of the run's own temporary directory, which has another name out here: whatever
		// it is, the run wrote it.
		if ownWrites(p, s.Path) {
			return gate.Verdict{Go: true, Words: true, Code: true}, nil
		}
		return gate.Verdict{}, fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+": "+s.Path+" is another file outside of the run")
	}
	sub, err := p.Below(words, s.Cwd, s.Env, typed)
	if err != nil {
		return gate.Verdict{}, fault.From(err)
	}
	defer sub.Close()
	if err := g.permitted(sub); err != nil {
		return gate.Verdict{}, fault.From(err)
	}
	if typed {
		if beyond := beyond(sub.Decision.Grants, p.Decision.Grants); beyond != "" {
			return gate.Verdict{}, fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+" needs "+beyond+", which this run was not granted").WithFix("start it by itself", "atip-exec -- "+quote.Words(s.Argv))
		}
	}
	if !typed && s.Zone == gate.Code && !g.spent && sub.ByFile(s.Path) {
		return gate.Verdict{Go: true, File: true}, nil
	}
	return gate.Verdict{Go: true, Words: true, Code: sub.Steps[0].RunsCode != policy.CodeNone}, nil
}

// permitted is nil if the decision allows the start, or an approval covers it.
func (g *Decider) permitted(sub *plan.Plan) error {
	refusal := sub.Refusal()
	if refusal == nil {
		return nil
	}
	own := permit.New(sub, func(string) {}, g.clean, nil)
	if err := own.Permit(refusal); err != nil {
		return own.Refuse(err)
	}
	g.spent = true
	return own.Spend()
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
			return nil, fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+": "+s.Path+" would be started under another name")
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
func ownWrites(p *plan.Plan, path string) bool {
	return subpath.Within(path, p.Workspace) || subpath.Within(path, p.Private) || slices.ContainsFunc(p.World.TmpDirs, func(dir string) bool { return subpath.Within(path, dir) })
}

// beyond names what a start would be granted that the run does not hold, "" for nothing.
func beyond(start, run policy.Grants) string {
	switch {
	case start.Net > run.Net && start.Net > policy.NetLoopback:
		return "the network"
	case start.Effects&^run.Effects != 0:
		return strings.Join(plan.DangersOf(start.Effects&^run.Effects), ", ")
	}
	return ""
}

// report tells of a start that did not happen, once it is known that it did not.
func (g *Decider) report(r gate.Report) {
	g.told.Lock()
	defer g.told.Unlock()
	f, ok := r.Why.(*fault.Fault) // a remembered one is told again
	if !ok && r.Why != nil {
		f = fault.New(errcode.Denied, "denied: "+quote.Words(r.Start.Argv)+": "+r.Why.Error())
		if errors.Is(r.Why, gate.ErrTraced) {
			f.WithFix("start it without the debugger; sandbox.trace in the user's policy lets debuggers start programs where rules restrict some", "")
		}
	}
	if f == nil {
		f = fault.New(errcode.Denied, "denied: "+quote.Words(r.Start.Argv))
	}
	if g.refused++; g.refused > maxRefusedStarts {
		return
	}
	argv := marshal.CleanAll(r.Start.Argv, g.clean)
	f.With("at", "exec").With("argv", argv).With("zone", r.Start.Zone.String())
	f.Redact(g.clean)
	g.refusals = append(g.refusals, refusedStart{Argv: argv, Code: f.Code, Message: f.Message})
	g.note("start_refused", f)
}

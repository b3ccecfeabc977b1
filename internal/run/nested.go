package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/sandbox"
)

// A run inside a run cannot write the audit log: no sandbox lets it. It sends its record
// to the outermost one, which keeps it as what the inside said: anything below could
// have sent it.
const (
	parentVariable   = "ATIP_EXEC_PARENT"   // fd:N, a socket to the run right outside
	runVariable      = "ATIP_EXEC_RUN"      // the id of the run right outside
	withheldVariable = "ATIP_EXEC_WITHHELD" // names of the credentials that its sandbox lacks, colons between

	maxNestedRecord = 48 << 10
	maxNested       = 256 // records of one run

	// patience is for a socket whose other end does not read. A deadline that has passed
	// before the first try fails it, so it is longer than a busy machine takes to get there.
	patience = 10 * time.Second
)

// recorder is where the records of a run go.
type recorder interface {
	Append(rec any) (id string, err error)
	Reserve() error
	Close() error
}

// nestedRecord is what a run inside says of itself.
type nestedRecord struct {
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	Parent   string          `json:"parent,omitempty"`
	Argv     []string        `json:"argv"`
	Cwd      string          `json:"cwd"`
	Session  string          `json:"session,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Chain    []string        `json:"chain,omitempty"`
	Exit     *int            `json:"exit,omitempty"`
	State    string          `json:"state,omitempty"`
	Decision *nestedDecision `json:"decision,omitempty"`
	Error    *nestedError    `json:"error,omitempty"`
	ByParent string          `json:"started_by_parent,omitempty"` // the parent run that started it instead
}

type nestedDecision struct {
	Action string   `json:"action"`
	Rules  []string `json:"rules"`
}

type nestedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// inside reports that this run is inside another, whose sandbox keeps it from the state
// directory. The variable alone says nothing, as an agent can set it, nor does a private
// root, which whoever is not confined can imitate, and neither does a log
// that cannot be opened: at T2 a command may have taken the mode of its directory. What
// nobody can fake is that this very process is under a filter that cannot be taken off.
func (p *Plan) inside() bool {
	if p.machine.Getenv("ATIP_EXEC_SANDBOX") == "" && sandbox.FindOuter() == nil || !filtered() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(p.dirs.State, "audit", "lock"), os.O_RDWR, 0)
	if err == nil {
		f.Close()
		return false
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrNotExist)
}

// filtered reports whether the kernel confines this process for good.
func filtered() bool {
	raw, err := os.ReadFile("/proc/self/status")
	return err == nil && bytes.Contains(raw, []byte("\nNoNewPrivs:\t1\n")) && bytes.Contains(raw, []byte("\nSeccomp:\t2\n"))
}

// receipt is what the sandbox enforces, and inside of what.
func (p *Plan) receipt() sandbox.Receipt {
	if p.enforced != nil {
		return *p.enforced
	}
	r := p.Setup.Receipt()
	// A private root says itself which tier it is; of a lower one there is only the variable.
	if r.Nested.Outer == nil && p.inside() {
		outer := "unknown"
		if tier, ok := sandbox.TierByName(p.machine.Getenv("ATIP_EXEC_SANDBOX")); ok {
			outer = tier.String()
		}
		r.Nested.Outer = &outer
	}
	return r
}

// probeCache is where the sandbox keeps what it learned and what it must restore. A run
// inside another has a directory of its own for that, as long as it lasts; what it
// misses of the protected names the parent run still sees.
func (p *Plan) probeCache() sandbox.Cache {
	c := sandbox.Cache{Dir: p.dirs.State, Executable: p.machine.Self}
	if p.starts && p.inside() {
		c.Dir = "" // no state, which the sandbox then says itself
		if dir, err := os.MkdirTemp(p.machine.Getenv("TMPDIR"), "atip-exec-"); err == nil {
			p.innerState, c.Dir = dir, dir
		}
	}
	return c
}

// mayNest reports whether something of the run may start us again: a command of ours in
// it, or the directory in PATH that puts us in front of the shells.
func (p *Plan) mayNest() bool {
	if p.reading.Nestable {
		return true
	}
	return slices.Contains(filepath.SplitList(p.machine.Getenv("PATH")), filepath.Join(p.dirs.Data, "bin"))
}

// grantNested lets a run inside read the policies and the metadata that this one was
// decided by; without the user's policy it would be stricter or fail.
func (p *Plan) grantNested(in *sandbox.Input) {
	in.Outer = p.host.Outer() != nil
	if !p.mayNest() {
		return
	}
	config := func(name string) string { return filepath.Join(p.dirs.Config, name) }
	for _, path := range []string{config("policy.json"), config("delegation.pub"), config("approvers.json"), config("overrides"), config("trust"), p.dirs.WorkspacesFile(), place.HomesFile(), p.dirs.Data} {
		if _, err := os.Lstat(path); err == nil {
			in.Policy.Read = append(in.Policy.Read, sandbox.PathRule{Path: path, Rule: "for a run inside"})
		}
	}
}

// nestVariables tells a run inside where to send its record.
func (p *Plan) nestVariables(set map[string]string) {
	if !p.starts || p.inv.behalf != nil || !p.mayNest() {
		return
	}
	p.nestFD = freeDescriptor(p.textFD)
	set[parentVariable], set[runVariable] = "fd:"+strconv.Itoa(p.nestFD), p.Run
}

// freeDescriptor is a number that is neither named on the command line nor taken.
func freeDescriptor(taken ...int) int {
	for fd := 10; ; fd++ {
		if !slices.Contains(taken, fd) && !slices.Contains(sandbox.InheritedFDs(), fd) {
			return fd
		}
	}
}

// withhold tells a run inside which credentials it will not find: those that this run
// was not given itself, too.
func (p *Plan) withhold(dropped []string) {
	if p.nestFD == 0 {
		return
	}
	for _, name := range append(p.withheldOutside(), dropped...) {
		if !slices.Contains(p.env.credentials, name) && !slices.Contains(p.withheld, name) && !strings.Contains(name, ":") {
			p.withheld = append(p.withheld, name)
		}
	}
	if len(p.withheld) == 0 {
		return
	}
	slices.Sort(p.withheld)
	p.env.entries = append(p.env.entries, withheldVariable+"="+strings.Join(p.withheld, ":"))
	p.env.passed = append(p.env.passed, withheldVariable)
	slices.Sort(p.env.passed)
}

// withheldOutside lists what the parent run of this one says it has withheld.
func (p *Plan) withheldOutside() []string {
	names := p.machine.Getenv(withheldVariable)
	if names == "" || !p.inside() {
		return nil
	}
	return strings.Split(names, ":")
}

// bindNested gives the child one end of a socket on which runs inside send their records
// and their questions. Each run has its own, also inside another: what comes from below
// is judged here before anybody further out hears of it.
func (x *execution) bindNested() {
	p := x.plan
	if p.nestFD == 0 {
		return
	}
	from, to, err := recordPair()
	if err != nil {
		return // the record of this run covers what it starts
	}
	x.binds.pass[p.nestFD] = to
	x.binds.opened = append(x.binds.opened, to)
	x.inner = &inner{x: x, from: from, done: make(chan struct{})}
}

// listen hears them from the start of the command on, when all that an answer rests on is
// settled.
func (x *execution) listen() {
	if x.inner != nil {
		x.inner.heard = true
		go x.inner.read()
	}
}

// inner hears the runs inside this one.
type inner struct {
	x       *execution
	from    *os.File
	records []nestedRecord
	count   int
	heard   bool
	done    chan struct{}
	broker  broker
}

func (in *inner) read() {
	defer close(in.done)
	buf := make([]byte, maxQuestion+1)
	for {
		n, files, err := receiveWith(in.from, buf, true)
		if err != nil {
			return
		}
		if len(files) > 0 {
			in.question(buf[:min(n, maxQuestion)], files)
			continue
		}
		in.record(buf[:n])
	}
}

func (in *inner) record(raw []byte) {
	var r nestedRecord
	if len(raw) > maxNestedRecord || in.count == maxNested || json.Unmarshal(raw, &r) != nil {
		return
	}
	in.count++
	if up, ok := in.x.log.(*upward); ok {
		up.send(r) // at once: this run may be killed before its end
	} else {
		in.records = append(in.records, r)
	}
}

// rest takes what came before the reader was told to stop and was not read yet.
func (in *inner) rest() {
	buf := make([]byte, maxNestedRecord+1)
	for {
		n, files, err := receiveWith(in.from, buf, false)
		if err != nil {
			return
		}
		for _, f := range files {
			f.Close() // it is too late for questions
		}
		if len(files) == 0 {
			in.record(buf[:n])
		}
	}
}

// recordInner writes the collected records. All senders are gone, unless one got away
// from the end of the tree.
func (x *execution) recordInner() {
	if x.inner == nil {
		return
	}
	x.binds.closeOpened()
	if !x.inner.heard {
		x.inner.from.Close() // nothing was started
		return
	}
	select {
	case <-x.inner.done:
	case <-time.After(drive.HeldGrace):
		x.inner.from.SetReadDeadline(time.Now())
		<-x.inner.done
		x.inner.from.SetReadDeadline(time.Time{})
		x.inner.rest()
	}
	x.inner.from.Close()
	for _, r := range x.inner.records {
		r.Argv = x.cleanAll(r.Argv)
		r.Cwd = x.clean(r.Cwd)
		if r.Error != nil {
			r.Error.Message = x.clean(r.Error.Message)
		}
		// A record that cannot be written now is one that nobody vouches for.
		_, _ = x.log.Append(map[string]any{"kind": "nested", "parent": x.plan.Run, "unverified": true, "argv": r.Argv, "cwd": r.Cwd, "session": r.Session, "agent": r.Agent,
			"chain": r.Chain, "exit": r.Exit, "state": r.State, "decision": r.Decision, "error": r.Error, "inner": map[string]string{"id": r.ID, "kind": r.Kind, "parent": r.Parent, "started_by_parent": r.ByParent}})
	}
}

// upward is the recorder of a run inside another.
type upward struct {
	to     *os.File // nil if there is no way
	parent string
}

func (p *Plan) upward() *upward {
	u := &upward{parent: p.machine.Getenv(runVariable)}
	if text, ok := strings.CutPrefix(p.machine.Getenv(parentVariable), "fd:"); ok {
		if fd, err := strconv.Atoi(text); err == nil && fd > 2 {
			u.to = recordSocket(fd)
		}
	}
	return u
}

// Append sends what an outer run keeps of a record. That it arrives is not promised.
func (u *upward) Append(rec any) (string, error) {
	var raw []byte
	var id string
	var err error
	switch r := rec.(type) {
	case audit.Encoded:
		raw, id = r.Object, r.ID
	default:
		raw, err = encode(rec)
	}
	var n nestedRecord
	if err != nil || json.Unmarshal(raw, &n) != nil || u.to == nil {
		return id, nil
	}
	if id != "" {
		n.ID = id
	}
	n.Parent = u.parent
	u.send(n)
	return id, nil
}

// send shortens a record until it fits.
func (u *upward) send(n nestedRecord) {
	if u.to == nil {
		return
	}
	out, err := json.Marshal(n)
	for err == nil && len(out) > maxNestedRecord && len(n.Argv) > 0 {
		n.Argv = n.Argv[:len(n.Argv)/2]
		out, err = json.Marshal(n)
	}
	if err == nil {
		u.to.SetWriteDeadline(time.Now().Add(patience))
		_, _ = u.to.Write(out)
	}
}

// Reserve has nothing to reserve.
func (u *upward) Reserve() error { return nil }

// Close closes our copy of the way out.
func (u *upward) Close() error {
	if u.to == nil {
		return nil
	}
	return u.to.Close()
}

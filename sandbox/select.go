package sandbox

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Host is what this machine was seen to enforce.
type Host struct {
	OS       string `json:"os"`
	ABI      int    `json:"abi"` // Landlock; 0 is none
	Errata   int    `json:"errata"`
	Seccomp  bool   `json:"seccomp"`
	Root     bool   `json:"root"`               // runs have uid 0
	Landlock string `json:"landlock,omitempty"` // why it is missing
	// Namespaces is set where a private root could be made.
	Namespaces bool   `json:"namespaces"`
	Overlay    bool   `json:"overlay"` // in a private root
	NSWhy      string `json:"namespacesWhy,omitempty"`

	outer  *Outer // the parent run, if this one is in its private root
	kept   bool   // the answer of an earlier run
	scarce bool   // something was used up while it was asked, so the answer is not kept
	state  string // where protected names are kept during a run
	cgroup string // where groups are made; "" to look when a limit asks
}

// Cache says where Probe may keep its answer and for which executable.
type Cache struct{ Dir, Executable string }

// Enforce is what the kernel will enforce in a run of this machine; policy may
// count a "no" only for these.
type Enforce struct {
	Files bool // files.read and files.write
	Net   bool
}

// Setup is a chosen tier with its mechanisms. The zero Setup starts nothing.
type Setup struct {
	tier    Tier
	valid   bool
	host    Host
	profile Profile
	given   []Guarantee
	gaps    []Gap
	outside []Guarantee // what the parent run keeps in place of this one
	reduced []string
	limits  kept
	why     string // this tier and no other
}

// Enforceable tells, before there is a profile, what a run here will enforce.
func Enforceable(h Host) Enforce {
	ok := h.tier() >= T1
	return Enforce{Files: ok, Net: ok}
}

// PrivateRoots reports whether runs on this machine that may need one have a private root, under
// the tier that a policy forces; T0 is none.
func (h Host) PrivateRoots(forced Tier) bool { return h.HostLists(forced) }

// HostLists reports whether a run on this machine can be held to a list of hosts, under
// the tier that a policy forces; T0 is none.
func (h Host) HostLists(forced Tier) bool {
	return h.tier() == T3 && (forced == T0 || forced == T3)
}

// Parts reports whether a run on this machine keeps its signals and sockets apart from those of
// others, under the tier that a policy forces; T0 is none.
func (h Host) Parts(forced Tier) bool {
	return h.tier() >= T2 && (forced == T0 || forced >= T2)
}

// tier is the highest tier this machine can give.
func (h Host) tier() Tier {
	switch {
	case h.ABI < 1 || !h.Seccomp:
		return T0
	case h.ABI < scopeABI:
		return T1
	case h.Namespaces:
		return T3
	}
	return T2
}

// Landlock versions that Select asks for.
const (
	truncateABI    = 3
	scopeABI       = 6
	resolveUnixABI = 9
)

// Select chooses the lowest tier that gives what the profile needs and names every
// gap. A gap that policy does not accept is a *GapError; a host that cannot confine
// is an *UnconfinedError, unless policy spells out that it need not.
func Select(p Profile, h Host) (Setup, error) {
	if p.Confine == ConfineNone {
		s := Setup{tier: T0, valid: true, host: h, profile: p, why: "the policy says confine: none"}
		for _, g := range Guarantees() {
			s.gaps = append(s.gaps, Gap{Guarantee: g, Why: "policy says confine: none"})
		}
		return s, nil
	}
	best := h.tier()
	if best == T0 {
		return Setup{}, Unconfined(h.missing())
	}
	if p.KeepLeftovers && best == T3 {
		// A namespace ends with its init, whatever is in it.
		best, h.Namespaces, h.NSWhy = T2, false, "process.leftovers is keep, and a private root ends with the command"
	}
	if p.Forced != T0 {
		if p.Forced > best && (h.outer == nil || p.Forced > h.outer.Tier) {
			return Setup{}, &GapError{Tier: p.Forced, Gaps: []Gap{{Guarantee: Kernel, Why: h.lacks(p.Forced)}}}
		}
		best = min(best, p.Forced)
	}
	s := at(p, h, best)
	switch {
	case p.Forced > best:
		s.why = "the policy says tier " + p.Forced.String() + ", the tier of the parent run"
	case p.Forced != T0:
		s.why = "the policy says tier " + best.String()
	case best == T3:
		// The lower tier starts faster and disturbs less, where it lacks nothing that this
		// run needs. What policy accepts does not count here: it is for machines that cannot
		// do better.
		lower := at(p, h, T2)
		s.why = "T2 lacks " + names(lower.gaps)
		switch {
		case p.Temporary:
			s.why = "it names a path in /tmp, and the runs of a workspace have a private /tmp"
		case p.Layered && h.Overlay && len(lower.gaps) == 0:
			s.why = "its tool writes to a cache of the host, over which a private root puts a layer"
		case len(lower.gaps) == 0:
			s = lower
			s.why = "it is sufficient for this run"
		}
	default:
		s.why = "the highest of this machine"
	}
	missing := s.refused()
	if missing == nil {
		return s, nil
	}
	if s.limits.problem != nil && len(missing) == 1 && missing[0].Guarantee == LimitsKept {
		return Setup{}, s.limits.problem
	}
	return Setup{}, &GapError{Tier: s.tier, Gaps: missing}
}

// names lists the guarantees of gaps.
func names(gaps []Gap) string {
	out := ""
	for i, g := range gaps {
		if i > 0 {
			out += ", "
		}
		out += string(g.Guarantee)
	}
	return out
}

// refused are the gaps that policy does not accept. What one layer requires, the
// acceptance of another, or of the built-in policy, does not take away.
func (s *Setup) refused() []Gap {
	var out []Gap
	for _, g := range s.gaps {
		if g.Guarantee == NetGranted && s.profile.Net.Mode == NetFull && !slices.Contains(s.profile.Need, NetGranted) {
			continue // whoever asked for full in place of a list has accepted it
		}
		if slices.Contains(s.profile.Need, g.Guarantee) || !slices.Contains(s.profile.Accept, g.Guarantee) {
			out = append(out, g)
		}
	}
	return out
}

// at is the setup of p on tier t with what it gives and lacks.
func at(p Profile, h Host, t Tier) Setup {
	s := Setup{tier: t, valid: true, host: h, profile: p, limits: keep(p.Limits, t, h)}
	for _, g := range Guarantees() {
		why, fix := s.lacks(g)
		switch {
		case why == "":
			s.given = append(s.given, g)
		case h.outer.holds(g, &p):
			s.outside = append(s.outside, g)
		case s.needed(g):
			s.gaps = append(s.gaps, Gap{Guarantee: g, Why: why, Fix: fix})
		}
	}
	s.reduce()
	return s
}

// needed reports whether the run needs g: all, except that a command which is known,
// only reads and has no network need not be blind to names and command lines.
func (s *Setup) needed(g Guarantee) bool {
	if slices.Contains(s.profile.Need, g) {
		return true
	}
	switch g {
	case FilesHidden, ProcHidden, TreeKilled:
		return !s.profile.PlainRead
	}
	return true
}

// lacks says why the tier does not give g, "" if it does.
func (s *Setup) lacks(g Guarantee) (why, fix string) {
	p := &s.profile
	private := s.tier == T3
	namespaces := "user namespaces are not usable here"
	fix = "`atip doctor` lists what tier T3 lacks here"
	switch {
	case s.profile.Forced != T0 && s.profile.Forced == s.tier:
		namespaces = "the policy says tier " + s.tier.String()
		fix = "sandbox.tier T3 or none in the policy"
	case s.host.NSWhy != "":
		namespaces = s.host.NSWhy
	case s.host.Namespaces:
		namespaces, fix = "tier "+s.tier.String()+" makes no namespaces", "tier T3 gives it: atip-exec takes that where a run needs it, and `sandbox.tier` in a policy demands it"
	}
	switch g {
	case FilesMeta:
		if !private && p.HostWrite {
			return "file modes outside can change while something is writable: " + namespaces, fix
		}
	case FilesHidden, ProcHidden, TreeKilled:
		if !private {
			return namespaces, fix
		}
	case WSProtect:
		if !private && p.workspaceWritable() {
			if slices.Contains(p.Need, WSProtect) {
				fix += "; where our programs lie in the workspace, keep them elsewhere"
			}
			return "protected names can change during the run: " + namespaces, fix
		}
	case TreeEnd:
		if p.KeepLeftovers {
			return "the policy keeps what a command leaves behind, which can also change protected names once they were compared", "accept tree.end in sandbox.accept, or leave process.leftovers out"
		}
	case Privilege:
		if len(p.Caps) > 0 {
			return "the policy keeps capabilities: " + strings.Join(p.Caps, ", "), "accept privilege in sandbox.accept, or leave process.caps out"
		}
	case TmpPrivate:
		if p.Tmp == TmpHost {
			return "the policy gives the host's temporary directories", "accept tmp.private in sandbox.accept, or leave sandbox.tmp out"
		}
	case WSCheck:
		if p.workspaceWritable() && s.host.state == "" {
			return "there is no state directory to keep protected names in", ""
		}
	case ProcSignal:
		if s.host.ABI < scopeABI && !private {
			return "signals to other processes need Landlock ABI 6", "Linux 6.12 or newer"
		}
	case NetGranted:
		switch {
		case p.Net.Mode == NetAllowlist && !private:
			return "only a network of its own can be held to a list of hosts: " + namespaces, fix
		case p.Net.Mode == NetFull && p.Net.Because != "":
			return "the whole network in place of a list of hosts: " + p.Net.Because, "name the host in the command line"
		case p.Net.Mode == NetFull && len(p.Net.Unbounded) > 0:
			return "the whole network in place of a list of hosts: " + namespaces, fix
		}
	case LimitsKept:
		if s.limits.problem != nil {
			return s.limits.problem.Error(), ""
		}
	}
	return "", ""
}

// reduce names conveniences that this tier withholds to keep its guarantees.
func (s *Setup) reduce() {
	if s.tier == T3 {
		return
	}
	p := &s.profile
	if p.Net.Mode == NetLoopback {
		s.reduced = append(s.reduced, "network loopback: none")
	}
	if len(p.Unix) > 0 && len(s.Sockets()) == 0 {
		s.reduced = append(s.reduced, "sockets: none, as this kernel cannot bound them")
	}
	if (p.Net.Mode == NetNone || p.Net.Mode == NetLoopback || p.Net.Mode == NetFull) && s.host.ABI < resolveUnixABI {
		s.reduced = append(s.reduced, "AF_UNIX: socketpair only")
	}
	s.reduced = append(s.reduced, "/dev/shm: none", "inner terminals: none")
	if p.Tmp == TmpRun {
		s.reduced = append(s.reduced, "temporary files: those of earlier runs of the workspace are there, as this tier has no file system of its own")
	}
	for _, path := range p.Mask {
		s.reduced = append(s.reduced, path+": readable, as this tier cannot hide a file in a granted directory")
	}
}

func (p *Profile) workspaceWritable() bool {
	return slices.ContainsFunc(p.Write, func(g Grant) bool {
		return p.Workspace != "" && (subpath.Within(g.Path, p.Workspace) || subpath.Within(p.Workspace, g.Path))
	})
}

// missing says why nothing can be confined here.
func (h Host) missing() string {
	switch {
	case h.Landlock != "":
		return h.Landlock
	case !h.Seccomp:
		return "system call filters are not usable here"
	}
	return "no sandbox on " + h.OS
}

func (h Host) lacks(t Tier) string {
	if t == T3 && h.ABI >= scopeABI {
		if h.NSWhy != "" {
			return h.NSWhy
		}
		return "user namespaces are not usable here"
	}
	return "tier " + t.String() + " needs Landlock ABI 6"
}

// Tier returns the chosen tier.
func (s Setup) Tier() Tier { return s.tier }

// Shortfall is what this run does without because the machine cannot keep it: not where the
// policy chose the tier, or no confinement at all. The reason is why there is no higher tier.
func (s Setup) Shortfall() (gaps []Gap, why string) {
	if s.tier == T0 || s.tier == T3 || s.profile.Forced != T0 {
		return nil, ""
	}
	return s.gaps, s.host.lacks(T3)
}

// Sockets are the sockets outside that the run can connect to.
func (s *Setup) Sockets() []string {
	if s.tier == T3 || s.tier == T0 || s.host.ABI >= resolveUnixABI {
		return s.profile.Unix
	}
	return nil
}

// Env is what the run is told about its sandbox. It is information only.
func (s Setup) Env() []string { return []string{"ATIP_EXEC_SANDBOX=" + s.tier.String()} }

// defaultProcesses bounds a fork bomb where processes are counted for free.
const defaultProcesses = 4096

// How a limit is kept.
const (
	byRlimit     = "rlimit"
	byUserNS     = "rlimit-userns"
	byCgroup     = "cgroup"
	byMountSize  = "tmpfs"
	byAbsence    = "none there"
	sharedMemory = 256 << 20 // of /dev/shm, unless a limit says otherwise
)

// kept is what becomes of the limits at a tier.
type kept struct {
	limits  Limits            // with defaults
	by      map[string]string // mechanism of each limit that is set
	cgroup  string            // where a group of this run is made; "" for none
	max     map[string]uint64 // its limits
	problem error             // a limit that cannot be kept
}

// keep chooses the mechanism of each limit. Processes are counted by the kernel per user
// of the whole machine, except in a user namespace, and for root not at all
// (setrlimit(2)); a control group counts them for everybody.
func keep(l Limits, t Tier, h Host) kept {
	k := kept{limits: l, by: map[string]string{}}
	if t == T0 {
		return k
	}
	group := func(file, controller string, max uint64) string {
		where, why := h.cgroupFor(controller)
		if where == "" {
			return why
		}
		if k.max == nil {
			k.max = map[string]uint64{}
		}
		k.cgroup, k.max[file] = where, max
		return ""
	}
	for name, max := range map[string]uint64{"openFiles": l.OpenFiles, "cpu": l.CPU, "fileSize": l.FileSize} {
		if max != 0 {
			k.by[name] = byRlimit
		}
	}
	if l.Memory != 0 {
		k.by["memory"] = byCgroup
		if group(cgroupMemory, "memory", l.Memory) != "" {
			k.by["memory"] = byRlimit // of each process, RLIMIT_DATA
		}
	}
	switch {
	case t == T3 && !h.Root:
		if l.Processes == 0 {
			k.limits.Processes = defaultProcesses
		}
		k.by["processes"] = byUserNS
	case l.Processes != 0:
		if why := group(cgroupProcesses, "pids", l.Processes); why != "" {
			k.problem = limitError("processes", "processes of "+whose(h)+" are counted by a control group only, and "+why)
			k.limits.Processes = 0
			break
		}
		k.by["processes"] = byCgroup
	}
	if t == T3 {
		if l.Shm == 0 {
			k.limits.Shm = sharedMemory
		}
		k.by["shm"] = byMountSize
	} else if l.Shm != 0 {
		k.by["shm"] = byAbsence // lower tiers have no /dev/shm
	}
	return k
}

func whose(h Host) string {
	if h.Root {
		return "root"
	}
	return "one run at this tier"
}

// ofProcess are the limits that processes set on themselves.
func (k kept) ofProcess() Limits {
	l := k.limits
	if k.by["memory"] == byCgroup {
		l.Memory = 0
	}
	if k.by["processes"] == byCgroup {
		l.Processes = 0
	}
	return l
}

// noCgroup as Host.cgroup means that there is none, whatever this machine has.
const noCgroup = "none"

// cgroupFor finds where a group with the controller can be made. It is asked only if a
// limit needs one.
func (h Host) cgroupFor(controller string) (dir, why string) {
	switch h.cgroup {
	case "":
		return findCgroup([]string{controller})
	case noCgroup:
		return "", "this host has no control groups"
	}
	return h.cgroup, ""
}

// value is the limit of that name.
func (l Limits) value(name string) uint64 {
	switch name {
	case "openFiles":
		return l.OpenFiles
	case "cpu":
		return l.CPU
	case "fileSize":
		return l.FileSize
	case "memory":
		return l.Memory
	case "processes":
		return l.Processes
	case "shm":
		return l.Shm
	}
	return 0
}

// Change is a protected name that differs after a run.
type Change struct {
	Path   string `json:"path"`
	What   string `json:"what"`   // new, changed, removed
	Action string `json:"action"` // quarantined, restored, reported
	Code   string `json:"code"`   // E4111 put back, E4112 could not be put back
	Kept   string `json:"kept,omitempty"`
	Run    string `json:"run,omitempty"` // under which it is kept
	Err    string `json:"error,omitempty"`
}

// Settlement is what the comparison of the protected names found and did.
type Settlement struct {
	Checked int
	Changes []Change // also of earlier runs whose wrapper was killed
	// Repositories are git directories that the run made elsewhere in the workspace. They
	// are told and left.
	Repositories []string
	Unpinned     int  // names that are there and could change during the run, for want of mounts
	Lost         bool // git's own pointers could not all be followed
	Truncated    bool // not all of the workspace was looked at for them
}

// maxListedChanges bounds what a receipt lists.
const maxListedChanges = 256

// Receipt is the settlement as receipts carry it.
func (s Settlement) Receipt() ProtectedReceipt {
	r := ProtectedReceipt{Checked: s.Checked, Changed: []string{}, Repositories: s.Repositories, Unpinned: s.Unpinned, Truncated: s.Truncated}
	for i, c := range s.Changes {
		if i == maxListedChanges {
			r.Truncated = true
			break
		}
		r.Changed = append(r.Changed, c.Path)
	}
	return r
}

// TierReport is what one tier gives on this machine, for a run that may write in its
// workspace and has no network.
type TierReport struct {
	Tier   Tier        `json:"tier"`
	Usable bool        `json:"usable"`
	Why    string      `json:"why,omitempty"` // it is not usable
	Given  []Guarantee `json:"given"`
	Gaps   []Gap       `json:"gaps"`
}

// Tiers says for each tier that confines whether it is usable here, and what it gives.
func (h Host) Tiers() []TierReport {
	p := Profile{Workspace: "/w", Write: []Grant{{Path: "/w", Dir: true, Rights: Read | Write | Remove}}, HostWrite: true}
	best := h.tier()
	var out []TierReport
	for t := T1; t <= T3; t++ {
		r := TierReport{Tier: t, Usable: t <= best && best != T0, Given: []Guarantee{}, Gaps: []Gap{}}
		switch {
		case r.Usable:
			// What the higher tier would add is the tier's lack, not the machine's.
			s := at(p, h, t)
			r.Given, r.Gaps = list(s.given), list(s.gaps)
		case best == T0:
			r.Why = h.missing()
		default:
			r.Why = h.lacks(t)
		}
		out = append(out, r)
	}
	return out
}

// Cgroup says whether limits of a whole run can be kept by a control group: in which
// directory, or why not.
func (h Host) Cgroup() (dir, why string) { return h.cgroupFor("pids") }

package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Tier is a set of kernel mechanisms that were seen to work together. T0 confines
// nothing.
type Tier uint8

// Tiers in ascending order.
const (
	T0 Tier = iota // no Landlock, or another operating system
	T1             // Landlock ABI 1 to 5, and seccomp
	T2             // Landlock ABI 6 or newer, and seccomp
	T3             // T2 with user, mount, pid, net, ipc and uts namespaces
)

// String returns "T0" to "T3".
func (t Tier) String() string { return [...]string{"T0", "T1", "T2", "T3"}[t&3] }

// MarshalText implements encoding.TextMarshaler.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (t *Tier) UnmarshalText(b []byte) error {
	tier, ok := TierByName(string(b))
	if !ok {
		return fmt.Errorf("tier %q", b)
	}
	*t = tier
	return nil
}

// TierByName is the inverse of Tier.String.
func TierByName(name string) (Tier, bool) {
	for t := T0; t <= T3; t++ {
		if t.String() == name {
			return t, true
		}
	}
	return T0, false
}

// Guarantee names one promise about the whole process tree of a run.
type Guarantee string

// The guarantees.
const (
	FilesWrite  Guarantee = "files.write"
	FilesRead   Guarantee = "files.read"
	FilesMeta   Guarantee = "files.meta"
	FilesHidden Guarantee = "files.hidden"
	WSProtect   Guarantee = "ws.protect"
	WSCheck     Guarantee = "ws.check"
	NetGranted  Guarantee = "net"
	IPCUnix     Guarantee = "ipc.unix"
	IPCAbstract Guarantee = "ipc.abstract"
	IPCSysV     Guarantee = "ipc.sysv"
	ProcAttach  Guarantee = "proc.attach"
	ProcSignal  Guarantee = "proc.signal"
	ProcTune    Guarantee = "proc.tune"
	ProcHidden  Guarantee = "proc.hidden"
	TreeEnd     Guarantee = "tree.end"
	TreeKilled  Guarantee = "tree.killed"
	TmpPrivate  Guarantee = "tmp.private"
	Kernel      Guarantee = "kernel"
	Privilege   Guarantee = "privilege"
	LimitsKept  Guarantee = "limits"
)

// Guarantees lists all of them in the order in which they are reported.
func Guarantees() []Guarantee {
	return []Guarantee{FilesWrite, FilesRead, FilesMeta, FilesHidden, WSProtect, WSCheck, NetGranted, IPCUnix,
		IPCAbstract, IPCSysV, ProcAttach, ProcSignal, ProcTune, ProcHidden, TreeEnd, TreeKilled, TmpPrivate,
		Kernel, Privilege, LimitsKept}
}

// BuiltinAccept is what the built-in policy does without where the tier cannot
// give it; otherwise a stock machine without user namespaces could build nothing.
func BuiltinAccept() []Guarantee {
	return []Guarantee{FilesMeta, FilesHidden, WSProtect, ProcHidden, TreeKilled}
}

// Confine says whether the kernel confines the run. Only a policy that spells it
// out may set ConfineNone.
type Confine uint8

// The values of Confine.
const (
	ConfineKernel Confine = iota
	ConfineNone
)

// String returns the policy word.
func (c Confine) String() string {
	if c == ConfineNone {
		return "none"
	}
	return "kernel"
}

// Rights is what a grant allows on a path and, for a directory, below it.
type Rights uint8

// Rights bits. List is implied by Read; alone it allows reading directories but
// no file in them.
const (
	Read Rights = 1 << iota
	Write
	Exec
	Remove
	List
	Ioctl
	Connect // to a socket, by its path
)

// String lists the bits, comma-separated.
func (r Rights) String() string {
	out := ""
	for i, name := range [...]string{"read", "write", "exec", "remove", "list", "ioctl", "connect"} {
		if r&(1<<i) != 0 {
			if out != "" {
				out += ","
			}
			out += name
		}
	}
	return out
}

// MarshalText implements encoding.TextMarshaler.
func (r Rights) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Rights) UnmarshalText(b []byte) error {
	*r = 0
	if len(b) == 0 {
		return nil
	}
	for name := range strings.SplitSeq(string(b), ",") {
		bit := Read
		for ; bit <= Connect && bit.String() != name; bit <<= 1 {
		}
		if bit > Connect {
			return fmt.Errorf("right %q", name)
		}
		*r |= bit
	}
	return nil
}

// Grant gives rights on one path. Path is canonical; Why is where the grant comes
// from: "default", "workspace", "argv[2]", a rule id.
type Grant struct {
	Path   string `json:"path"`
	Dir    bool   `json:"dir,omitempty"`
	Rights Rights `json:"rights"`
	Why    string `json:"why"`
}

// Absent is a path that was asked for and is not granted.
type Absent struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// NetMode is how much network the tree gets.
type NetMode uint8

// Network modes in ascending order.
const (
	NetNone NetMode = iota
	NetLoopback
	NetAllowlist
	NetFull
)

// String returns the policy word.
func (m NetMode) String() string {
	return [...]string{"none", "loopback", "allowlist", "full"}[m&3]
}

// MarshalText implements encoding.TextMarshaler.
func (m NetMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (m *NetMode) UnmarshalText(b []byte) error {
	for mode := NetNone; mode <= NetFull; mode++ {
		if mode.String() == string(b) {
			*m = mode
			return nil
		}
	}
	return fmt.Errorf("network mode %q", b)
}

// Net is the network of a run.
type Net struct {
	Mode NetMode `json:"mode"`
	// Allow says in mode NetAllowlist what the proxy connects to, for the receipt; the
	// sandbox only takes care that there is no other way out.
	Allow []string `json:"hosts,omitempty"`
	// Forward lists ports of 127.0.0.1 in the run's own network that Cmd.Serve gets
	// listeners for, in mode NetAllowlist.
	Forward []int `json:"forward,omitempty"`
	// Direct lists hosts that programs which know no proxy connect to as they always do, in
	// mode NetAllowlist: their names lead to an address of the run's own network.
	Direct []Direct `json:"direct,omitempty"`
	// Unbounded lists the hosts that were granted where the mode is full only because
	// this run cannot be held to them.
	Unbounded []string `json:"unbounded,omitempty"`
	Because   string   `json:"because,omitempty"` // if that is not for want of namespaces
}

// Direct is a host by name, with one port.
type Direct struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// MaxDirect bounds Net.Direct: each is a socket.
const MaxDirect = 32

// addresses gives each host of Direct an address of the run's own network.
func (n *Net) addresses() map[string][4]byte {
	out := map[string][4]byte{}
	for _, d := range n.Direct {
		if _, ok := out[d.Host]; !ok {
			out[d.Host] = [4]byte{127, 77, 0, byte(len(out) + 1)}
		}
	}
	return out
}

// hostsFile is the text of /etc/hosts in a run: the machine's, with other addresses for
// the hosts of Direct.
func (n *Net) hostsFile(machine string) string {
	addresses := n.addresses()
	var b strings.Builder
	for _, d := range n.Direct {
		if a, ok := addresses[d.Host]; ok {
			fmt.Fprintf(&b, "%d.%d.%d.%d %s\n", a[0], a[1], a[2], a[3], d.Host)
			delete(addresses, d.Host)
		}
	}
	taken := n.addresses()
	for line := range strings.Lines(machine) {
		words, _, _ := strings.Cut(line, "#")
		names := strings.Fields(words)
		if len(names) < 2 || slices.ContainsFunc(names[1:], func(name string) bool { _, ok := taken[strings.ToLower(name)]; return ok }) {
			continue
		}
		b.WriteString(strings.Join(names, " ") + "\n")
	}
	return b.String()
}

// Where the proxy of a run listens, on 127.0.0.1 and ::1 of its own network.
const (
	ProxyPort = 3128 // HTTP
	SOCKSPort = 1080 // SOCKS5
)

// ProxyURL is what the variables of a run say of its proxy.
func ProxyURL() string { return "http://127.0.0.1:" + strconv.Itoa(ProxyPort) }

// Limits are resource limits; zero inherits the caller's.
type Limits struct {
	OpenFiles uint64 `json:"openFiles,omitempty"`
	Nice      int    `json:"nice,omitempty"`
	CPU       uint64 `json:"cpu,omitempty"`      // seconds
	FileSize  uint64 `json:"fileSize,omitempty"` // bytes
	Memory    uint64 `json:"memory,omitempty"`   // bytes, of the tree where a control group can be made, else of each process
	Shm       uint64 `json:"shm,omitempty"`      // bytes of /dev/shm
	Processes uint64 `json:"processes,omitempty"`
}

// Profile is everything a run may touch. The zero Profile grants nothing: no path,
// no network, no accepted gap, and the kernel must enforce it.
type Profile struct {
	Confine           Confine
	Workspace         string
	Private           string // directory for temporary files and caches of this workspace
	Home              string
	Layers            string // where the layers over caches are kept, which no run can write
	Read, Write, Exec []Grant
	Mask              []string // secrets below a granted directory
	Protect           []string // names in the workspace that must not change; a directory ends in "/"
	Pins              []string // names below the root of the workspace that a private root pins; found at the start
	Loose             []string // below these the call says that it changes things: configuration and repositories there are compared, not pinned
	Lifted            []string // paths that the run may change although their names are protected
	GitNames          []string // what is protected in git directories that are found when the run starts
	Settings          []string // secrets among the system's settings, which a private root covers
	GitDirs           []string // granted git directories outside the workspace
	Net               Net
	Unix              []string // outside pathname sockets
	SubprocessNo      bool
	Untraced          bool     // no process of the run may trace another one
	Ceiling           Ceiling  // derived: what may be started
	Scratch           []string // directories of this run alone, which it may write and nothing may be started from
	Caps              []string // that the run keeps if the caller has them
	KeepLeftovers     bool     // what the command leaves behind goes on running
	Tmp               Tmp      // what stands on /tmp
	Temporary         bool     // the call names something in /tmp, where there is a private one
	Layered           bool     // a cache of the host is read that the tool also writes, which takes a layer over it
	HostWrite         bool     // a path beyond the private directory may be written
	PlainRead         bool     // needs less: every executable is known, nothing but TMPDIR is written, no network
	Env               map[string]string
	Overlays          []Overlay         // caches of the host under a private layer, where there is a private root
	OverlayEnv        map[string]string // what then stands in place of Env
	Links             []link            // in the private directory, to caches of the host
	Limits            Limits
	Need              []Guarantee // beyond those that always apply
	Accept            []Guarantee
	Absent            []Absent
	Forced            Tier // T0: not forced
}

// Ceiling bounds which programs a run may start.
type Ceiling uint8

// The ceilings, from the strictest.
const (
	// ExecNone: the run is one program and starts no other.
	ExecNone Ceiling = iota
	// ExecClosed: files outside the write set only, either those that the documents of its
	// commands list or those of the system and the tools on PATH.
	ExecClosed
	// ExecGated: each start is decided when it happens. No run has it yet.
	ExecGated
	// ExecOpen: whatever can be read where programs lie, the workspace included.
	ExecOpen
)

// String is the word of the receipt.
func (c Ceiling) String() string { return [...]string{"none", "closed", "gated", "open"}[c&3] }

// MarshalText implements encoding.TextMarshaler.
func (c Ceiling) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (c *Ceiling) UnmarshalText(b []byte) error {
	for v := ExecNone; v <= ExecOpen; v++ {
		if v.String() == string(b) {
			*c = v
			return nil
		}
	}
	return fmt.Errorf("ceiling %q", b)
}

// Tmp says what a run finds on /tmp and /var/tmp.
type Tmp uint8

// The values of Tmp.
const (
	TmpKept Tmp = iota // the directory of its workspace
	TmpRun             // nothing, in a private root
	TmpHost            // what everybody has there
)

// grants are all grants of the profile.
func (p *Profile) grants() []Grant {
	all := make([]Grant, 0, len(p.Exec)+len(p.Read)+len(p.Write)+len(p.Unix))
	all = append(append(append(all, p.Exec...), p.Read...), p.Write...)
	for _, path := range p.Unix {
		all = append(all, Grant{Path: path, Rights: Connect, Why: "sockets"})
	}
	return all
}

// Names are the protected names and the places of secrets, which the caller knows. A name that
// ends in a slash is a directory whose whole content counts.
type Names struct {
	Tree    []string // in directories of the workspace
	CI      []string // in the same, if the policy protects them
	Git     []string // in a git directory: what git runs or is redirected by
	Secrets []string // absolute, in the system's settings
}

// protect lists the names in the writable workspace that must not change, whether they
// are there or not: what is planted today runs tomorrow, outside any sandbox.
func (d *deriver) protect() error {
	d.p.Lifted = d.in.ProtectAllow
	d.p.Settings, d.p.GitNames = d.in.Names.Secrets, d.in.Names.Git
	ws := d.p.Workspace
	if ws == "" || !d.p.workspaceWritable() {
		return nil
	}
	if len(d.in.Names.Tree) == 0 || len(d.in.Names.Git) == 0 {
		return &StepError{Step: "protect the workspace", Path: ws, Code: errcode.Internal, Err: errors.New("no protected names were handed in")}
	}
	for dir := ws; ; {
		for _, name := range d.in.Names.Tree {
			d.protectName(dir + "/" + name)
		}
		if d.in.Policy.ProtectCI {
			for _, name := range d.in.Names.CI {
				d.protectName(dir + "/" + name)
			}
		}
		for _, name := range d.in.Policy.Protected {
			if !filepath.IsAbs(name) {
				d.protectName(dir + "/" + name)
			}
		}
		// Both a git directory and the file that names one elsewhere.
		d.protectName(dir + "/.git")
		d.gitDirectory(dir + "/.git")
		next := between(ws, dir, d.in.Cwd)
		if next == "" {
			break
		}
		dir = next
	}
	for _, name := range d.in.Policy.Protected {
		if filepath.IsAbs(name) && subpath.Within(name, ws) {
			d.protectName(name)
		}
	}
	for _, g := range d.p.GitDirs {
		d.gitDirectory(g)
	}
	return nil
}

func (d *deriver) gitDirectory(dir string) {
	for _, name := range d.in.Names.Git {
		d.protectName(dir + "/" + name)
	}
}

// protectName leaves out what the call may change. Of a directory with such a path in it the
// rest stays protected.
func (d *deriver) protectName(path string) {
	clean := strings.TrimSuffix(path, "/")
	if !slices.ContainsFunc(d.p.Lifted, func(allowed string) bool { return subpath.Within(clean, allowed) }) {
		d.p.Protect = append(d.p.Protect, path)
	}
}

// lifts reports whether a protected directory holds a path that the run may change.
func (p *Profile) lifts(dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return slices.ContainsFunc(p.Lifted, func(path string) bool { return subpath.Within(path, dir) })
}

// between is the next directory on the way from dir down to cwd, "" at its end.
func between(ws, dir, cwd string) string {
	if !subpath.Within(cwd, ws) || cwd == dir || !subpath.Within(cwd, dir) {
		return ""
	}
	name, _, _ := strings.Cut(cwd[len(dir)+1:], "/")
	return dir + "/" + name
}

// grantSet merges grants by path.
type grantSet struct {
	list []Grant
	at   map[string]int
}

// add unites the rights of equal paths; the first reason stays, as it is the wider one.
func (s *grantSet) add(g Grant) {
	if i, ok := s.at[g.Path]; ok {
		if !covered(s.list[i].Rights, g.Rights) && s.list[i].Rights&(Write|Remove) == 0 && g.Rights&(Write|Remove) != 0 {
			s.list[i].Why = g.Why
		}
		s.list[i].Rights |= g.Rights
		return
	}
	if s.at == nil {
		s.at = make(map[string]int, 48)
	}
	s.at[g.Path] = len(s.list)
	s.list = append(s.list, g)
}

// compact drops each grant whose rights its ancestors already give: the kernel
// unites the rights along the path, so the rule would only cost time.
func (s *grantSet) compact() []Grant {
	slices.SortFunc(s.list, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	kept := s.list[:0]
	for _, g := range s.list {
		var have Rights
		for _, k := range kept {
			if k.Dir && k.Path != g.Path && subpath.Within(g.Path, k.Path) {
				have |= k.Rights
			}
		}
		if !covered(have, g.Rights) {
			kept = append(kept, g)
		}
	}
	return kept
}

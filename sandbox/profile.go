package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
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
	// ExecClosed: files outside the write set only, either its own commands and what their
	// documents list or, with rights, those of the system and the tools on PATH.
	ExecClosed
	// ExecGated: each start is decided when it happens.
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

// loaderOf returns the programs the kernel opens by itself to run path: interpreters
// of a script, one after the other, and the ELF loader of the last one.
func loaderOf(path string) []string {
	var out []string
	// The kernel follows at most four interpreters (BINPRM depth in fs/exec.c).
	for range 5 {
		next, err := interpreter(path)
		if err != nil || next == "" {
			return out
		}
		out = append(out, next)
		path = next
	}
	return out
}

// interpreter reads the #! line or the PT_INTERP segment of an executable; "" means
// that it needs none.
func interpreter(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("#!")) {
		line, _, _ := strings.Cut(string(head[2:]), "\n")
		name, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
		name, _, _ = strings.Cut(name, "\t")
		return strings.TrimRight(name, "\r"), nil
	}
	return elfInterpreter(f, head)
}

// elfInterpreter finds PT_INTERP in a 64-bit little-endian file, the only kind the
// supported architectures start: 32-bit programs die at their first system call.
func elfInterpreter(f io.ReaderAt, head []byte) (string, error) {
	if len(head) < 64 || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) {
		return "", nil
	}
	le := binary.LittleEndian
	at, size, count := int64(le.Uint64(head[32:])), int(le.Uint16(head[54:])), int(le.Uint16(head[56:]))
	if size < 56 || count == 0 || size*count > 1<<16 || at < 0 {
		return "", nil
	}
	table := make([]byte, size*count)
	if _, err := f.ReadAt(table, at); err != nil {
		return "", err
	}
	for i := range count {
		entry := table[i*size:]
		if le.Uint32(entry) != 3 { // PT_INTERP
			continue
		}
		offset, length := int64(le.Uint64(entry[8:])), le.Uint64(entry[32:])
		if length == 0 || length > 4096 || offset < 0 {
			return "", nil
		}
		name := make([]byte, length)
		if _, err := f.ReadAt(name, offset); err != nil {
			return "", err
		}
		return string(bytes.TrimRight(name, "\x00")), nil
	}
	return "", nil
}

// EnvTarget is the program that env(1) looks up to run a script whose first line names it, ""
// for any other file.
func EnvTarget(path string) string {
	f, err := regular.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) < 2 || !strings.HasSuffix(words[0], "/env") {
		return ""
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

// Script reports a file whose first line names its interpreter.
func Script(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#!"
}

// EnvFiles says when files of secrets in the workspace are hidden from a run.
type EnvFiles uint8

// The values of EnvFiles.
const (
	EnvFilesNetwork EnvFiles = iota // in runs that reach other machines
	EnvFilesMask                    // always
	EnvFilesAllow                   // never
)

// masks lists the secrets of the workspace that the run must not read: they would leave
// through the network. Without one, only the redacted output leaves.
func (d *deriver) masks() {
	for _, path := range d.in.SecretLinks {
		if !d.entitled(path) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, path), false
		}
	}
	for _, path := range d.in.Secrets {
		canonical, _, err := d.in.Files.Resolve(path)
		if err == nil && d.readable(canonical) && !d.entitled(path) && !d.secretGranted(canonical) {
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, canonical), false
		}
	}
	for _, path := range d.in.Hidden {
		switch {
		case d.entitled(path):
		case d.readable(path):
			d.p.Mask, d.p.PlainRead = append(d.p.Mask, path), false
		default:
			d.refuse(path, secretsHidden)
		}
	}
}

const secretsHidden = "hidden because it holds secrets; leave it out (--exclude), or run the project's own program that reads it"

// maxSiblings bounds the grants that stand in for one of a directory with a secret in it.
const maxSiblings = 64

// leaveOut takes the files that must not be read out of the rule set, since the kernel knows
// no exception from a rule: in place of a directory above one, each entry of it is granted but
// that. It needs a directory that nothing writes in; where there are too many entries, the
// private root covers the file.
func (d *deriver) leaveOut() {
	hidden := slices.DeleteFunc(slices.Clone(d.in.Hidden), d.entitled)
	if len(hidden) == 0 {
		return
	}
	var split grantSet
	count := 0
	var part func(dir string, g Grant) bool
	part = func(dir string, g Grant) bool {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false
		}
		split.add(Grant{Path: dir, Dir: true, Rights: List, Why: g.Why})
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case slices.Contains(hidden, path), e.Type()&os.ModeSymlink != 0:
			case e.IsDir() && slices.ContainsFunc(hidden, func(h string) bool { return subpath.Within(h, path) }):
				if !part(path, g) {
					return false
				}
			default:
				if count++; count > maxSiblings {
					return false
				}
				split.add(Grant{Path: path, Dir: e.IsDir(), Rights: g.Rights, Why: g.Why})
			}
		}
		return true
	}
	for _, g := range d.set.list {
		above := g.Dir && g.Rights&(Read|Exec) != 0 && slices.ContainsFunc(hidden, func(h string) bool { return subpath.Within(h, g.Path) })
		switch {
		case !above:
			split.add(g)
		case g.Rights&(Write|Remove) != 0 || !part(g.Path, g):
			return
		}
	}
	d.set = split
}

// readable reports whether something of the path lies in a granted directory.
func (d *deriver) readable(path string) bool {
	for _, list := range [...][]Grant{d.p.Read, d.p.Write, d.p.Exec} {
		for _, g := range list {
			if g.Rights != List && (g.Path == path || g.Dir && subpath.Within(path, g.Path)) {
				return true
			}
		}
	}
	return false
}

// secretGranted reports whether the call was granted reading secrets and names this one, or
// what lies in it.
func (d *deriver) secretGranted(path string) bool {
	if !d.in.Granted.Has(atip.SecretRead) {
		return false
	}
	return slices.ContainsFunc(d.in.Resources, func(r atip.Resource) bool {
		return r.Kind == "path" && r.Access&(atip.AccessRead|atip.AccessSecret) != 0 && subpath.Within(r.Abs, path)
	})
}

// entitled reports whether the tool or the policy names the file.
func (d *deriver) entitled(path string) bool {
	return slices.ContainsFunc(d.in.CredentialFiles, func(f string) bool { return expand(f, d.in.Home, d.p.Workspace) == path })
}

// Overlay lays a private layer over a cache of the host: what is there is read, what is
// written stays in the layer. A cache that runs share for writing could be poisoned, and
// a cold one makes every first build slow. Only a private root can hold one.
type Overlay struct {
	Lower string // the host's cache
	Name  string // of the layer
	Upper string // the layer, chosen at the start
}

// overlay asks for one over path, if there is such a directory, and says what the
// environment is then, instead of what lower tiers have.
func (d *deriver) overlay(name, path string, env map[string]string) {
	canonical, dir, err := d.in.Files.Resolve(path)
	if path == "" || err != nil || !dir || d.tooWide(canonical) != "" || subpath.Within(canonical, d.p.Workspace) || subpath.Within(canonical, d.p.Private) || d.stray(path, canonical, dir, "cache") != "" {
		return
	}
	d.p.Overlays = append(d.p.Overlays, Overlay{Lower: canonical, Name: name})
	if d.p.OverlayEnv == nil {
		d.p.OverlayEnv = map[string]string{}
	}
	maps.Copy(d.p.OverlayEnv, env)
}

// overlays reports whether the caches of the host are there under a private layer.
func (s *Setup) overlays() bool {
	return s.tier == T3 && s.host.Overlay && s.profile.Private != "" && s.profile.Layers != "" && len(s.profile.Overlays) > 0
}

// Environment is what the run gets for its temporary files and caches. An empty value
// means that the variable is not set.
func (s *Setup) Environment() map[string]string {
	if s.tier != T3 || s.profile.Private == "" {
		return s.profile.Env
	}
	out := make(map[string]string, len(s.profile.Env)+len(s.profile.OverlayEnv))
	maps.Copy(out, s.profile.Env)
	out["TMPDIR"] = "/tmp" // the same directory, and short enough for the name of a socket
	if s.overlays() {
		maps.Copy(out, s.profile.OverlayEnv)
	}
	return out
}

// outerDir is where a private root says what it is, for a run inside it.
const outerDir = "/run/atip-exec"

// outerVersion changes with every change of Outer.
const outerVersion = 1

// Outer is the parent run of this one, whose private root this process is in. What it
// promises about its own outside holds here too; nothing in here can take it back.
type Outer struct {
	V         int         `json:"v"`
	Tier      Tier        `json:"tier"`
	ABI       int         `json:"abi"`
	Errata    int         `json:"errata"`
	Given     []Guarantee `json:"given"`
	Workspace string      `json:"workspace"`
	Protect   []string    `json:"protect"` // what was pinned if it was there, and is compared
}

// asOuter is what a run under this setup says to the runs inside it.
func (s *Setup) asOuter() *Outer {
	protect := slices.DeleteFunc(slices.Clone(s.profile.Protect), s.profile.lifts)
	return &Outer{V: outerVersion, Tier: s.tier, ABI: s.host.ABI, Errata: s.host.Errata, Given: s.given,
		Workspace: s.profile.Workspace, Protect: protect}
}

// host is what this machine enforces inside of o: the probe's answer of the parent run,
// without what its filter refuses.
func (o *Outer) host(root bool) Host {
	return Host{OS: "linux", ABI: o.ABI, Errata: o.Errata, Seccomp: true, Root: root, outer: o,
		NSWhy: "this run is inside another one, which refuses namespaces"}
}

// holds reports whether the parent run keeps g for what p describes. Its promises are
// about its own outside, so those about the workspace need the same one.
func (o *Outer) holds(g Guarantee, p *Profile) bool {
	if o == nil || !slices.Contains(o.Given, g) {
		return false
	}
	switch g {
	case FilesMeta, FilesHidden, ProcHidden, TreeKilled, ProcSignal:
		return true
	case WSProtect:
		return o.Workspace == p.Workspace && !slices.ContainsFunc(p.Protect, func(name string) bool { return !slices.Contains(o.Protect, name) })
	}
	return false // the net of the parent run has its hosts, its limits are its own
}

// Outer is the run that this process is inside of, nil if there is none that has a
// private root.
func (h Host) Outer() *Outer { return h.outer }

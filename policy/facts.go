package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// truth is a three-valued result of a condition.
type truth uint8

const (
	isNo truth = iota
	isMaybe
	isYes
)

func truthOf(b bool) truth {
	if b {
		return isYes
	}
	return isNo
}

// values holds one truth per effect in terms of danger: Yes means the dangerous
// value, No that it is excluded.
type values [atip.NumEffects]atip.Value

// facts is a step with what follows from it alone, computed once.
type facts struct {
	step *Step
	req  *Request
	set  *Set
	base values // belief before anything is granted or withheld

	confidence Confidence // of the words and of their resolution
	known      bool
	channel    string
	hosts      []HostUse
	classes    []atip.Class // per resource, with the policy's own globs applied
	paths      [][]string   // every reading of the command path; nil if unresolved
}

// unresolved reports that the metadata does not know this call.
func (f *facts) unresolved() bool {
	return f.step.Call.Exactness == atip.Unresolved || f.step.Confidence == Opaque
}

func newFacts(s *Set, req *Request, step *Step) facts {
	c := &step.Call
	f := facts{step: step, req: req, set: s, channel: c.Provenance.Channel}
	f.channel = cmp.Or(f.channel, "none")
	f.known = c.Provenance.Rank >= atip.Org && step.Trust.Action == Allow
	f.confidence = min(step.Confidence, resolved(c.Exactness))
	if !f.unresolved() {
		f.paths = append(make([][]string, 0, 1+len(c.AltPaths)), c.Path)
		f.paths = append(f.paths, c.AltPaths...)
	}
	f.hosts = f.hostUses()
	for e := range atip.NumEffects {
		f.base[e] = f.believed(atip.Effect(e))
	}
	for _, via := range step.Via {
		if raisesRights(baseName(via)) {
			f.base[atip.Privileged] = atip.Yes
		}
	}
	if step.RunsCode != CodeNone {
		// The tool's "no" speaks for the tool, not for the code it is handed.
		for e := range f.base {
			if f.base[e] == atip.No && ownEffects.Has(atip.Effect(e)) {
				f.base[e] = atip.Unknown
			}
		}
	}
	if len(c.Resources) > 0 {
		f.classes = make([]atip.Class, len(c.Resources))
		for i := range c.Resources {
			f.classes[i] = f.classOf(&c.Resources[i])
		}
	}
	return f
}

// hostUses is the hosts of the step, made strict: a client that goes wherever it is
// told has no service of its own, so where its host is not known it is any host.
func (f *facts) hostUses() []HostUse {
	hosts := f.step.Hosts
	if !GenericClient(f.step.Call.Tool) && !GenericClient(baseName(f.step.Call.InvokedAs)) {
		return hosts
	}
	if len(hosts) == 0 {
		return []HostUse{{}}
	}
	out := append([]HostUse(nil), hosts...)
	for i := range out {
		if out[i].Kind == HostService {
			out[i].Kind = HostPublic
		}
	}
	return out
}

// GenericClient names clients without a service of their own: they go where they are told.
func GenericClient(tool string) bool {
	switch tool {
	case "curl", "wget", "http", "https", "httpie", "xh", "aria2c", "nc", "ncat", "netcat", "socat", "telnet", "openssl",
		"ssh", "scp", "sftp", "rsync", "ftp", "lftp", "dig", "nslookup", "host", "whois", "ping", "ping6", "traceroute",
		"tracepath", "mtr", "psql", "mysql", "mariadb", "redis-cli", "mongo", "mongosh", "ldapsearch":
		return true
	}
	return false
}

// ownEffects are those on which a tool cannot speak for code that it runs.
const ownEffects = dangerKeys &^ (fIrrevocable | fPrivileged)

// raisesRights reports whether what this wrapper runs has another user's rights.
func raisesRights(tool string) bool {
	switch tool {
	case "sudo", "doas", "su", "pkexec", "runuser":
		return true
	}
	return false
}

func resolved(e atip.Exactness) Confidence {
	switch e {
	case atip.Exact:
		return Exact
	case atip.Bounded:
		return Bounded
	}
	return Opaque
}

// believed is an effect in terms of danger: a dangerous value always counts, a
// harmless one if its source ranks high enough for this effect.
func (f *facts) believed(e atip.Effect) atip.Value {
	fact := &f.step.Call.Effects[e]
	if fact.Value == e.Dangerous() {
		return atip.Yes
	}
	if fact.Value == atip.Unknown || f.step.Confidence == Opaque {
		return atip.Unknown
	}
	if fact.Rank >= f.set.belief[e] {
		return atip.No
	}
	// The metadata format cannot state these two, so "no" is only its silence; a
	// confined run bounds them: no_new_privs, no capability, no way out.
	if (e == atip.Privileged || e == atip.ExecOpaque) && f.req.Enforce.Full() {
		return atip.No
	}
	return atip.Unknown
}

// under returns the values when the kernel withholds everything but granted.
func (f *facts) under(granted atip.Set) values {
	granted &^= f.set.withhold
	v := f.base
	for e := range v {
		if v[e] == atip.Unknown && f.blocked(atip.Effect(e), granted) {
			v[e] = atip.No
		}
	}
	return v
}

// blocked reports whether this run keeps an effect from happening.
func (f *facts) blocked(e atip.Effect, granted atip.Set) bool {
	on := &f.req.Enforce
	switch e {
	case atip.Network, atip.RemoteMutation, atip.Billable:
		return on.Net && !granted.Has(atip.Network) // nothing remote without a connection
	case atip.Write:
		return on.Files && !granted.Has(atip.Write)
	case atip.Delete:
		// Removal rights come with write rights, or no temporary file could be
		// renamed into place; only delete:"strict" parts them.
		return on.Files && !granted.Has(atip.Delete) && (on.DeleteStrict || !granted.Has(atip.Write))
	case atip.Destructive:
		return f.blocked(atip.Network, granted) && f.blocked(atip.Write, granted) && f.blocked(atip.Delete, granted)
	case atip.SecretRead:
		return on.Secrets && !granted.Has(atip.SecretRead)
	case atip.Persistence:
		return on.Files && !granted.Has(atip.Persistence)
	case atip.Privileged:
		return on.Files
	}
	return false
}

// danger is the set of danger keys that are or may be. Irreversible counts only
// if it is stated.
func (v *values) danger() atip.Set {
	var s atip.Set
	for e := range v {
		if v[e] == atip.Yes || v[e] == atip.Unknown && atip.Effect(e) != atip.Reversible {
			s = s.With(atip.Effect(e))
		}
	}
	return s & dangerKeys
}

// classOf is the class of a resource under this policy's own globs.
func (f *facts) classOf(r *atip.Resource) atip.Class {
	if r.Kind != "path" {
		return r.Class
	}
	if slices.ContainsFunc(f.set.self, func(g string) bool { return matchPath(g, r.Abs, f.req.Workspace) }) {
		return atip.ClassPolicySelf
	}
	c := r.Class
	if c != atip.ClassPolicySelf && c != atip.ClassDevice {
		for _, g := range f.set.secret {
			if matchPath(g, r.Abs, f.req.Workspace) {
				c = atip.ClassSecret
			}
		}
	}
	switch c {
	case atip.ClassSecret:
		// A tool that declares its own credential file may read it, no more.
		if r.Access&^(atip.AccessRead|atip.AccessSecret) == 0 {
			if slices.ContainsFunc(f.step.Entitled, func(e string) bool { return subpath.Within(r.Abs, e) }) {
				return atip.ClassOutside
			}
		}
	case atip.ClassTmp:
		// Below the shared directories is scratch; the directories themselves are not.
		if r.Access&atip.AccessDelete != 0 && (r.Abs == "/tmp" || r.Abs == "/var/tmp" || r.Abs == "/dev/shm") {
			return atip.ClassRoot
		}
	}
	return c
}

// Request is everything a decision depends on besides the policy itself.
type Request struct {
	Steps   []Step
	Edges   []Edge
	Enforce Enforce // what THIS run can enforce; zero: nothing
	Agent   string
	// Delegated says that the caller runs under a lead agent's restrictions.
	Delegated bool
	CI        bool
	Workspace string // real path; "" if there is none
	Cwd       string
	Chain     []Restrict // the blocks of a delegation, outermost first
	Ceiling   *Ceiling   // of the script that runs, nil for none
	// BillableLeft is how many billable calls the budget still permits. Zero makes
	// every billable call ask, whatever the rules say.
	BillableLeft int
	// Now is compared with the expiry of allow rules; if it is zero, every rule
	// that expires has expired.
	Now time.Time
}

// Enforce is what the kernel will hold a child to in this run.
type Enforce struct {
	Files        bool // writes and reads only where granted
	Net          bool // no network unless granted
	DeleteStrict bool // no removal at all unless delete is granted
	Secrets      bool // credential files unreadable, credential variables scrubbed
}

// Full reports whether both files and network are enforced, which is what the
// built-in allow rules for code of the workspace rest on.
func (e Enforce) Full() bool { return e.Files && e.Net }

// Confidence says how well the words of a step are known before the tool's
// metadata is asked. The zero value, Opaque, has every effect unknown.
type Confidence uint8

// Degrees of confidence in ascending order.
const (
	Opaque  Confidence = iota // the command itself is not known
	Bounded                   // the words are an upper bound
	Exact                     // a plain argv
)

// String returns the name used in policy documents.
func (c Confidence) String() string { return [...]string{"opaque", "bounded", "exact"}[c] }

// MarshalText implements encoding.TextMarshaler.
func (c Confidence) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// CodeKind says whose code a step runs besides the tool's own.
type CodeKind uint8

// Kinds of code. CodeOpaque is for text that could not be known at all, such as
// "python -c "$X"": it is never treated as the workspace's.
const (
	CodeNone    CodeKind = iota
	CodeProject          // files of the workspace: scripts, tests, builds, hooks, an executable in it
	CodeInline           // program text in the argv of an interpreter the built-in metadata knows
	CodeOpaque           // anything else that runs
)

// String returns the name used in policy documents.
func (k CodeKind) String() string { return [...]string{"none", "project", "inline", "opaque"}[k] }

// MarshalText implements encoding.TextMarshaler.
func (k CodeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Step is one command of a request: a plain argv has one, a shell string several.
type Step struct {
	Call       atip.Call
	Via        []string // wrappers around it, outermost first: "env", "timeout"
	Cwd        string   // "" means the request's
	File       FileFacts
	Trust      TrustFacts
	Confidence Confidence
	RunsCode   CodeKind
	// Entitled lists absolute paths of credential files this tool may read: those
	// its metadata declares, at a rank that may declare them.
	Entitled []string
	Hosts    []HostUse
	// ServiceHosts are the hosts behind HostService, as its metadata lists them; empty if
	// it does not.
	ServiceHosts []string
	// TrackedClean: every tracked file the step deletes is as in the index.
	TrackedClean bool
	// Declared: the step fetches what the project declares, in a directory of its own, from the
	// registry of its tool, and neither starts nor sees code of the project.
	Declared bool
	// Undo says how far what it does can be taken back; Lost names what would not come
	// back, a few of them.
	Undo Undo
	Lost []string
	// NestedTools names the tools of commands inside this one which are not steps
	// of their own.
	NestedTools []string
}

// FileFacts is what is known about the executable of a step.
type FileFacts struct {
	Canonical   string // resolved path
	Place       string // path through which it was found
	Digest      string // sha256, hex
	InWorkspace bool
	Believed    bool
	SystemPath  bool
	// Names holds further names of the same file: those of [Set.NamedFiles] that lead to its
	// inode, the name its metadata gives it.
	Names []string
}

// TrustFacts is the verdict on the executable. Its zero value denies.
type TrustFacts struct {
	Level  string // VERIFIED, UNVERIFIED, UNSIGNED, PROVENANCE_FAIL, COMPROMISED
	Reason string
	Action Action
}

// HostKind groups hosts by what connecting to them means.
type HostKind uint8

// Kinds of host. The zero value, HostPublic, is any host the caller chose.
const (
	HostPublic   HostKind = iota
	HostNamed             // one that configuration names, such as a git remote
	HostService           // the tool's own service, not named in the call
	HostLoopback          // this machine
	HostPrivate           // RFC 1918, link local, unique local
	HostMetadata          // a cloud's metadata address
)

// String returns the name used in policy documents.
func (k HostKind) String() string {
	return [...]string{"public", "named", "service", "loopback", "private", "metadata"}[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k HostKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// HostUse is one host a step may talk to. HostUseOf classifies a literal.
type HostUse struct {
	Host string   `json:"host,omitempty"`
	Port int      `json:"port,omitempty"` // 0: the scheme's
	Kind HostKind `json:"kind"`
}

// EdgeKind is a flow of data between two steps that is dangerous as a whole.
type EdgeKind uint8

// Kinds of flow. The zero value is a flow of unknown meaning, which asks.
const (
	EdgeUnknown EdgeKind = iota
	NetworkToCode
	DecodedToCode
	WrittenToCode
	SecretToNetwork
	SocketShell
	ForkBomb
)

// String returns the name used in policy documents.
func (k EdgeKind) String() string {
	return [...]string{"unknown", "network-code", "decoded-code", "written-code", "secret-network", "socket-shell", "fork-bomb"}[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k EdgeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Edge is a flow from one step into another; the indices are into Steps.
type Edge struct {
	From, To int
	Kind     EdgeKind
}

// Restrict is one block of a delegation. It can only narrow.
type Restrict struct {
	Profile            string
	Default            string // "confirm" or "deny"; "" leaves it
	AllowedTools       []string
	DeniedCommands     []string
	EffectRestrictions map[string]bool
	Hosts              []string // if not nil, no other host
	Paths              []string // if not nil, writes only below these
}

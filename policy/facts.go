package policy

import (
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
	if f.channel == "" {
		f.channel = "none"
	}
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
	case atip.Network:
		return on.Net && !granted.Has(atip.Network)
	case atip.RemoteMutation, atip.Billable:
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
	for _, g := range f.set.self {
		if matchPath(g, r.Abs, f.req.Workspace) {
			return atip.ClassPolicySelf
		}
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
			for _, e := range f.step.Entitled {
				if subpath.Within(r.Abs, e) {
					return atip.ClassOutside
				}
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

package policy

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/ip"
)

type networkDoc struct {
	NetworkPolicy
	set         bool
	allow, deny []hostPattern
	line, col   int
}

type sandboxDoc struct {
	SandboxPolicy
	set       bool
	acceptSet bool
}

type outputDoc struct {
	OutputPolicy
	set bool
}

func (r *reader) network(v *atip.Node) networkDoc {
	n := networkDoc{set: true, line: v.KeyLine, col: v.KeyCol}
	r.keys(v, "network", settings{
		"allow": func(e *atip.Node) {
			n.allow, n.Allow = r.hosts(e), r.strings(e)
			for i, h := range n.allow {
				if h.isKind || h.kind == HostMetadata {
					r.fail(e, "network.allow lists hosts, not kinds: %q", n.Allow[i])
				}
			}
		},
		"deny": func(e *atip.Node) { n.deny, n.Deny = r.hosts(e), r.strings(e) },
		"private": func(e *atip.Node) {
			for i, h := range r.hosts(e) {
				if _, address := ip.Parse(h.name); !h.ranged && !address || h.port != 0 {
					r.fail(e.Items[i], "network.private lists address ranges such as \"10.1.0.0/16\", not %q", e.Items[i].Text)
				}
			}
			n.Private = r.strings(e)
		},
		"forward": func(e *atip.Node) {
			for i, h := range r.hosts(e) {
				if h.name == "" || h.port == 0 {
					r.fail(e.Items[i], "network.forward lists services as \"host:port\", not %q", e.Items[i].Text)
				}
			}
			n.Forward = r.strings(e)
		},
		"upstream": func(e *atip.Node) { n.Upstream = r.str(e) },
	})
	return n
}

func (r *reader) budgets(v *atip.Node) Budgets {
	var b Budgets
	one := func(e *atip.Node) Budget {
		x := Budget{Set: true}
		r.keys(e, "a budget", settings{
			"max":    func(o *atip.Node) { x.Max = int(r.integer(o, 0, 1e9)) },
			"window": func(o *atip.Node) { x.Window = r.duration(o) },
		})
		return x
	}
	r.keys(v, "budgets", settings{
		"billable":       func(e *atip.Node) { b.Billable = one(e) },
		"remoteMutation": func(e *atip.Node) { b.RemoteMutation = one(e) },
		"rate": func(e *atip.Node) {
			b.Rate = map[string]string{}
			r.entries(e, func(tool string, o *atip.Node) {
				if n, unit, ok := strings.Cut(r.str(o), "/"); !ok || !slices.Contains([]string{"s", "m", "h"}, unit) || !positive(n) {
					r.fail(o, "a rate is a number per s, m or h, such as \"60/m\", not %q", o.Text)
				}
				b.Rate[tool] = o.Text
			})
		},
	})
	return b
}

func positive(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && n > 0
}

func (r *reader) analysis(v *atip.Node) Analysis {
	var a Analysis
	r.keys(v, "analysis", settings{
		"maxBytes":   func(e *atip.Node) { a.MaxBytes = int(r.integer(e, 1, 128<<10)) },
		"maxNodes":   func(e *atip.Node) { a.MaxNodes = int(r.integer(e, 1, 20000)) },
		"maxSteps":   func(e *atip.Node) { a.MaxSteps = int(r.integer(e, 1, 256)) },
		"maxNesting": func(e *atip.Node) { a.MaxNesting = int(r.integer(e, 1, 8)) },
		"maxUnroll":  func(e *atip.Node) { a.MaxUnroll = int(r.integer(e, 1, 64)) },
	})
	return a
}

func (r *reader) sandbox(v *atip.Node) sandboxDoc {
	s := sandboxDoc{set: true}
	r.keys(v, "sandbox", settings{
		"tier": func(e *atip.Node) {
			if e.Kind == atip.KindString && e.Text == "T0" {
				// It would read as a demand and mean none.
				r.fail(e, "tier T0 confines nothing; say \"confine\": \"none\" instead")
				return
			}
			s.Tier = r.oneOf(e, "T1", "T2", "T3")
		},
		"require": func(e *atip.Node) { s.Require = r.guarantees(e) },
		"accept":  func(e *atip.Node) { s.Accept, s.acceptSet = r.guarantees(e), true },
		"confine": func(e *atip.Node) { s.Confine = r.oneOf(e, "kernel", "none") },
		"read":    func(e *atip.Node) { s.Read = r.paths(e) },
		"write":   func(e *atip.Node) { s.Write = r.paths(e) },
		"exec":    func(e *atip.Node) { s.Exec = r.paths(e) },
		"sockets": func(e *atip.Node) { s.Sockets = r.paths(e) },
		"devices": func(e *atip.Node) { s.Devices = r.paths(e) },
		"delete":  func(e *atip.Node) { s.DeleteStrict = r.oneOf(e, "strict", "shared") == "strict" },
		"workspace": func(e *atip.Node) {
			s.Workspace = r.str(e)
			if !path.IsAbs(s.Workspace) {
				r.fail(e, "workspace must be an absolute path, not %q", s.Workspace)
			}
			s.WorkspaceAt = position(r.src.File, e.Line, e.Col)
		},
		"tmp":     func(e *atip.Node) { s.Tmp = r.oneOf(e, "kept", "run", "host") },
		"observe": func(e *atip.Node) { s.Observe = r.oneOf(e, "auto", "on", "off") },
		"gate":    func(e *atip.Node) { s.Gate = r.oneOf(e, "auto", "off") },
		"trace":   func(e *atip.Node) { s.Trace = r.oneOf(e, "own", "off") },
		"protect": func(e *atip.Node) {
			r.keys(e, "sandbox.protect", settings{
				"ci":    func(o *atip.Node) { s.ProtectCI = r.boolean(o) },
				"allow": func(o *atip.Node) { s.ProtectAllow = r.paths(o) },
			})
		},
		"secrets": func(e *atip.Node) {
			r.keys(e, "sandbox.secrets", settings{
				"files":    func(o *atip.Node) { s.SecretFiles = r.paths(o) },
				"envFiles": func(o *atip.Node) { s.EnvFiles = r.oneOf(o, "network", "mask", "allow") },
			})
		},
	})
	return s
}

// guarantees reads names of the sandbox's guarantees.
func (r *reader) guarantees(v *atip.Node) []string {
	out := r.strings(v)
	for _, g := range out {
		if !slices.Contains(guaranteeNames[:], g) {
			r.fail(v, "unknown guarantee %q", g)
		}
	}
	return out
}

var guaranteeNames = [...]string{
	"files.write", "files.read", "files.meta", "files.hidden", "ws.protect", "ws.check", "net",
	"ipc.unix", "ipc.abstract", "ipc.sysv", "proc.attach", "proc.signal", "proc.tune", "proc.hidden",
	"tree.end", "tree.killed", "tmp.private", "kernel", "privilege", "limits",
}

// capNames are the capabilities that a run may keep where its caller has them: what tar and
// package managers need, and nothing that reaches the kernel or other processes.
var capNames = [...]string{"chown", "dac_override", "fowner", "fsetid", "setgid", "setuid"}

func (r *reader) approval(v *atip.Node) ApprovalPolicy {
	var a ApprovalPolicy
	r.keys(v, "approval", settings{
		"approvers": func(e *atip.Node) {
			r.items(e, func(o *atip.Node) {
				x := Approver{Layer: r.src.Layer}
				r.keys(o, "an approver", settings{
					"id":    func(m *atip.Node) { x.ID = r.text(m) },
					"key":   func(m *atip.Node) { x.Key = r.text(m) },
					"level": func(m *atip.Node) { x.Level = int(r.integer(m, 0, 3)) },
				})
				if x.ID == "" || x.Key == "" {
					r.fail(o, "an approver needs an id and a key")
				}
				a.Approvers = append(a.Approvers, x)
			})
		},
		"minLevel": func(e *atip.Node) {
			a.MinLevel = map[string]int{}
			r.entries(e, func(k string, o *atip.Node) {
				if _, ok := dangerByKey(k); !ok {
					r.failKey(o, "%q is not an effect that can be granted", k)
				}
				a.MinLevel[k] = int(r.integer(o, 0, 3))
			})
		},
		"maxAge":      func(e *atip.Node) { a.MaxAge = r.duration(e) },
		"command":     func(e *atip.Node) { a.Command = r.str(e) },
		"lock":        func(e *atip.Node) { a.Lock = r.str(e) },
		"lockKeys":    func(e *atip.Node) { a.LockKeys = r.strings(e) },
		"lockApplies": func(e *atip.Node) { a.LockApplies = r.boolean(e) },
	})
	return a
}

func (r *reader) env(v *atip.Node) EnvPolicy {
	var p EnvPolicy
	r.keys(v, "env", settings{
		"pass": func(e *atip.Node) { p.Pass = r.strings(e) },
		"drop": func(e *atip.Node) { p.Drop = r.strings(e) },
		"set": func(e *atip.Node) {
			p.Set = map[string]string{}
			r.entries(e, func(name string, o *atip.Node) {
				if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(o.Text, 0) >= 0 {
					r.failKey(o, "%q cannot be set", name)
				}
				p.Set[name] = r.str(o)
			})
		},
	})
	return p
}

func (r *reader) limits(v *atip.Node) LimitsPolicy {
	var l LimitsPolicy
	r.keys(v, "limits", settings{
		"timeout":   func(e *atip.Node) { l.Timeout = r.duration(e) },
		"grace":     func(e *atip.Node) { l.Grace = r.duration(e) },
		"openFiles": func(e *atip.Node) { l.OpenFiles = int(r.integer(e, 64, 1<<20)) },
		"processes": func(e *atip.Node) { l.Processes = int(r.integer(e, 1, 1<<22)) },
		"memory":    func(e *atip.Node) { l.Memory = r.size(e) },
		"fileSize":  func(e *atip.Node) { l.FileSize = r.size(e) },
		"shm":       func(e *atip.Node) { l.Shm = r.size(e) },
		"cpu":       func(e *atip.Node) { l.CPU = r.duration(e) },
		"nice":      func(e *atip.Node) { l.Nice = int(r.integer(e, 0, 19)) },
	})
	return l
}

func (r *reader) process(v *atip.Node) ProcessPolicy {
	var p ProcessPolicy
	r.keys(v, "process", settings{
		"caps": func(e *atip.Node) {
			p.Caps = r.strings(e)
			for _, name := range p.Caps {
				if !slices.Contains(capNames[:], name) {
					r.fail(e, "capability %q cannot be kept; those that can are %s", name, strings.Join(capNames[:], ", "))
				}
			}
		},
		"leftovers": func(e *atip.Node) { p.Leftovers = r.oneOf(e, "end", "keep") },
		"askpass": func(e *atip.Node) {
			p.Askpass = r.str(e)
			if !path.IsAbs(p.Askpass) {
				r.fail(e, "askpass must be an absolute path, not %q", p.Askpass)
			}
		},
		"umask": func(e *atip.Node) {
			bits, err := strconv.ParseUint(r.str(e), 8, 16)
			if err != nil || bits > 0o777 {
				r.fail(e, "umask must be octal digits such as \"077\", not %q", e.Text)
			}
			p.Umask = int(bits)
		},
	})
	return p
}

func (r *reader) output(v *atip.Node) outputDoc {
	o := outputDoc{set: true}
	r.keys(v, "output", settings{
		"maxBytes":     func(e *atip.Node) { o.MaxBytes = r.size(e) },
		"binary":       func(e *atip.Node) { o.Binary = r.oneOf(e, "pass", "block") },
		"placeholders": func(e *atip.Node) { o.Placeholders = r.oneOf(e, "pass", "warn", "refuse") },
		"redact": func(e *atip.Node) {
			if r.src.Layer == LayerProject || r.src.Layer > LayerProject {
				for _, m := range e.Items {
					if m.Key != "rules" {
						r.failKey(m, "a %s policy may add redaction rules only", r.src.Layer)
					}
				}
			}
			if e.Kind != atip.KindObject {
				r.fail(e, "redact must be an object")
			}
			o.Redact = []RawPart{r.raw(e)}
		},
	})
	return o
}

package policy

import (
	"path"
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
	line, col int
}

type outputDoc struct {
	OutputPolicy
	set bool
}

func (r *reader) network(v *atip.Node) networkDoc {
	n := networkDoc{set: true, line: v.KeyLine, col: v.KeyCol}
	r.object(v, "network", func(key string, e *atip.Node) bool {
		switch key {
		case "allow":
			n.allow, n.Allow = r.hosts(e), r.strings(e)
			for i, h := range n.allow {
				if h.isKind || h.kind == HostMetadata {
					r.fail(e, "network.allow lists hosts, not kinds: %q", n.Allow[i])
				}
			}
		case "deny":
			n.deny, n.Deny = r.hosts(e), r.strings(e)
		case "private":
			for i, h := range r.hosts(e) {
				if _, address := ip.Parse(h.name); !h.ranged && !address || h.port != 0 {
					r.fail(e.Items[i], "network.private lists address ranges such as \"10.1.0.0/16\", not %q", e.Items[i].Text)
				}
			}
			n.Private = r.strings(e)
		case "forward":
			for i, h := range r.hosts(e) {
				if h.name == "" || h.port == 0 {
					r.fail(e.Items[i], "network.forward lists services as \"host:port\", not %q", e.Items[i].Text)
				}
			}
			n.Forward = r.strings(e)
		case "upstream":
			n.Upstream = r.str(e)
		default:
			return false
		}
		return true
	})
	return n
}

func (r *reader) budgets(v *atip.Node) Budgets {
	var b Budgets
	one := func(e *atip.Node) Budget {
		x := Budget{Set: true}
		r.object(e, "a budget", func(key string, o *atip.Node) bool {
			switch key {
			case "max":
				x.Max = int(r.integer(o, 0, 1e9))
			case "window":
				x.Window = r.duration(o)
			default:
				return false
			}
			return true
		})
		return x
	}
	r.object(v, "budgets", func(key string, e *atip.Node) bool {
		switch key {
		case "billable":
			b.Billable = one(e)
		case "remoteMutation":
			b.RemoteMutation = one(e)
		case "rate":
			b.Rate = map[string]string{}
			r.entries(e, func(tool string, o *atip.Node) {
				if n, unit, ok := strings.Cut(r.str(o), "/"); !ok || !contains([]string{"s", "m", "h"}, unit) || !positive(n) {
					r.fail(o, "a rate is a number per s, m or h, such as \"60/m\", not %q", o.Text)
				}
				b.Rate[tool] = o.Text
			})
		default:
			return false
		}
		return true
	})
	return b
}

func positive(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && n > 0
}

func (r *reader) analysis(v *atip.Node) Analysis {
	var a Analysis
	r.object(v, "analysis", func(key string, e *atip.Node) bool {
		switch key {
		case "maxBytes":
			a.MaxBytes = int(r.integer(e, 1, 128<<10))
		case "maxNodes":
			a.MaxNodes = int(r.integer(e, 1, 20000))
		case "maxSteps":
			a.MaxSteps = int(r.integer(e, 1, 256))
		case "maxNesting":
			a.MaxNesting = int(r.integer(e, 1, 8))
		case "maxUnroll":
			a.MaxUnroll = int(r.integer(e, 1, 64))
		default:
			return false
		}
		return true
	})
	return a
}

func (r *reader) sandbox(v *atip.Node) sandboxDoc {
	s := sandboxDoc{set: true, line: v.KeyLine, col: v.KeyCol}
	r.object(v, "sandbox", func(key string, e *atip.Node) bool {
		switch key {
		case "tier":
			if e.Kind == atip.KindString && e.Text == "T0" {
				// It would read as a demand and mean none.
				r.fail(e, "tier T0 confines nothing; say \"confine\": \"none\" instead")
				break
			}
			s.Tier = r.oneOf(e, "T1", "T2", "T3")
		case "require":
			s.Require = r.guarantees(e)
		case "accept":
			s.Accept, s.acceptSet = r.guarantees(e), true
		case "confine":
			s.Confine = r.oneOf(e, "kernel", "none")
		case "read":
			s.Read = r.paths(e)
		case "write":
			s.Write = r.paths(e)
		case "exec":
			s.Exec = r.paths(e)
		case "sockets":
			s.Sockets = r.paths(e)
		case "devices":
			s.Devices = r.paths(e)
		case "delete":
			s.DeleteStrict = r.oneOf(e, "strict", "shared") == "strict"
		case "workspace":
			s.Workspace = r.str(e)
			if !path.IsAbs(s.Workspace) {
				r.fail(e, "workspace must be an absolute path, not %q", s.Workspace)
			}
			s.WorkspaceAt = position(r.src.File, e.Line, e.Col)
		case "tmp":
			s.Tmp = r.oneOf(e, "kept", "run", "host")
		case "observe":
			s.Observe = r.oneOf(e, "auto", "on", "off")
		case "gate":
			s.Gate = r.oneOf(e, "auto", "off")
		case "trace":
			s.Trace = r.oneOf(e, "own", "off")
		case "protect":
			r.object(e, "sandbox.protect", func(k string, o *atip.Node) bool {
				switch k {
				case "ci":
					s.ProtectCI = r.boolean(o)
				case "allow":
					s.ProtectAllow = r.paths(o)
				default:
					return false
				}
				return true
			})
		case "secrets":
			r.object(e, "sandbox.secrets", func(k string, o *atip.Node) bool {
				switch k {
				case "files":
					s.SecretFiles = r.paths(o)
				case "envFiles":
					s.EnvFiles = r.oneOf(o, "network", "mask", "allow")
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	return s
}

// guarantees reads names of the sandbox's guarantees.
func (r *reader) guarantees(v *atip.Node) []string {
	out := r.strings(v)
	for _, g := range out {
		if !contains(guaranteeNames[:], g) {
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
	r.object(v, "approval", func(key string, e *atip.Node) bool {
		switch key {
		case "approvers":
			r.items(e, func(o *atip.Node) {
				x := Approver{Layer: r.src.Layer}
				r.object(o, "an approver", func(k string, m *atip.Node) bool {
					switch k {
					case "id":
						x.ID = r.text(m)
					case "key":
						x.Key = r.text(m)
					case "level":
						x.Level = int(r.integer(m, 0, 3))
					default:
						return false
					}
					return true
				})
				if x.ID == "" || x.Key == "" {
					r.fail(o, "an approver needs an id and a key")
				}
				a.Approvers = append(a.Approvers, x)
			})
		case "minLevel":
			a.MinLevel = map[string]int{}
			r.entries(e, func(k string, o *atip.Node) {
				if _, ok := dangerByKey(k); !ok {
					r.failKey(o, "%q is not an effect that can be granted", k)
				}
				a.MinLevel[k] = int(r.integer(o, 0, 3))
			})
		case "maxAge":
			a.MaxAge = r.duration(e)
		case "command":
			a.Command = r.str(e)
		case "lock":
			a.Lock = r.str(e)
		case "lockKeys":
			a.LockKeys = r.strings(e)
		case "lockApplies":
			a.LockApplies = r.boolean(e)
		default:
			return false
		}
		return true
	})
	return a
}

func (r *reader) env(v *atip.Node) EnvPolicy {
	var p EnvPolicy
	r.object(v, "env", func(key string, e *atip.Node) bool {
		switch key {
		case "pass":
			p.Pass = r.strings(e)
		case "drop":
			p.Drop = r.strings(e)
		case "set":
			p.Set = map[string]string{}
			r.entries(e, func(name string, o *atip.Node) {
				if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(o.Text, 0) >= 0 {
					r.failKey(o, "%q cannot be set", name)
				}
				p.Set[name] = r.str(o)
			})
		default:
			return false
		}
		return true
	})
	return p
}

func (r *reader) limits(v *atip.Node) LimitsPolicy {
	var l LimitsPolicy
	r.object(v, "limits", func(key string, e *atip.Node) bool {
		switch key {
		case "timeout":
			l.Timeout = r.duration(e)
		case "grace":
			l.Grace = r.duration(e)
		case "openFiles":
			l.OpenFiles = int(r.integer(e, 64, 1<<20))
		case "processes":
			l.Processes = int(r.integer(e, 1, 1<<22))
		case "memory":
			l.Memory = r.size(e)
		case "fileSize":
			l.FileSize = r.size(e)
		case "shm":
			l.Shm = r.size(e)
		case "cpu":
			l.CPU = r.duration(e)
		case "nice":
			l.Nice = int(r.integer(e, 0, 19))
		default:
			return false
		}
		return true
	})
	return l
}

func (r *reader) process(v *atip.Node) ProcessPolicy {
	var p ProcessPolicy
	r.object(v, "process", func(key string, e *atip.Node) bool {
		switch key {
		case "caps":
			p.Caps = r.strings(e)
			for _, name := range p.Caps {
				if !contains(capNames[:], name) {
					r.fail(e, "capability %q cannot be kept; those that can are %s", name, strings.Join(capNames[:], ", "))
				}
			}
		case "leftovers":
			p.Leftovers = r.oneOf(e, "end", "keep")
		case "askpass":
			p.Askpass = r.str(e)
			if !path.IsAbs(p.Askpass) {
				r.fail(e, "askpass must be an absolute path, not %q", p.Askpass)
			}
		case "umask":
			bits, err := strconv.ParseUint(r.str(e), 8, 16)
			if err != nil || bits > 0o777 {
				r.fail(e, "umask must be octal digits such as \"077\", not %q", e.Text)
			}
			p.Umask = int(bits)
		default:
			return false
		}
		return true
	})
	return p
}

func (r *reader) output(v *atip.Node) outputDoc {
	o := outputDoc{set: true}
	r.object(v, "output", func(key string, e *atip.Node) bool {
		switch key {
		case "maxBytes":
			o.MaxBytes = r.size(e)
		case "binary":
			o.Binary = r.oneOf(e, "pass", "block")
		case "placeholders":
			o.Placeholders = r.oneOf(e, "pass", "warn", "refuse")
		case "redact":
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
		default:
			return false
		}
		return true
	})
	return o
}

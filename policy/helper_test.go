package policy

import (
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// full is a run in which the kernel enforces everything.
var full = Enforce{Files: true, Net: true, Secrets: true}

const (
	testWorkspace = "/home/u/p"
	testHome      = "/home/u"
)

// tool is a step of a known tool of rank org, every effect stated harmless, with
// the given exceptions: "write", "delete?" (unknown), "!reversible".
func tool(words string, effects ...string) Step {
	argv := strings.Fields(words)
	st := Step{
		Call: atip.Call{Tool: baseName(argv[0]), InvokedAs: argv[0], Argv: argv, Exactness: atip.Exact, Readings: 1,
			Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Org, Source: "builtin:" + argv[0]}},
		File:       FileFacts{Canonical: "/usr/bin/" + argv[0], Place: "/usr/bin/" + argv[0], Digest: strings.Repeat("a", 64), Believed: true, SystemPath: true},
		Trust:      TrustFacts{Level: "UNSIGNED", Reason: "system_path", Action: Allow},
		Confidence: Exact,
	}
	for e := range atip.NumEffects {
		v := atip.No
		if atip.Effect(e).Dangerous() == atip.No {
			v = atip.Yes
		}
		st.Call.Effects[e] = atip.Fact{Value: v, Rank: atip.Org, Source: "builtin:" + argv[0]}
	}
	for _, w := range argv[1:] {
		if w[0] == '-' || strings.ContainsAny(w, "/.") {
			break
		}
		st.Call.Path = append(st.Call.Path, w)
	}
	return with(st, effects...)
}

func with(st Step, effects ...string) Step {
	for _, name := range effects {
		e, ok := atip.EffectByKey(strings.TrimRight(strings.TrimLeft(name, "!"), "?"))
		if !ok {
			panic("effect " + name)
		}
		v := e.Dangerous()
		if strings.HasSuffix(name, "?") {
			v = atip.Unknown
		}
		st.Call.Effects[e].Value = v
	}
	return st
}

// unknown is a step of which nothing is known.
func unknown(words string) Step {
	argv := strings.Fields(words)
	return Step{Call: atip.Call{Tool: baseName(argv[0]), InvokedAs: argv[0], Argv: argv, Provenance: atip.Provenance{Channel: "none"}},
		File:       FileFacts{Canonical: "/opt/x/" + baseName(argv[0]), Place: "/opt/x/" + baseName(argv[0])},
		Trust:      TrustFacts{Level: "UNSIGNED", Reason: "no_signature", Action: Confirm},
		Confidence: Exact}
}

// on adds paths to a step: "write:workspace:/abs", "delete+rec:root:/".
func (s Step) on(paths ...string) Step {
	s.Call.Resources = append([]atip.Resource(nil), s.Call.Resources...)
	for _, p := range paths {
		f := strings.SplitN(p, ":", 3)
		r := atip.Resource{Kind: "path", Value: f[2], Abs: f[2]}
		for _, a := range strings.Split(f[0], "+") {
			if a == "rec" {
				r.Recursive = true
			} else {
				r.Access |= accessBit(a)
			}
		}
		class, ok := atip.ClassByName(f[1])
		if !ok {
			panic("class " + f[1])
		}
		r.Class = class
		s.Call.Resources = append(s.Call.Resources, r)
	}
	return s
}

func (s Step) code(k CodeKind) Step { s.RunsCode = k; return s }

func (s Step) host(host string, port int) Step {
	s.Hosts = append(append([]HostUse(nil), s.Hosts...), HostUseOf(host, port))
	return s
}

// lowRank makes every statement one of a source that may not vouch for anything.
func (s Step) lowRank() Step {
	s.Call.Provenance.Rank = atip.User
	for e := range s.Call.Effects {
		s.Call.Effects[e].Rank = atip.User
	}
	s.Trust = TrustFacts{Level: "UNSIGNED", Reason: "no_signature", Action: Confirm}
	return s
}

func requestOf(steps ...Step) Request {
	return Request{Steps: steps, Enforce: full, Workspace: testWorkspace, Cwd: testWorkspace}
}

func mustParse(t testing.TB, layer Layer, text string) *Document {
	t.Helper()
	d, err := Parse(Source{File: layer.String() + ".json", Raw: []byte(text), Layer: layer, Trusted: true})
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return d
}

func mustCompile(t testing.TB, docs ...*Document) *Set {
	t.Helper()
	s, err := Compile(docs)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return s
}

func ruleNames(d Decision) []string {
	var out []string
	for _, r := range d.Reasons {
		out = append(out, r.Rule)
	}
	return out
}

func optionUse(name, value string) atip.OptionUse {
	return atip.OptionUse{Name: name, Flag: "--" + name, Value: value}
}

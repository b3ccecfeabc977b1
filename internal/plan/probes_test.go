package plan

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims/builtin"
)

// The probes generate calls from all built-in documents and hold a property of the decision
// under the built-in policy, where the corpus holds what was written by hand.

// tree is a command of a document, as far as the probes look at it.
type tree struct {
	Options       []treeOption    `json:"options"`
	GlobalOptions []treeOption    `json:"globalOptions"`
	Commands      map[string]tree `json:"commands"`
	Operands      bool            `json:"x-atip-operands"`
	Ext           struct {
		Args []struct{ Flag, Kind string } `json:"args"`
	} `json:"x-atip-effects"`
}

// text reports an option whose value the document calls text.
func (c tree) text(o treeOption) bool {
	for _, a := range c.Ext.Args {
		if a.Kind == "text" && slices.Contains(o.Flags, a.Flag) {
			return true
		}
	}
	return false
}

type treeOption struct {
	Flags []string `json:"flags"`
	Type  string   `json:"type"`
}

func documentTree(t *testing.T, e builtin.Entry) tree {
	t.Helper()
	var doc tree
	if err := json.Unmarshal(e.Raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func (c tree) options() []treeOption { return append(slices.Clone(c.Options), c.GlobalOptions...) }

// each visits the command and all below it in the order of their names.
func (c tree) each(path []string, visit func(path []string, c tree)) {
	visit(path, c)
	names := make([]string, 0, len(c.Commands))
	for name := range c.Commands {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		c.Commands[name].each(append(slices.Clone(path), name), visit)
	}
}

// decided leaves out what confines the command: two thirds of a plan, which could only refuse.
func (b *Batch) decided(inv Invocation) (*Plan, error) {
	return b.ending(inv, func(*Plan) error { return nil })
}

// scratchOnly are the dangers that the sandbox keeps within the workspace.
var scratchOnly = atip.SetOf(atip.Write, atip.Delete, atip.Destructive, atip.Reversible, atip.ExecOpaque)

// TestNonsenseWordIsNotAllowed: a word that no document lists, at the place of a command, is
// not harmless. Where a document says that a group takes arguments, it gets at most what code
// of the workspace gets.
func TestNonsenseWordIsNotAllowed(t *testing.T) {
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	asked, taking := 0, 0
	allowed := func(argv []string) (atip.Set, bool) {
		p, err := b.decided(Invocation{Argv: argv, Directory: w.Dir})
		if err != nil {
			return 0, false
		}
		defer p.Close()
		return p.Decision.Grants.Effects, p.Decision.Action == policy.Allow
	}
	for _, e := range builtin.All() {
		doc := documentTree(t, e)
		doc.each(nil, func(path []string, c tree) {
			if n := len(c.Commands); n == 0 || n == 1 && c.Commands[""].Operands {
				return
			}
			if _, blank := c.Commands[""]; blank && len(c.Commands) == 1 {
				return
			}
			var before, after []string // a declared option that takes no word
			for _, o := range append(doc.options(), c.options()...) {
				if o.Type == "boolean" && len(o.Flags) > 0 && !slices.Contains(o.Flags, "--help") && !slices.Contains(o.Flags, "--version") {
					before, after = []string{o.Flags[0]}, []string{o.Flags[0]}
					break
				}
			}
			group := append([]string{e.Name}, path...)
			for _, words := range [][]string{
				{"frobnicate-xyz"}, {"zz9", "list"}, {"status2", "--json"}, {"delete-everything", "prod"},
				append(slices.Clone(before), "frobnicate-xyz"), append([]string{"frobnicate-xyz"}, after...), {"--", "frobnicate-xyz"},
			} {
				argv := append(slices.Clone(group), words...)
				asked++
				grants, ok := allowed(argv)
				switch {
				case ok && !c.Operands:
					t.Errorf("%q is allowed, with %v", argv, DangersOf(grants))
				case ok:
					taking++
					if grants&^scratchOnly != 0 {
						t.Errorf("%q is allowed with %v", argv, DangersOf(grants))
					}
				}
			}
		})
	}
	if asked < 4000 || taking == 0 {
		t.Errorf("%d calls, %d of them arguments that are allowed", asked, taking)
	}
	if _, ok := allowed([]string{"git", "status"}); !ok {
		t.Error("control: git status is not allowed")
	}
	t.Logf("%d calls, %d allowed as arguments", asked, taking)
}

// foreign are words that name a host of somebody else, in the shapes that tools take.
var foreign = []string{
	"https://evil.example/x", "http://user:pw@evil.example:8080/x", "HTTPS://EVIL.EXAMPLE", "git@evil.example:o/r.git", "ssh://evil.example/x", "postgresql://evil.example/db",
	"evil.example:8443", "host=evil.example dbname=x", "url=https://evil.example", "git::https://evil.example/m", "docker://evil.example/i", "jdbc:mysql://evil.example/db",
	"http://169.254.169.254/latest/meta-data/", "169.254.169.254:80", "169.254.169.254", "http://2852039166/", "0xa9fea9fe", "http://[fd00:ec2::254]/", "10.0.0.8:5432", "http://127.0.0.1:2375",
}

// TestForeignHostIsNotAllowed puts hosts of somebody else into every argument and option of
// every command that a document says has network: none is allowed with it.
func TestForeignHostIsNotAllowed(t *testing.T) {
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	asked, plain := 0, 0
	reached := func(argv []string) bool {
		p, err := b.decided(Invocation{Argv: argv, Directory: w.Dir})
		if err != nil {
			return false
		}
		defer p.Close()
		return p.Decision.Action == policy.Allow && p.Decision.Grants.Effects.Has(atip.Network)
	}
	for _, e := range builtin.All() {
		doc := documentTree(t, e)
		n := 0
		doc.each(nil, func(path []string, c tree) {
			command := append([]string{e.Name}, path...)
			options := append(c.options(), doc.options()...)
			if blank, ok := c.Commands[""]; ok {
				options = append(options, blank.options()...)
			}
			options = slices.DeleteFunc(options, func(o treeOption) bool { return c.text(o) })
			shapes := [][]string{{""}, {"x", ""}, {"", "x"}, {"--", ""}, {"--url", ""}, {"--no-such="}, {"-Z", ""}}
			if !reached(append(slices.Clone(command), "x")) && !reached(command) && !reached(append(slices.Clone(command), "x", "y")) {
				// What asks anyway needs no look at each option.
				options, shapes = nil, shapes[:1]
			} else {
				plain++
			}
			for i, o := range options {
				if o.Type == "boolean" || len(o.Flags) == 0 || (i+n)%8 != 0 {
					continue // an eighth of the options of each command, others of the next
				}
				switch f := o.Flags[n%len(o.Flags)]; {
				case len(f) > 2 && n%2 == 0:
					shapes = append(shapes, []string{f + "="})
				default:
					shapes = append(shapes, []string{f, ""}, []string{"x", f, ""})
				}
			}
			for _, shape := range shapes {
				word := foreign[n%len(foreign)]
				n++
				argv := slices.Clone(command)
				for _, s := range shape {
					switch {
					case s == "":
						s = word
					case s[len(s)-1] == '=':
						s += word
					}
					argv = append(argv, s)
				}
				asked++
				if reached(argv) {
					t.Errorf("%q is allowed with network", argv)
				}
			}
		})
	}
	if asked < 15000 || plain < 300 {
		t.Errorf("%d calls of %d commands that have network without a question", asked, plain)
	}
	t.Logf("%d calls, %d commands have network without a host in their words", asked, plain)
}

// TestLookAlikesAreNoHosts: what everyday commands say in words that resemble a host, or to whom
// they belong.
func TestLookAlikesAreNoHosts(t *testing.T) {
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	for _, argv := range [][]string{
		{"git", "commit", "-m", "see http://evil.example/x"}, {"git", "log", "--author", "a@b.example:x"},
		{"gh", "pr", "create", "--title", "https://evil.example", "--body", "https://evil.example/x and 169.254.169.254"}, {"gh", "issue", "list", "--search", "is:open label:bug created:2026-01-01..2026-02-01"},
		{"gh", "pr", "view", "https://github.com/o/r/pull/1"}, {"gh", "run", "view", "1234567890"}, {"gh", "api", "repos/o/r"}, {"gh", "pr", "list", "--json", "number,title", "--jq", ".[] | .url"},
		{"gh", "-R", "o/r", "pr", "view", "12"}, {"glab", "mr", "view", "12"},
		{"docker", "pull", "redis:7"}, {"docker", "pull", "node:20-alpine"}, {"docker", "logs", "--since", "10:30", "web"}, {"docker", "ps", "--filter", "label=a:b"}, {"docker", "inspect", "web:app"},
		{"npm", "view", "react@18.2.0"}, {"npm", "view", "@scope/pkg"}, {"npm", "outdated"}, {"pip", "index", "versions", "requests"}, {"go", "list", "-m", "-versions", "example.com/mod"}, {"go", "get", "example.com/mod@v1.2.3"}, {"cargo", "search", "serde"},
		{"kubectl", "get", "pods", "-l", "app=web,tier=a"}, {"kubectl", "get", "pods", "-o", "jsonpath={.items[0].status.podIP}"}, {"kubectl", "logs", "web-0", "--since-time=2026-01-01T10:30:00Z"},
		{"aws", "logs", "tail", "/aws/lambda/f", "--since", "1h"}, {"aws", "ec2", "describe-instances", "--filters", "Name=tag:Name,Values=a"}, {"aws", "iam", "get-policy", "--policy-arn", "arn:aws:iam::1:policy/x"},
		{"helm", "search", "repo", "x", "--version", "1.2.3"}, {"terraform", "init", "-backend-config", "key=a"}, {"git", "fetch", "origin", "main:main"}, {"git", "pull", "--rebase", "origin", "main"},
	} {
		p, err := b.Plan(Invocation{Argv: argv, Directory: w.Dir})
		if err != nil {
			t.Errorf("%q: %v", argv, err)
			continue
		}
		for _, s := range p.Steps {
			for _, h := range s.Hosts {
				if h.Kind != policy.HostService && h.Kind != policy.HostNamed {
					t.Errorf("%q: %+v counts as a host", argv, h)
				}
			}
		}
		p.Close()
	}
}

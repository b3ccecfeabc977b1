package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// delegate adds the restrictions of a delegation to what is decided. They hold for
// the whole tree of the run: its kernel domain, its environment and its decisions
// come from here, so a child that drops the variable gains nothing by it.
func (p *Plan) delegate(req *policy.Request) error {
	token := p.Machine.Getenv(delegation.Variable)
	if token == "" {
		return nil
	}
	blocks, err := delegation.Chain(p.Dirs.Config, token)
	if err != nil {
		return err
	}
	req.Delegated = true
	for _, b := range blocks {
		r := b.Restrict
		req.Chain = append(req.Chain, policy.Restrict{Profile: r.Profile, Default: r.Default, AllowedTools: r.AllowedTools, DeniedCommands: r.DeniedCommands,
			EffectRestrictions: r.EffectRestrictions, Hosts: r.Hosts, Paths: r.Paths})
	}
	for _, d := range p.Policies.Delegable() {
		req.Chain = append(req.Chain, withinDelegable(d))
		if d.MaxTTL > 0 && time.Until(time.Unix(blocks[0].Exp, 0)) > d.MaxTTL {
			return &approve.TokenError{Why: "it lives longer than the policy lets a delegation"}
		}
		if blocks[0].Depth > d.MaxDepth {
			return &approve.TokenError{Why: "it may be delegated further than the policy lets it"}
		}
	}
	return nil
}

// withinDelegable takes away what the policy lets no delegation carry.
func withinDelegable(d policy.Delegable) policy.Restrict {
	r := policy.Restrict{AllowedTools: d.Tools, Hosts: d.Hosts, Paths: d.Paths}
	if d.Effects == nil {
		return r
	}
	r.EffectRestrictions = map[string]bool{}
	for _, e := range DangerKeys() {
		if name := DangerName(e); !slices.Contains(d.Effects, name) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			// Of reversible the harmless value is "yes".
			r.EffectRestrictions[e.String()] = e == atip.Reversible
		}
	}
	return r
}

// ChainNames is the chain as an approval binds and the audit keeps it.
func (p *Plan) ChainNames() []string {
	token := p.Machine.Getenv(delegation.Variable)
	if token == "" {
		return nil
	}
	blocks, err := delegation.Chain(p.Dirs.Config, token)
	if err != nil {
		return []string{"invalid"}
	}
	var out []string
	for _, b := range blocks {
		out = append(out, strings.TrimSpace(b.Agent+" "+b.Nonce))
	}
	return out
}

// withinDelegated takes from a profile what a delegation of paths does not lend: code that
// names no path, whose writing no rule can judge, is held to them by the sandbox. What the
// run has for itself stays: devices, its private directory, and where it tells its host the
// directory.
func (p *confining) withinDelegated() {
	for i := range p.chain {
		if p.chain[i].Paths != nil {
			p.writeWithin(p.chain[i].Paths)
		}
	}
}

// writeWithin takes every right to write that lies outside of the paths.
func (p *confining) writeWithin(paths []string) {
	lent := p.lent(paths)
	var write []sandbox.Grant
	for _, g := range p.Profile.Write {
		if subpath.Within(g.Path, "/dev") || subpath.Within(g.Path, p.Profile.Private) || g.Path == p.hostCwd || slices.ContainsFunc(lent, func(l sandbox.Grant) bool { return g.Path == l.Path || l.Dir && subpath.Within(g.Path, l.Path) }) {
			write = append(write, g)
			continue
		}
		for _, l := range lent {
			if g.Dir && subpath.Within(l.Path, g.Path) {
				write = append(write, sandbox.Grant{Path: l.Path, Dir: l.Dir, Rights: g.Rights, Why: g.Why})
			}
		}
		g.Rights &^= sandbox.Write | sandbox.Remove
		switch {
		case g.Rights&sandbox.Exec != 0:
			p.Profile.Exec = append(p.Profile.Exec, g)
		case g.Rights != 0:
			p.Profile.Read = append(p.Profile.Read, g)
		}
	}
	p.Profile.Write = write
	for _, list := range [...][]sandbox.Grant{p.Profile.Read, p.Profile.Write, p.Profile.Exec} {
		slices.SortFunc(list, func(a, b sandbox.Grant) int { return strings.Compare(a.Path, b.Path) })
	}
}

// lent are the delegated paths that are there. One that is not cannot be granted: the
// directory that it would be made in was not lent.
func (p *confining) lent(paths []string) []sandbox.Grant {
	files := p.files
	if p.Prepared != nil {
		files = p.Prepared.Files()
	}
	var out []sandbox.Grant
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue // such a delegation is denied as a whole
		}
		canonical, dir, err := files.Resolve(path)
		if err != nil {
			p.Profile.Absent = append(p.Profile.Absent, sandbox.Absent{Path: path, Why: "policy: it does not exist, and the directory to make it in is not granted; create it first"})
			continue
		}
		out = append(out, sandbox.Grant{Path: canonical, Dir: dir})
	}
	return out
}

// Bounds of what the patterns of paths.secret and paths.protected may stand for.
const (
	maxPatternSearch = 100_000 // names looked at
	maxPatternPaths  = 256     // paths found; each costs the start a mount or a comparison
)

// policyPaths are the paths that a policy's rules name and that are there, below which all
// is meant: the sandbox holds paths, not patterns. A bare name stands for all of that name
// in the workspace.
func (p *Plan) policyPaths(key string, rules []policy.PathRule) ([]string, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	return p.memo.Named(key, func() ([]string, error) { return p.searchPaths(key, rules) })
}

func (p *Plan) searchPaths(key string, rules []policy.PathRule) ([]string, error) {
	s := patternSearch{key: key, workspace: p.Workspace, found: map[string]bool{}}
	wide := map[string][]policy.PathRule{} // by the directory to search
	for _, r := range rules {
		if rest, home := strings.CutPrefix(r.Path, "~/"); home {
			r.Path = filepath.Join(p.Dirs.Home, rest)
		}
		stem := strings.TrimSuffix(r.Path, "/**")
		switch {
		case !filepath.IsAbs(r.Path) && p.Workspace == "":
		case strings.Contains(r.Path, "/") && !strings.ContainsAny(stem, "*?"):
			s.add(subpath.Join(p.Workspace, stem))
		default:
			root := searchRoot(r.Path, p.Workspace)
			wide[root] = append(wide[root], r)
		}
	}
	for root, rules := range wide {
		if err := s.search(root, rules); err != nil {
			return nil, err
		}
	}
	return s.paths, nil
}

// searchRoot is the directory below which all lies that a pattern can stand for.
func searchRoot(pattern, workspace string) string {
	if !filepath.IsAbs(pattern) {
		return workspace
	}
	return filepath.Dir(pattern[:strings.IndexAny(pattern, "*?")+1])
}

type patternSearch struct {
	key, workspace string
	paths          []string
	found          map[string]bool
	seen           int
}

// add notes a path if it is there. The workspace itself is never meant: nothing could run.
func (s *patternSearch) add(path string) {
	if path = filepath.Clean(path); s.found[path] || subpath.Within(s.workspace, path) {
		return
	}
	if _, err := os.Lstat(path); err == nil {
		s.found[path] = true
		s.paths = append(s.paths, path)
	}
}

// search goes level by level; what it finds it does not enter.
func (s *patternSearch) search(root string, rules []policy.PathRule) error {
	for level := []string{root}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			f, err := regular.OpenDir(dir)
			if err != nil {
				continue // what cannot be read now cannot be read by a run either
			}
			entries, _ := f.ReadDir(maxPatternSearch - s.seen + 1)
			f.Close()
			for _, e := range entries {
				if s.seen++; s.seen > maxPatternSearch {
					return tooWide(rules[0], s.key, fmt.Sprintf("there are more than %d names to search", maxPatternSearch))
				}
				path := filepath.Join(dir, e.Name())
				i := slices.IndexFunc(rules, func(r policy.PathRule) bool { return r.Matches(path, s.workspace) })
				switch {
				case i >= 0 && len(s.paths) == maxPatternPaths:
					return tooWide(rules[i], s.key, fmt.Sprintf("it stands for more than %d paths", maxPatternPaths))
				case i >= 0:
					s.add(path)
				case e.IsDir():
					next = append(next, path)
				}
			}
		}
		level = next
	}
	return nil
}

func tooWide(r policy.PathRule, key, why string) error {
	return fault.New(errcode.TooManyPaths, fmt.Sprintf("%s:%d:%d: %s %q: %s", r.File, r.Line, r.Col, key, r.Path, why)).WithFix("name directories, as secrets/**, in place of patterns", "").With("file", r.File).With("line", r.Line)
}

package plan

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/redact"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/tmpshare"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// environRules is what the plan knows when the environment is built.
type environRules struct {
	declared []string          // credential variables that the call may ask for
	pass     []string          // policy env.pass: names or PREFIX_*
	drop     []string          // policy env.drop
	set      map[string]string // policy env.set, then additions of the sandbox
}

// scrub drops what would load code into the child or hand it a credential it did
// not declare; withheld are the credentials among it that nothing declared. Of two entries with one name the first counts, as for getenv(3).
func scrub(environ []string, r environRules) (out Env, withheld []string) {
	room := len(environ) + len(r.set)
	out = Env{Entries: make([]string, 0, room), Passed: make([]string, 0, room)}
	for i, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || named(environ[:i], name) {
			continue
		}
		if _, replaced := r.set[name]; replaced {
			continue
		}
		credential := filter.CredentialName(name) || name == "SSH_AUTH_SOCK" || step.HasUserinfo(value)
		switch {
		case step.MatchesName(r.drop, name):
			out.Dropped = append(out.Dropped, name)
			continue
		case step.MatchesName(r.pass, name):
		case step.LoadsCode(name), strings.HasPrefix(name, "ATIP_EXEC_"), name == "ATIP_DELEGATION":
			out.Dropped = append(out.Dropped, name)
			continue
		case credential && !slices.Contains(r.declared, name):
			out.Dropped, withheld = append(out.Dropped, name), append(withheld, name)
			continue
		}
		if credential {
			out.Credentials = append(out.Credentials, name)
		}
		out.Entries = append(out.Entries, entry)
		out.Passed = append(out.Passed, name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.set)) {
		out.Entries = append(out.Entries, name+"="+r.set[name])
		out.Passed = append(out.Passed, name)
	}
	sort.Strings(out.Dropped)
	sort.Strings(out.Passed)
	return out, withheld
}

// named reports whether an entry has this name.
func named(entries []string, name string) bool {
	return slices.ContainsFunc(entries, func(e string) bool { return len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name })
}

// DefaultGrace is how long a command has to end after SIGTERM, if neither flag nor policy says.
const DefaultGrace = 2 * time.Second

// Limit is the strictest of the timeouts that were asked for; 0 for none.
func (p *Plan) Limit() time.Duration {
	limit, _ := p.timeout()
	return limit
}

// Timeout is the limit as the status has it.
func (p *Plan) Timeout() status.Timeout {
	limit, source := p.timeout()
	return status.Timeout{LimitMS: limit.Milliseconds(), Source: source}
}

func (p *Plan) timeout() (limit time.Duration, source string) {
	consider := func(d time.Duration, from string) {
		if d > 0 && (limit == 0 || d < limit) {
			limit, source = d, from
		}
	}
	consider(p.Invocation.Timeout, "flag")
	consider(p.Policies.Limits().Timeout, "policy")
	if p.Invocation.DeclaredTimeout {
		consider(p.Steps[0].Call.Timeout, "declared")
	}
	return limit, source
}

// Grace is how long the command has to end after SIGTERM before it is killed.
func (p *Plan) Grace() time.Duration {
	if p.Invocation.KillAfter > 0 {
		return p.Invocation.KillAfter
	}
	if g := p.Policies.Limits().Grace; g > 0 {
		return g
	}
	return DefaultGrace
}

// Cost counts the calls that budgets limit. A call that may cost is counted as one
// that does.
func (p *Plan) Cost() ledger.Cost {
	c := ledger.Cost{Calls: map[string]int{}}
	for i, s := range p.Steps {
		if s.Own {
			continue // its own run counts
		}
		c.Calls[s.Call.Tool]++
		if i >= len(p.Decision.Steps) {
			continue
		}
		danger := p.Decision.Steps[i].Danger
		if danger.Has(atip.Billable) {
			c.Billable++
		}
		if danger.Has(atip.RemoteMutation) {
			c.Remote++
		}
	}
	return c
}

// LedgerDir is where the runs of this user keep what they have used up.
func (p *Plan) LedgerDir() string { return filepath.Join(p.Dirs.State, "rate") }

// Tools are what the steps of a plan start, as the rules of redaction name it. It may be called while
// the plan is still being decided.
func (p *Plan) Tools() []redact.Tool {
	out := make([]redact.Tool, len(p.Reading.Steps))
	for i, s := range p.Reading.Steps {
		out[i] = redact.Tool{Name: s.Call.Tool, InWorkspace: s.File.InWorkspace}
	}
	return out
}

// TagKey is the key of the tags of redacted values. Without one that lasts, they are good for
// this run.
func (p *Plan) TagKey() filter.TagKey {
	key, _ := filter.LoadTagKey(above(p.Dirs.Runtime), above(p.Dirs.State))
	return key
}

// CredentialValues are the user's credential files, whose values no output may show.
func (p *Plan) CredentialValues() []filter.CredentialFile {
	var out []filter.CredentialFile
	for _, f := range place.Credentials(p.Dirs.Home, p.Machine.Getenv) {
		out = append(out, filter.CredentialFile{Source: f.Source, Path: f.Path, Format: string(f.Format)})
	}
	return out
}

// above is the directory that holds ours; package filter adds its own name.
func above(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Dir(dir)
}

// StdinKind names what a descriptor is: file, directory, pipe, socket or tty, and null for anything else.
func StdinKind(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return "null"
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeCharDevice != 0 && isTerminal(f):
		return "tty"
	}
	return "null"
}

// TemporaryDir is the directory of the machine that a private root covers.
const TemporaryDir = "/tmp"

// Share says how the private /tmp of this workspace and the machine's are kept in step.
func (p *Plan) Share() tmpshare.Share {
	apart := append([]string{p.Workspace, p.Dirs.Home, p.Private, p.Dirs.Config, p.Dirs.Data, p.Dirs.State, p.Dirs.Cache, p.Dirs.Runtime}, p.gitDirs...)
	apart = append(append(apart, p.Machine.Programs()...), filepath.SplitList(p.Machine.Getenv("PATH"))...)
	if p.Workspace == "" && p.Cwd != TemporaryDir {
		apart = append(apart, p.Cwd)
	}
	var within []string // what can be met in /tmp
	for _, path := range apart {
		// These are the same directory inside, so that a workspace below them has a name in it.
		for _, dir := range [...]string{"/var/tmp/", "/dev/shm/"} {
			if rest, ok := strings.CutPrefix(path, dir); ok {
				path = filepath.Join(TemporaryDir, rest)
			}
		}
		if path != "" && (subpath.Within(path, TemporaryDir) || subpath.Within(TemporaryDir, path)) {
			within = append(within, path)
		}
	}
	return tmpshare.Share{
		Host: TemporaryDir, Inside: filepath.Join(p.Private, "tmp"), Books: filepath.Join(p.Dirs.Cache, "tmp"), ID: filepath.Base(p.Private), UID: p.Machine.UID,
		Skip: func(path string) bool {
			return slices.ContainsFunc(within, func(other string) bool { return subpath.Within(other, path) || subpath.Within(path, other) })
		},
		Secret: p.World.Secret,
	}
}

// mirrored reports a path of which the private /tmp has, or will have when the run starts, what
// the run sees under it. Anything else that a call names there is brought in by itself.
func (p *Plan) mirrored(share tmpshare.Share) func(path string) bool {
	return func(path string) bool {
		if _, err := os.Lstat(path); err != nil {
			return true // what is made there is made inside
		}
		return share.Copies(path)
	}
}

// maxTmpFiles bounds what a run without a private root is granted of the machine's /tmp, a rule
// each. What the call names is granted anyway.
const maxTmpFiles = 24

// runsCode reports whether the run may open what its words do not name.
func (p *Plan) runsCode() bool {
	return slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.RunsCode != policy.CodeNone || s.Call.Provenance.Rank < atip.Org })
}

// SharesTmp reports whether this run has a /tmp of its workspace.
func (p *Plan) SharesTmp() bool {
	return p.Setup.Tier() == sandbox.T3 && p.Profile.Tmp == sandbox.TmpKept && p.Profile.Private != ""
}

// TmpReachable refuses, where runs have no /tmp of their own, a command that would write there
// what the kernel does not let it: single files of a known name can be granted, not a directory of
// the machine, and nothing new in one.
func (p *Plan) TmpReachable() error {
	if !p.NamesInTmp() {
		return nil
	}
	share := p.Share()
	for _, s := range p.Steps {
		for _, r := range s.Call.Resources {
			path := filepath.Clean(r.Abs)
			if r.Kind != "path" || r.Access&atip.AccessWrite == 0 || r.Class != atip.ClassTmp || !subpath.Within(path, TemporaryDir) || path != TemporaryDir && share.Skip(path) {
				continue
			}
			if slices.ContainsFunc(p.Profile.Write, func(g sandbox.Grant) bool { return g.Rights&sandbox.Write != 0 && subpath.Within(path, g.Path) }) {
				continue
			}
			info, err := os.Stat(path)
			switch {
			case err == nil && (!info.IsDir() || s.Call.Tool == "mkdir"):
				continue // the command is to say what is wrong with it
			case err != nil && filepath.Dir(path) == TemporaryDir && step.OpensFile(s):
				continue // makeTmpNames makes it
			}
			return fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+" would make something in "+TemporaryDir+" of the machine, where this run can write files of a known name only").
				WithFix("write in the workspace, or name one file that is not there: cp FILE "+TemporaryDir+"/FILE", "").With("decision", policy.Deny).With("path", path)
		}
	}
	return nil
}

// NamesInTmp reports a run that writes the machine's /tmp, of which it is granted single names.
func (p *Plan) NamesInTmp() bool {
	tier := p.Setup.Tier()
	return tier != sandbox.T3 && tier != sandbox.T0 && p.Profile.Tmp == sandbox.TmpKept && p.Decision.Grants.Effects.Has(atip.Write)
}

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// What an approval binds of files that a command reads.
const (
	maxBoundFile  = 16 << 20
	maxBoundFiles = 64
	moreFiles     = "further files" // stands for those beyond
)

// Binding is everything that an approval of this plan would cover: one byte of it that
// differs makes another digest. It is made when a person is asked and again just
// before the start.
func (p *Plan) Binding() map[string]any {
	var steps []any
	files := map[string]any{}
	for i, s := range p.Steps {
		step := map[string]any{"argv": anys(s.Argv), "tool": s.Call.Tool, "via": anys(s.Via), "cwd": s.Cwd, "sha256": s.ID.Digest, "path": s.ID.Canonical, "metadata": s.Call.Provenance.Digest,
			"command": anys(s.Call.Path), "effects": dangers(s), "resources": resourceList(s.Call.Resources), "trust": s.Verdict.Level.String()}
		var chain []any
		for _, part := range s.ID.Chain {
			chain = append(chain, part.Path+" "+part.Digest)
		}
		step["chain"] = chain
		if i < len(p.Decision.Steps) {
			step["rules"] = anys(p.Decision.Steps[i].Rules)
			var danger []any
			for _, e := range DangerKeys() {
				if p.Decision.Steps[i].Danger.Has(e) {
					danger = append(danger, DangerName(e))
				}
			}
			step["danger"] = danger
		}
		steps = append(steps, step)
		p.boundFiles(s, files)
	}
	host, _ := os.Hostname()
	needs, _ := p.GrantRules()
	out := map[string]any{"argv": anys(p.Invocation.Words()), "cwd": p.Cwd, "workspace": p.Workspace, "steps": steps, "rules": anys(p.RuleNames()), "env": p.boundEnvironment(), "credentials": anys(p.Env.Credentials), "stdin": p.boundStdin(),
		"files": files, "sandbox": p.BoundSandbox(), "policy": p.Policies.Digest(), "uid": p.Machine.UID, "host": host, "session": p.SessionLabel(), "agent": p.Agent(), "chain": anys(p.ChainNames()),
		"needs":    map[string]any{"level": needs.MinLevel, "onceOnly": needs.OnceOnly, "idempotent": needs.Idempotent},
		"terminal": p.Invocation.Terminal, "timeout": int64(p.Limit() / time.Millisecond)}
	if refs, err := p.sent(); err == nil && len(refs) > 0 {
		out["refs"] = refs
		if by := p.movers(); len(by) > 0 {
			out["refsChangedBy"] = anys(by)
		}
	}
	if p.Rights.held && len(p.Rights.Hooks) > 0 {
		out["hooksOff"] = anys(p.Rights.Hooks)
	}
	if s := p.Rights.Settings; s != nil {
		out["gitSettings"] = sum([]byte(s.Text()))
	}
	if len(p.Invocation.Paths) > 0 {
		var own []any
		for _, path := range p.Invocation.Paths {
			own = append(own, path.Name+" "+path.Value)
		}
		out["own"] = own
	}
	if b := p.Invocation.Behalf; b != nil {
		out["inside"] = b.Words
	}
	if needs.Scope != nil && !needs.OnceOnly {
		out["scope"] = needs.Scope.Canonical()
	}
	return out
}

// BindingDigest is what a grant of this plan must name.
func (p *Plan) BindingDigest() (string, error) {
	if _, err := p.sent(); err != nil {
		return "", &UnboundError{err}
	}
	return approve.Digest(p.Binding())
}

// UnboundError says that an approval could not name what a command acts on.
type UnboundError struct{ err error }

func (e *UnboundError) Error() string { return e.err.Error() }
func (e *UnboundError) Unwrap() error { return e.err }

// boundEnvironment has the name and the digest of the value of each variable that the
// child gets. Values may be credentials, so they are not written down.
func (p *Plan) boundEnvironment() map[string]any {
	out := map[string]any{}
	for _, entry := range p.Env.Entries {
		name, value, _ := strings.Cut(entry, "=")
		if name == nest.ParentVariable || name == nest.RunVariable || name == nest.WithheldVariable || name == "GIT_COMMON_DIR" || name == "GIT_DIR" && value == p.Rights.Scratch {
			continue // another in each run, and no secret and no power in it
		}
		out[strings.ToValidUTF8(name, "\ufffd")] = sum([]byte(value))
	}
	return out
}

// boundFiles adds the files whose content the step runs or reads: a script, a
// Makefile, a manifest. What lies in a directory is not read here; the sandbox and
// the effects bound it.
func (p *Plan) boundFiles(s *step.Step, into map[string]any) {
	add := func(path string) {
		name := strings.ToValidUTF8(path, "\ufffd")
		if _, ok := into[name]; ok || path == "" {
			return
		}
		d := fileDigest(path)
		if d == "" {
			return
		}
		if len(into) < maxBoundFiles {
			into[name] = d
			return
		}
		// More than is read by a person: they count as one.
		before, _ := into[moreFiles].(string)
		into[moreFiles] = sum([]byte(before + "\x00" + path + "\x00" + d))
	}
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, n := range s.Call.Nested {
		if n.File != "" && n.File != "-" {
			add(subpath.Join(base, n.File))
		}
	}
	for _, path := range s.TargetFiles {
		add(path)
	}
	for _, path := range p.actedOn(s) {
		add(path)
	}
	for _, f := range s.Call.CodeFiles {
		for _, path := range p.site().CodeFilePaths(s, f) {
			add(path)
		}
	}
	for _, r := range s.Call.Resources {
		if r.Abs != "" && r.Class != atip.ClassSecret && r.Access&(atip.AccessRead|atip.AccessExec) != 0 {
			add(r.Abs)
		}
	}
}

// boundStdin has the digest of a regular file on standard input, else what kind of
// thing is there.
func (p *Plan) boundStdin() string {
	switch p.Invocation.Stdin {
	case "", "auto", "inherit":
	case "null":
		return "null"
	default:
		return "file " + fileDigest(p.Invocation.Stdin)
	}
	if kind := StdinKind(p.Machine.Stdin); kind != "file" {
		return kind
	}
	at, err := p.Machine.Stdin.Seek(0, io.SeekCurrent)
	info, err2 := p.Machine.Stdin.Stat()
	if err != nil || err2 != nil {
		return "file"
	}
	return "file " + digestOf(io.NewSectionReader(p.Machine.Stdin, at, maxBoundFile+1), info)
}

// BoundSandbox is a digest of what the kernel would let the child do.
func (p *Plan) BoundSandbox() string {
	f := p.Profile
	grants := func(list []sandbox.Grant) []string {
		var out []string
		for _, g := range list {
			if slices.Contains(f.Scratch, g.Path) {
				continue // another in each run; what it holds is bound by itself
			}
			if g.Why == sandbox.WhyListed && g.Rights == sandbox.Read {
				continue // what others put into /tmp meanwhile changes nothing that was approved
			}
			out = append(out, g.Rights.String()+" "+g.Path)
		}
		return out
	}
	raw, err := json.Marshal([]any{p.Setup.Tier(), f.Confine, f.Workspace, f.Private, grants(f.Read), grants(f.Write), grants(f.Exec), f.Mask, f.Protect, f.Lifted, f.GitDirs, f.Net, f.Unix,
		f.SubprocessNo, f.Ceiling, f.Env, f.Limits, f.Need, f.Accept, f.Forced, f.Caps, f.KeepLeftovers, f.Tmp})
	if err != nil {
		return "" // the parts are plain values
	}
	return sum(raw)
}

// SessionVariables are those that name the session of an agent or of a CI service.
func SessionVariables() []string {
	return []string{"ATIP_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "TOOLI_SESSION_ID", "GITHUB_RUN_ID", "CI_JOB_ID"}
}

// SessionLabel names the conversation that this run belongs to. It is a label that anybody
// may set, so it only tells requests apart.
func (p *Plan) SessionLabel() string {
	for _, name := range SessionVariables() {
		if v := p.Machine.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// fileDigest tells the content of a file; "" if there is none, which the command will
// find out itself, and for a directory.
func fileDigest(path string) string {
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNot) {
		if info, serr := os.Stat(path); serr == nil && info.IsDir() {
			return ""
		} else if serr == nil && !info.Mode().IsRegular() {
			return info.Mode().Type().String()
		}
	}
	if err != nil {
		if os.IsNotExist(err) {
			return ""
		}
		return "unreadable"
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "unreadable"
	}
	return digestOf(io.LimitReader(f, maxBoundFile+1), info)
}

// digestOf reads up to the limit; a larger file is told apart by size and time.
func digestOf(r io.Reader, info os.FileInfo) string {
	h := sha256.New()
	n, err := io.Copy(h, r)
	switch {
	case err != nil:
		return "unreadable"
	case n > maxBoundFile:
		return "large " + info.ModTime().UTC().Format(time.RFC3339Nano) + " " + hex.EncodeToString(h.Sum(nil))
	}
	return fmt.Sprintf("sha256:%x, %d bytes", h.Sum(nil), n)
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

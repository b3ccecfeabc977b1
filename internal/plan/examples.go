package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// The imaginary machine on which examples of rules are judged: an empty workspace, no
// program installed, no metadata but the built-in documents. An example then means
// the same everywhere.
const (
	imaginedHome      = "/home/example"
	imaginedWorkspace = imaginedHome + "/workspace"
)

// Imagination judges commands on a machine that does not exist.
type Imagination struct{ template *Plan }

// NewImagination prepares one.
func NewImagination(self string) (*Imagination, error) {
	// ATIP_EXEC_SANDBOX keeps it from storing digests in a home that is not there.
	p := New(Invocation{}, caller.Machine{Environ: []string{"HOME=" + imaginedHome, "ATIP_EXEC_SANDBOX=T0"}, UID: os.Geteuid(), Self: self})
	dirs, err := place.DirsFromEnv(p.Machine.Getenv, imaginedHome)
	if err != nil {
		return nil, err
	}
	p.imagined = true
	at := Place{Dirs: dirs, Cwd: imaginedWorkspace, Workspace: imaginedWorkspace, gitDirs: []string{imaginedWorkspace + "/.git"}}
	at.World = place.World{Workspace: at.Workspace, Home: dirs.Home, Cwd: at.Cwd, Config: dirs.Config, Data: dirs.Data, State: dirs.State,
		Managed: place.Managed, Programs: p.Machine.Programs(), TmpDirs: []string{"/tmp", "/var/tmp"}, GitDirs: at.gitDirs}.Resolved()
	set, err := policy.Compile([]*policy.Document{policy.Builtin()})
	if err != nil {
		return nil, err
	}
	p.Place, p.Rules = at, Rules{Policies: set}
	return &Imagination{p}, nil
}

// Request is what a shell string would ask of the policy there, in the workspace or in a
// directory that is meant from there.
func (im *Imagination) Request(cmd, cwd string) (policy.Request, error) {
	p := New(Invocation{Shell: cmd, IsShell: true}, im.template.Machine)
	p.imagined, p.Place, p.Rules = true, im.template.Place.from(subpath.Join(im.template.Cwd, cwd)), im.template.Rules
	reading, err := p.read(false)
	p.Reading, p.Steps = reading, reading.Steps
	defer p.Close()
	if err != nil {
		return policy.Request{}, err
	}
	req := policy.Request{Edges: p.Edges, Workspace: p.Workspace, Cwd: p.Cwd, Now: time.Now(), BillableLeft: 1,
		Enforce: policy.Enforce{Files: true, Net: true, Secrets: true}}
	for _, s := range p.Steps {
		req.Steps = append(req.Steps, s.Step)
	}
	return req, nil
}

// exampleCheck runs the examples of policy documents, once per document and program:
// that they held is remembered. Forging that only skips a test of the author's.
type exampleCheck struct {
	dir string // where it is remembered
	im  *Imagination
}

func (e *exampleCheck) check(doc *policy.Document) error {
	if !doc.HasExamples() {
		return nil
	}
	self := caller.Here().Self
	mark := filepath.Join(e.dir, exampleKey(doc, self))
	if _, err := os.Lstat(mark); err == nil {
		return nil
	}
	if e.im == nil {
		im, err := NewImagination(self)
		if err != nil {
			return err
		}
		e.im = im
	}
	if err := doc.CheckExamples(e.im.Request); err != nil {
		return err
	}
	if os.MkdirAll(e.dir, 0o700) == nil {
		// Nothing rests on it: without the mark the examples run again.
		_ = os.WriteFile(mark, nil, 0o600)
	}
	return nil
}

// exampleKey names a document as judged by this program: another build may judge
// otherwise.
func exampleKey(doc *policy.Document, self string) string {
	build := ""
	if info, err := os.Stat(self); err == nil {
		build = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	}
	h := sha256.Sum256([]byte(doc.Digest() + "\x00" + build))
	return hex.EncodeToString(h[:16])
}

// Decide judges a shell string there under a set of policies.
func (im *Imagination) Decide(set *policy.Set, cmd string) Verdict {
	req, err := im.Request(cmd, "")
	if err != nil {
		return Verdict{Err: err, Opaque: true}
	}
	d := set.Decide(req)
	v := Verdict{Action: d.Action}
	for _, r := range d.Reasons {
		if !slices.Contains(v.Rules, r.Rule) {
			v.Rules = append(v.Rules, r.Rule)
		}
	}
	return v
}

package plan

import (
	"os"
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

// imagine is what examples are run by.
func imagine(self string) (func(cmd, cwd string) (policy.Request, error), error) {
	im, err := NewImagination(self)
	if err != nil {
		return nil, err
	}
	return im.Request, nil
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

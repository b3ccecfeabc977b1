package plan

import (
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
)

// Place is where a command would run, and what is what there.
type Place struct {
	Cwd         string
	CwdID       sandbox.DirID // of the directory that -C names: another run can change what lies there
	Workspace   string        // "" for none
	NoWorkspace string        // why there is none
	Dirs        place.Dirs
	World       place.World
	Private     string // the directory for the TMPDIR and the caches of the workspace
	inside      bool   // this run is inside another, whose sandbox keeps it from the state directory
	gitDirs     []string
	shimDirs    shims.Dirs
}

// Rules are what holds in a place: the policies of every layer, the locks, and what the workspace
// keeps secret.
type Rules struct {
	Policies    *policy.Set
	SecretFiles []string        // of the workspace
	packages    map[string]bool // names of files that mark packages: whether the workspace has one
	locks       toollock.Locks
}

// Reading is what the command line will do.
type Reading struct {
	*effects.Reading
	Argv     []string // what is started
	LongText string   // what the shell reads from TextFD, "" if its command line holds it
	TextFD   int
	hostCwd  string // the file that tells a host where the command ended, "" for none
}

// Decision is what policy says of the steps, and what that rests on.
type Decision struct {
	policy.Decision
	CanEnforce policy.Enforce // what the decision took the kernel to hold
	Fetches    []*fetch.Work  // what is fetched before the run
	Deferred   bool           // some starts are decided when they happen
	OwnJudged  bool           // the paths of our own flags were judged
	OwnRefused bool           // and not allowed
	Undo       Undoing
	ownFiles   []string          // where the paths of our own flags lead
	chain      []policy.Restrict // of a delegation
	refused    string            // reason of a refusal that no verdict on the executable gave
}

// Confinement is how the sandbox holds the run to the decision.
type Confinement struct {
	Profile         sandbox.Profile
	Setup           sandbox.Setup
	HostList        HostList
	CredentialFiles []string // that the sandbox has
	Rights          Rights
	enforced        *sandbox.Receipt // of a plan that is made to be run: status, record and denials all ask for it
}

// Env is what the child gets of the environment and what it does not. Names only leave the
// program, values never do.
type Env struct {
	Entries     []string
	Passed      []string
	Dropped     []string
	Credentials []string
	HandedDown  []string // credentials that policy gives to the tools of a delegation
	Withheld    []string // credentials that runs inside will not find
	NestFD      int      // where runs inside send their records, 0 for nowhere
	placeholder string   // where one of a redacted secret came back, if policy refuses that
}

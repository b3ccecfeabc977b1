package plan

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// DefaultLock is where a repository keeps what CI may do.
const DefaultLock = place.OwnDir + "/approvals.lock"

// ciVariables are set by CI systems, CI by nearly all of them.
var ciVariables = [...]string{"CI", "CONTINUOUS_INTEGRATION", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "JENKINS_URL", "BUILDKITE", "CIRCLECI", "TEAMCITY_VERSION",
	"TRAVIS", "APPVEYOR", "DRONE", "SEMAPHORE", "CODEBUILD_BUILD_ID", "BITBUCKET_BUILD_NUMBER", "CIRRUS_CI", "WOODPECKER_CI", "bamboo_buildKey"}

// InCI reports whether nobody is there to be asked. It only ever tightens: the variables are
// the caller's.
func (p *Plan) InCI() bool {
	if p.Invocation.CI || p.Policies.UsesProfile("ci") {
		return true
	}
	for _, name := range ciVariables {
		if v := p.Machine.Getenv(name); v != "" && v != "0" && !strings.EqualFold(v, "false") {
			return true
		}
	}
	return false
}

// LockDigest is the digest of a plan as CI knows it: of its bound object without what
// differs from one checkout to the next (host, user, session, where the workspace
// lies, the values of variables and the paths of the sandbox that follow from them).
func LockDigest(bound map[string]any) (string, error) {
	workspace, _ := bound["workspace"].(string)
	own := map[string]any{}
	for _, key := range [...]string{"argv", "cwd", "steps", "rules", "files", "stdin", "policy", "needs", "terminal", "timeout", "credentials", "own"} {
		own[key] = portable(bound[key], workspace)
	}
	return approve.Digest(own)
}

// portable replaces the path of the workspace in a value by a byte that no path and
// no word of a command can hold.
func portable(v any, workspace string) any {
	switch x := v.(type) {
	case string:
		if workspace == "" {
			return x
		}
		return strings.ReplaceAll(x, workspace, "\x00")
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = portable(x[i], workspace)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			if rest, ok := strings.CutPrefix(k, workspace+"/"); ok && workspace != "" {
				k = "./" + rest
			}
			out[k] = portable(e, workspace)
		}
		return out
	}
	return v
}

// LockEntry looks for an entry of approvals.lock that permits the plan, and returns its id. The
// managed or the user's policy says that a lock counts here, and whose key signs it: what looks
// like CI is the caller's to set. None counts for what a run inside asks for: it was signed for what the job itself starts.
func (p *Plan) LockEntry(bound map[string]any) (string, error) {
	ap := p.Policies.Approval()
	if !ap.LockApplies || p.Invocation.Behalf != nil || len(ap.LockKeys) == 0 || p.Workspace == "" {
		return "", nil
	}
	file := ap.Lock
	if file == "" {
		file = DefaultLock
	}
	file = subpath.Join(p.Workspace, file)
	l, err := approve.ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if err := l.Verify(ap.LockKeys); err != nil {
		return "", &approve.FileError{Path: filepath.Clean(file), Err: err}
	}
	digest, err := LockDigest(bound)
	if err != nil {
		return "", nil // what cannot be written down cannot be permitted
	}
	for _, e := range l.Entries {
		if time.Now().Before(e.Expires) && p.bindHolds(e.Bind) && (e.Kind == "digest" && e.Digest == digest || e.Kind == "effects" && p.inScope(e.Scope)) {
			return e.ID, nil
		}
	}
	return "", nil
}

// bindHolds compares the variables of CI. Whoever sets them can only lose by it.
func (p *Plan) bindHolds(b approve.LockBind) bool {
	is := func(want string, names ...string) bool {
		if want == "" {
			return true
		}
		for _, name := range names {
			if v := p.Machine.Getenv(name); v != "" {
				return v == want
			}
		}
		return false
	}
	return is(b.Repository, "GITHUB_REPOSITORY", "CI_PROJECT_PATH") && is(b.Workflow, "GITHUB_WORKFLOW", "CI_PIPELINE_NAME") && is(b.Ref, "GITHUB_REF", "CI_COMMIT_REF_NAME")
}

// inScope reports whether every step that asks is a call of the tool and command of
// the scope whose dangers lie within it.
func (p *Plan) inScope(s *approve.LockScope) bool {
	var covered atip.Set
	for _, name := range s.Effects {
		if e, ok := atip.EffectByKey(name); ok {
			covered = covered.With(e)
		}
	}
	asked := false
	for i, d := range p.Decision.Steps {
		if d.Action == policy.Allow {
			continue
		}
		st := p.Steps[i]
		if st.Call.Tool != s.Tool || d.Danger&^covered != 0 || len(st.Call.Path) < len(s.Command) || st.Call.Exactness != atip.Exact {
			return false
		}
		for j, word := range s.Command {
			if st.Call.Path[j] != word {
				return false
			}
		}
		asked = true
	}
	return asked
}

package policies

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// firstUser decides nothing that the built-in policy does not: whoever edits it sees where
// things stand.
const firstUser = `{
  // On top of the built-in policy (atip policy show builtin). Comments are allowed.
  // After a change: atip policy check
  "version": 1,

  // workspace, read-only, ci or ops; docs/policy.md describes them.
  "profile": "workspace",

  // Off: such a command needs approval.
  "switches": {
    // "url_fetch": true,        GET of public hosts, into the workspace
    // "package_install": true,  installs into the workspace and private caches
    // "tracked_delete": true    deleting files that git can bring back
  },

  // Hosts that may be reached where a command is granted hosts.
  "network": {"allow": [], "deny": []},

  // A rule permits only the effects in its grants. Its examples are tested each time the
  // file is read.
  "rules": [
    // {"id": "open-pr", "decision": "allow", "when": {"tool": "gh", "command": ["pr create"]},
    //  "grants": ["network", "remoteMutation"],
    //  "match": ["gh pr create --fill"], "notMatch": ["gh pr merge 1"]}
  ]
}
`

// firstProject tightens, which is all that a project's policy may until a person trusts it.
const firstProject = `{
  // Rules of this project. It only tightens your own policy until you
  // trust it: atip policy trust. After a change: atip policy check
  "version": 1,

  // Files that no command may change unnoticed, beside those that are always protected.
  "paths": {"protected": []},

  "rules": [
    // {"id": "no-push", "decision": "deny", "when": {"tool": "git", "command": ["push"]},
    //  "reason": "changes are pushed by people", "match": ["git push origin main"], "notMatch": ["git fetch"]}
  ]
}
`

// initPolicy writes a policy to begin with where there is none.
func initPolicy(c *cli.Console, project bool, what []string) error {
	text := firstUser
	if project {
		text = firstProject
	}
	switch {
	case len(what) > 1:
		return fault.New(errcode.Arguments, "policy init: name one file, or - for standard output")
	case len(what) == 1 && what[0] == "-":
		return c.Text(text)
	}
	file := ""
	switch {
	case len(what) == 1:
		file = what[0]
	case project:
		root, _, err := plan.ReadProject(caller.Here(), "")
		if err != nil {
			return err
		}
		file = filepath.Join(root, place.OwnDir, "policy.json")
	default:
		dirs, err := caller.Here().Dirs()
		if err != nil {
			return err
		}
		file = filepath.Join(dirs.Config, "policy.json")
	}
	if err := writeNew(file, text); err != nil {
		f := fault.New(errcode.OutputWrite, "policy init: "+err.Error()).With("file", file)
		if errors.Is(err, fs.ErrExist) {
			return f.WithFix("edit it, or name another file; nothing was changed", "atip policy init -")
		}
		return f
	}
	return c.Answer(map[string]any{"kind": "atip-exec.policy/1", "written": file}, "wrote "+file+"\nnext: edit it, then atip policy check\n")
}

// writeNew makes a file that only its owner can write, whatever the umask is: another one
// stops every command. What could not be written whole is removed.
func writeNew(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

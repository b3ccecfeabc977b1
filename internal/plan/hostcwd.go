package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// hostCwdFile is the file in which a host of agents wants to be told where a command
// ended, "" if the text does not end that way: `… && pwd -P >| /tmp/claude-1a2b-cwd`.
// The host reads it to start the next command there.
func hostCwdFile(script *shell.Script, tmpDirs []string) string {
	if len(script.Commands) == 0 {
		return ""
	}
	last := script.Commands[len(script.Commands)-1]
	if last.Kind != shell.Builtin || strings.Join(last.Argv, " ") != "pwd -P" || len(last.Redirects) != 1 || !last.Redirects[0].Write {
		return ""
	}
	path := last.Redirects[0].Path
	ok, err := filepath.Match("claude-*-cwd", filepath.Base(path))
	if err != nil || !ok || filepath.Clean(path) != path || !slices.Contains(tmpDirs, filepath.Dir(path)) {
		return ""
	}
	return path
}

// grantHostCwd lets the run write that one file, which must be there for it. Making a
// plan that will not be run leaves no file behind.
func (p *Plan) grantHostCwd(in *sandbox.Input) {
	if p.hostCwd == "" || !p.Starts || p.Decision.Action == policy.Deny {
		return
	}
	_, err := os.Lstat(p.hostCwd)
	p.hostCwdMade = os.IsNotExist(err)
	if err := createOwn(p.hostCwd); err != nil {
		p.hostCwdMade = false
		p.Warnings = append(p.Warnings, p.hostCwd+" is not granted: "+err.Error())
		return
	}
	in.Policy.Write = append(in.Policy.Write, sandbox.PathRule{Path: p.hostCwd, Rule: "directory for the host"})
}

package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
)

// workspaceVerb keeps the list of directories that are workspaces although they are no work
// tree. Adding one needs a person's terminal, which Main has looked for.
func workspaceVerb(c *cli.Console, v *cli.Values) (int, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return 0, err
	}
	listed, err := dirs.Workspaces()
	if err != nil {
		return 0, err
	}
	usage := fault.New(errcode.Arguments, "workspace: list, add or remove").WithFix("name one, and a directory", "atip workspace add ~/project")
	if len(v.Rest) == 0 || len(v.Rest) > 2 || v.Rest[0] == "list" && len(v.Rest) > 1 {
		return 0, usage
	}
	dir := "."
	if len(v.Rest) == 2 {
		dir = v.Rest[1]
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, fault.New(errcode.NoInputFile, err.Error())
	}
	switch v.Rest[0] {
	case "list":
	case "add":
		dir = place.Resolve(dir)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return 0, fault.New(errcode.NoInputFile, dir+" is not a directory")
		}
		if why := place.CanRegister(dir, dirs, os.Geteuid()); why != "" {
			return 0, fault.New(errcode.PolicyOwnState, dir+" cannot be a workspace: "+why).WithFix("register a directory of the project alone", "")
		}
		if !slices.Contains(listed, dir) {
			listed = append(listed, dir)
		}
	case "remove":
		at := slices.IndexFunc(listed, func(p string) bool { return p == dir || place.Resolve(p) == place.Resolve(dir) })
		if at < 0 {
			return 0, fault.New(errcode.NoInputFile, dir+" is not registered").WithFix("see `atip workspace list`", "")
		}
		listed = slices.Delete(listed, at, at+1)
	default:
		return 0, usage
	}
	if v.Rest[0] != "list" {
		file := dirs.WorkspacesFile()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return 0, fault.New(errcode.NoInputFile, err.Error())
		}
		if err := approve.Replace(file, []byte(strings.Join(append(listed, ""), "\n"))); err != nil {
			return 0, fault.New(errcode.NoInputFile, err.Error())
		}
	}
	doc := map[string]any{"kind": "atip-exec.workspaces/1", "file": dirs.WorkspacesFile(), "workspaces": append([]string{}, listed...)}
	return 0, answer.List(c, v, doc, listed, func(p string) string { return answer.Visible(p) + "\n" }, "")
}

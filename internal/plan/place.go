package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
)

// settled is where a command would run and what holds there. With an error it is what was found out
// until then.
func settled(inv Invocation, m caller.Machine, dirs place.Dirs) (Place, Rules, error) {
	at, err := locate(inv, m, dirs)
	if err != nil {
		return at, Rules{}, err
	}
	docs, err := at.documents(inv, m)
	if err != nil {
		return at, Rules{}, err
	}
	set, err := policy.Compile(docs)
	if err != nil {
		return at, Rules{}, err
	}
	if named := set.Sandbox().Workspace; named != "" {
		at = at.within(named, m)
	}
	at.World.CI = set.Sandbox().ProtectCI
	rules, err := rulesOf(at, set)
	return at, rules, err
}

// setOut is what is known of a place before it is looked at.
func setOut(m caller.Machine, dirs place.Dirs) Place {
	return Place{Dirs: dirs, inside: nest.Inside(m.Getenv, dirs.State)}
}

// locate is where an invocation would run, before a policy is asked.
func locate(inv Invocation, m caller.Machine, dirs place.Dirs) (at Place, err error) {
	at = setOut(m, dirs)
	// getcwd(2) gives the path without links, which is the one that rules mean.
	if at.Cwd, err = syscall.Getwd(); err != nil || !filepath.IsAbs(at.Cwd) {
		return at, fault.New(errcode.NoInputFile, fmt.Sprintf("the current directory is gone: %v", err)).WithFix("change to a directory that exists", "cd /")
	}
	if inv.Directory != "" {
		if at.Cwd, at.CwdID, err = enter(at.Cwd, inv.Directory); err != nil {
			return at, err
		}
	}
	at.shimDirs = shims.DirsOf(dirs.Config, dirs.Data, dirs.State, m.Getenv)
	at = at.within("", m)
	if at.shimDirs.CallerSupplied {
		// Answers of registries are written there, beside the sandbox.
		if why := at.judgeGrant(place.Resolve(at.shimDirs.Data), true); why != "" {
			return at, fault.New(errcode.FlagValue, "ATIP_CACHE_DIR: "+at.shimDirs.Data+" is "+why).WithFix("name a directory of its own for it, or unset it", "unset ATIP_CACHE_DIR").With("variable", "ATIP_CACHE_DIR")
		}
	}
	return at, nil
}

// enter is the directory that -C names, from cwd.
func enter(cwd, dir string) (string, sandbox.DirID, error) {
	dir = subpath.Join(cwd, dir)
	bad := func(why string) (string, sandbox.DirID, error) {
		return cwd, sandbox.DirID{}, fault.New(errcode.NoInputFile, "-C: "+why).With("directory", dir)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return bad(err.Error())
	case !info.IsDir():
		return bad(dir + " is not a directory")
	}
	canonical, id, err := sandbox.Directory(dir)
	if err != nil {
		return bad(dir + ": " + err.Error())
	}
	return canonical, id, nil
}

// within is the place with its workspace and all that follows from it; named is what policy says,
// "" to look for it.
func (at Place) within(named string, m caller.Machine) Place {
	at.Workspace, at.gitDirs, at.NoWorkspace = place.FindWorkspace(at.Cwd, at.Dirs, m.UID)
	if named != "" {
		at.Workspace = at.Expand(named)
	}
	switch {
	case at.Workspace != "":
		at.NoWorkspace = ""
	case at.NoWorkspace == "":
		at.NoWorkspace = "none was found"
	}
	at.Private = at.privateDir(m.UID)
	world := place.World{Workspace: at.Workspace, Home: at.Dirs.Home, Cwd: at.Cwd, Config: at.Dirs.Config, Data: at.Dirs.Data, State: at.Dirs.State, Runtime: at.Dirs.Runtime,
		Managed: place.Managed, Programs: m.Programs(), TmpDirs: at.tmpDirs(), GitDirs: at.gitDirs}
	if home := m.Getenv("HOME"); filepath.IsAbs(home) && home != at.Dirs.Home {
		world.OtherHome = filepath.Clean(home)
	}
	at.World = world.Resolved()
	return at
}

// rulesOf are the rules of a place under a set of policies.
func rulesOf(at Place, set *policy.Set) (r Rules, err error) {
	r.Policies = set
	r.SecretFiles, r.packages = at.workspaceSecrets()
	r.locks, err = toollock.ReadLocks(at.Dirs.Config, at.Workspace)
	return r, err
}

// tmpDirs are the directories for temporary files: the machine's and the run's own. TMPDIR
// makes none, as its caller could call any directory so.
func (at Place) tmpDirs() []string {
	return []string{"/tmp", "/var/tmp", "/dev/shm", filepath.Join(at.Private, "tmp")}
}

// privateDir is the directory for the TMPDIR and the caches of this workspace,
// told apart by user, inode and path so that no two share one.
func (at Place) privateDir(uid int) string {
	root := at.Workspace
	if root == "" {
		root = at.Cwd
	}
	h := sha256.New()
	var id [24]byte
	binary.LittleEndian.PutUint64(id[:], uint64(uid))
	dev, ino := FileID(root)
	binary.LittleEndian.PutUint64(id[8:], dev)
	binary.LittleEndian.PutUint64(id[16:], ino)
	h.Write(id[:])
	h.Write([]byte(root))
	return filepath.Join(at.Dirs.Cache, "ws", hex.EncodeToString(h.Sum(nil)[:8]))
}

// Expand is a path of a policy as an absolute one.
func (at Place) Expand(path string) string {
	return effects.Expand(path, at.Dirs.Home, at.Cwd)
}

// judgeGrant is sandbox.Input.Judge.
func (at Place) judgeGrant(canonical string, dir bool) string {
	switch at.World.Classify(canonical, atip.AccessRead, dir) {
	case atip.ClassSecret:
		return "a place of credentials"
	case atip.ClassStartup:
		return "a place of files that run by themselves"
	case atip.ClassPolicySelf:
		return "this program's own files"
	case atip.ClassRoot:
		return "a root of the file system"
	case atip.ClassSystem, atip.ClassDevice:
		return "the system"
	}
	return ""
}

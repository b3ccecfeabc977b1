package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

const maxPolicyBytes = 256 << 10

// flagged is what the command line adds to the policies; it only tightens.
type flagged struct {
	files    []string // --policy
	profiles []string // --profile
}

// loadPolicies reads every layer and compiles them. A file that is there but
// cannot be read or parsed stops the run: an ignored policy is a hole.
func loadPolicies(dirs place.Dirs, workspace, cwd string, flags flagged, uid int) (*policy.Set, error) {
	docs, err := loadDocuments(dirs, workspace, cwd, flags, uid)
	if err != nil {
		return nil, err
	}
	return policy.Compile(docs)
}

// loadDocuments reads the documents of every layer.
func loadDocuments(dirs place.Dirs, workspace, cwd string, flags flagged, uid int) ([]*policy.Document, error) {
	examples := exampleCheck{dir: filepath.Join(dirs.State, "verdict", "policy")}
	docs := []*policy.Document{policy.Builtin()}
	parse := func(src policy.Source) error {
		doc, err := policy.Parse(src)
		if err != nil {
			return err
		}
		if err := examples.check(doc); err != nil {
			return err
		}
		docs = append(docs, doc)
		return nil
	}
	add := func(path string, layer policy.Layer, must bool) error {
		raw, err := readPolicy(path, layer, uid)
		if errors.Is(err, fs.ErrNotExist) && !must {
			return nil
		}
		if err != nil {
			return err
		}
		return parse(policy.Source{File: path, Raw: raw, Layer: layer})
	}
	if err := add(filepath.Join(place.Managed, "policy.json"), policy.LayerManaged, false); err != nil {
		return nil, err
	}
	managed, err := jsonFiles(filepath.Join(place.Managed, "policy.d"))
	if err != nil {
		return nil, err
	}
	for _, path := range managed {
		if err := add(path, policy.LayerManaged, true); err != nil {
			return nil, err
		}
	}
	// What `atip sync` fetched from an organisation's registry; it only tightens.
	fetched, err := filepath.Glob(filepath.Join(dirs.Data, "registries", "*", "policy.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range fetched {
		if err := add(path, policy.LayerOrg, true); err != nil {
			return nil, err
		}
	}
	tightens := slices.ContainsFunc(docs, (*policy.Document).UserConfigAccount) && !belowAccount(dirs.Config, uid)
	file := filepath.Join(dirs.Config, "policy.json")
	switch raw, err := readPolicy(file, policy.LayerUser, uid); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := parse(policy.Source{File: file, Raw: raw, Layer: policy.LayerUser, TightensOnly: tightens}); err != nil {
			return nil, err
		}
	}
	files, err := projectFiles(projectDirs(workspace, cwd), uid)
	if err != nil {
		return nil, err
	}
	trust := trusted(dirs, workspace, files, uid)
	for _, f := range files {
		if err := parse(policy.Source{File: f.path, Raw: f.raw, Layer: policy.LayerProject, Trusted: trust}); err != nil {
			return nil, err
		}
	}
	for _, path := range flags.files {
		if err := add(path, policy.LayerFlag, true); err != nil {
			return nil, err
		}
	}
	for _, name := range flags.profiles {
		docs = append(docs, policy.ProfileChoice(name))
	}
	return docs, nil
}

// belowAccount reports whether a directory really lies below the home directory that the
// account database has for the user, whatever HOME and the XDG variables say.
func belowAccount(dir string, uid int) bool {
	home := place.AccountHome(uid)
	if home == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	if canonical, err := filepath.EvalSymlinks(home); err == nil {
		home = canonical
	}
	return subpath.Within(real, home)
}

// projectDirs lists the directories from the workspace down to cwd.
func projectDirs(workspace, cwd string) []string {
	if workspace == "" {
		return nil
	}
	dirs := []string{workspace}
	rel, err := filepath.Rel(workspace, cwd)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return dirs
	}
	dir := workspace
	for _, part := range strings.Split(rel, string(filepath.Separator)) {
		dir = filepath.Join(dir, part)
		dirs = append(dirs, dir)
	}
	return dirs
}

// jsonFiles lists the policies of a directory, none if there is no such directory.
func jsonFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(errcode.PolicyUnsafe, fmt.Sprintf("policies of %s: %s", dir, err)).With("file", dir)
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	sort.Strings(out)
	return out, nil
}

// Unsafe says why a policy file would not be loaded from where it lies: whose it is, and who
// can write it or its directory; "" if it would.
func Unsafe(path string, uid int) string {
	if _, err := readPolicy(path, policy.LayerUser, uid); err != nil {
		return err.Error()
	}
	return ""
}

// readPolicy reads a policy file that only its owner can have written.
func readPolicy(path string, layer policy.Layer, uid int) ([]byte, error) {
	unsafe := func(why string) error {
		return fault.New(errcode.PolicyUnsafe, fmt.Sprintf("policy %s: %s", path, why)).With("file", path)
	}
	f, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(path); there == nil {
			return nil, unsafe("is a symbolic link to nothing")
		}
		return nil, &missingPolicy{path: path, err: err}
	}
	if errors.Is(err, regular.ErrNot) {
		return nil, unsafe(regular.ErrNot.Error())
	}
	if err != nil {
		return nil, unsafe(err.Error())
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unsafe(err.Error())
	}
	// A file of the command line only tightens, so whose it is does not matter.
	if layer != policy.LayerFlag {
		if why := foreignWriter(path, info, uid); why != "" {
			return nil, unsafe(why)
		}
		dir, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return nil, unsafe(err.Error())
		}
		if why := foreignWriter(filepath.Dir(path), dir, uid); why != "" {
			return nil, unsafe("its directory " + why)
		}
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxPolicyBytes+1))
	if err != nil {
		return nil, unsafe(err.Error())
	}
	if len(raw) > maxPolicyBytes {
		return nil, fault.New(errcode.PolicySyntax, fmt.Sprintf("policy %s: is larger than %d KiB", path, maxPolicyBytes>>10)).With("file", path).WithFix("shorten it: patterns and lists in one rule instead of many rules", "")
	}
	return raw, nil
}

// missingPolicy is a policy file that was named and is not there.
type missingPolicy struct {
	path string
	err  error
}

func (e *missingPolicy) Error() string { return fmt.Sprintf("policy %s: no such file", e.path) }

// Unwrap returns the error of the system.
func (e *missingPolicy) Unwrap() error { return e.err }

// FaultCode implements fault.Coded.
func (e *missingPolicy) FaultCode() string { return errcode.PolicyUnsafe }

// FaultDetails implements fault.Coded.
func (e *missingPolicy) FaultDetails() map[string]any { return map[string]any{"file": e.path} }

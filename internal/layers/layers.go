// Package layers reads the policy files of every layer (managed, fetched, of the user, of the
// project, of the command line) and what a person has trusted of a project.
package layers

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
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/policy"
)

const maxPolicyBytes = 256 << 10

// Source is where the policies of a run are read from.
type Source struct {
	Dirs      place.Dirs
	Workspace string // "" if there is none
	Cwd       string
	UID       int                          // whose files count
	Check     func(*policy.Document) error // of the examples of a document
	Files     []string                     // --policy; they only tighten
	Profiles  []string                     // --profile; they only tighten
}

// Documents reads the documents of every layer. A file that is there but cannot be read or
// parsed is an error: an ignored policy is a hole.
func (s Source) Documents() ([]*policy.Document, error) {
	docs := []*policy.Document{policy.Builtin()}
	parse := func(src policy.Source) error {
		doc, err := policy.Parse(src)
		if err != nil {
			return err
		}
		if err := s.Check(doc); err != nil {
			return err
		}
		docs = append(docs, doc)
		return nil
	}
	add := func(path string, layer policy.Layer, must bool) error {
		raw, err := read(path, layer, s.UID)
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
	fetched, err := filepath.Glob(filepath.Join(s.Dirs.Data, "registries", "*", "policy.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range fetched {
		if err := add(path, policy.LayerOrg, true); err != nil {
			return nil, err
		}
	}
	tightens := slices.ContainsFunc(docs, (*policy.Document).UserConfigAccount) && !place.BelowAccount(s.Dirs.Config, s.UID)
	file := filepath.Join(s.Dirs.Config, "policy.json")
	switch raw, err := read(file, policy.LayerUser, s.UID); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := parse(policy.Source{File: file, Raw: raw, Layer: policy.LayerUser, TightensOnly: tightens}); err != nil {
			return nil, err
		}
	}
	files, err := projectFiles(projectDirs(s.Workspace, s.Cwd), s.UID)
	if err != nil {
		return nil, err
	}
	trust := trusted(s.Dirs, s.Workspace, files, s.UID)
	for _, f := range files {
		if err := parse(policy.Source{File: f.path, Raw: f.raw, Layer: policy.LayerProject, Trusted: trust}); err != nil {
			return nil, err
		}
	}
	for _, path := range s.Files {
		if err := add(path, policy.LayerFlag, true); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Profiles {
		docs = append(docs, policy.ProfileChoice(name))
	}
	return docs, nil
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
	if _, err := read(path, policy.LayerUser, uid); err != nil {
		return err.Error()
	}
	return ""
}

// read reads a policy file that only its owner can have written.
func read(path string, layer policy.Layer, uid int) ([]byte, error) {
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
		if why := owner.ForeignWriter(path, info, uid); why != "" {
			return nil, unsafe(why)
		}
		dir, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return nil, unsafe(err.Error())
		}
		if why := owner.ForeignWriter(filepath.Dir(path), dir, uid); why != "" {
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

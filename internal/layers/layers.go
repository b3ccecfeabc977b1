// Package layers reads the policy files of every layer (managed, fetched, of the user, of the
// project, of the command line) and what a person has trusted of a project.
package layers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
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
		return nil, &errcode.Error{Code: errcode.PolicyUnsafe, Msg: fmt.Sprintf("policy %s: no such file", path), Details: map[string]any{"file": path}, Err: err}
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

// maxTrustedDirs bounds how many directories of a project may have a policy.
const maxTrustedDirs = 1_000

// projectTrust is what a person read and trusted of one project: its policy files as
// they were. A project may loosen only while all of them are the same.
type projectTrust struct {
	V     int               `json:"v"`
	Root  string            `json:"root"`
	Files map[string]string `json:"files"` // path below the root: sha256
}

// projectFile is one policy file of a project, as it was read.
type projectFile struct {
	path string
	raw  []byte
}

// sum names a text by its digest.
func sum(text []byte) string {
	h := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(h[:])
}

func trustFile(dirs place.Dirs, root string) string {
	h := sha256.Sum256([]byte(root))
	return filepath.Join(dirs.State, "trust", "projects", hex.EncodeToString(h[:])+".json")
}

// trusted reports whether a person has trusted exactly these files. One that was recorded
// and is not among them, because it is gone or lies where this run does not look, must be
// there as it was, too.
func trusted(dirs place.Dirs, root string, files []projectFile, uid int) bool {
	if root == "" || len(files) == 0 {
		return false
	}
	f, err := regular.Open(trustFile(dirs, root))
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || owner.ForeignWriter(f.Name(), info, os.Geteuid()) != "" {
		return false
	}
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20))
	var t projectTrust
	if err != nil || json.Unmarshal(raw, &t) != nil || t.V != 1 || t.Root != root {
		return false
	}
	found := map[string]bool{}
	for _, f := range files {
		rel, err := filepath.Rel(root, f.path)
		if err != nil || t.Files[rel] != sum(f.raw) {
			return false
		}
		found[rel] = true
	}
	for rel, digest := range t.Files {
		if found[rel] {
			continue
		}
		raw, err := read(filepath.Join(root, rel), policy.LayerProject, uid)
		if err != nil || sum(raw) != digest {
			return false
		}
	}
	return true
}

// projectFiles reads the policy files of a project from its root down to cwd.
func projectFiles(along []string, uid int) ([]projectFile, error) {
	var out []projectFile
	add := func(path string, must bool) error {
		raw, err := read(path, policy.LayerProject, uid)
		if errors.Is(err, fs.ErrNotExist) && !must {
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, projectFile{path, raw})
		return nil
	}
	for _, dir := range along {
		if err := add(filepath.Join(dir, place.OwnDir, "policy.json"), false); err != nil {
			return nil, err
		}
		more, err := jsonFiles(filepath.Join(dir, place.OwnDir, "policy"))
		if err != nil {
			return nil, err
		}
		for _, path := range more {
			if err := add(path, true); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// ReadProject reads every policy file of the project with this root, for a person to read.
// The texts are by path below the root.
func ReadProject(root string, uid int) (map[string][]byte, error) {
	texts := map[string][]byte{}
	var homes []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read now cannot be read by a run either
		case !d.IsDir():
			return nil
		case d.Name() == ".git" || d.Name() == "node_modules":
			return filepath.SkipDir
		case d.Name() == place.OwnDir:
			homes = append(homes, filepath.Dir(path))
			return filepath.SkipDir
		}
		if len(homes) > maxTrustedDirs {
			return fmt.Errorf("too many policies")
		}
		return nil
	})
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error())
	}
	files, err := projectFiles(homes, uid)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if _, err := policy.Parse(policy.Source{File: f.path, Raw: f.raw, Layer: policy.LayerProject, Trusted: true}); err != nil {
			return nil, err
		}
		texts[strings.TrimPrefix(f.path, root+"/")] = f.raw
	}
	return texts, nil
}

// TrustProject records that a person trusts a project with these texts.
func TrustProject(dirs place.Dirs, root string, texts map[string][]byte) error {
	t := projectTrust{V: 1, Root: root, Files: map[string]string{}}
	for path, raw := range texts {
		t.Files[path] = sum(raw)
	}
	file := trustFile(dirs, root)
	raw, err := json.MarshalIndent(t, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = approve.Replace(file, append(raw, '\n'))
	}
	if err != nil {
		return fault.New(errcode.Denied, "not trusted: "+err.Error())
	}
	return nil
}

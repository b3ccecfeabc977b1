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
	"strings"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/policy"
)

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

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// manifestName holds what was moved to the quarantine of a run.
const manifestName = "manifest.json"

// Kept is one file of the quarantine: what a run wrote under a protected name.
type Kept struct {
	Root string      `json:"root"` // the directory that Rel lies in
	Rel  string      `json:"rel"`
	Kind fs.FileMode `json:"kind"` // type bits
	Mode fs.FileMode `json:"mode"`
	Link string      `json:"link,omitempty"` // of a symbolic link
	File string      `json:"file"`           // below the directory of the run, or absolute
}

// said is what stands in the file for what cannot be kept itself.
func (k Kept) said() string {
	if k.Kind == fs.ModeSymlink {
		return "link to " + k.Link + "\n"
	}
	return k.Kind.String() + "\n"
}

// Path is where the file stood.
func (k Kept) Path() string { return k.Root + "/" + k.Rel }

// Quarantine is what was kept of one run.
type Quarantine struct {
	Run   string `json:"run"`
	Dir   string `json:"dir"`
	Files []Kept `json:"files"`
}

// notRestored says why what stood at a path cannot be restored.
func notRestored(path, why, code string) error {
	return &errcode.Error{Code: code, Msg: path + ": " + why, Details: map[string]any{"path": path}}
}

// maxManifest bounds what is read of the list of what was kept, in bytes.
const maxManifest = 16 << 20

// Quarantines lists what is kept, the oldest run first. state is the state directory.
func Quarantines(state string) ([]Quarantine, error) {
	dirs, err := filepath.Glob(filepath.Join(state, "protect", "*", "quarantine", "*"))
	if err != nil {
		return nil, err
	}
	out := make([]Quarantine, 0, len(dirs))
	for _, dir := range dirs {
		q := Quarantine{Run: filepath.Base(dir), Dir: dir}
		raw, err := regular.Read(filepath.Join(dir, manifestName), maxManifest)
		// Without a manifest the wrapper was killed while it moved files; they are there still.
		if err == nil && json.Unmarshal(raw, &q.Files) != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, notRestored(filepath.Join(dir, manifestName), "it cannot be read; the quarantined files are beside it", errcode.Arguments)
		}
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b Quarantine) int { return strings.Compare(a.Run, b.Run) })
	return out, nil
}

// Restore puts the files of a run where they stood, or those of paths if there are any.
// What stands there now stays, unless replace is set. It returns what was restored.
func (q Quarantine) Restore(paths []string, replace bool) ([]string, error) {
	todo := q.Files
	if len(paths) > 0 {
		todo = nil
		for _, path := range paths {
			i := slices.IndexFunc(q.Files, func(k Kept) bool { return k.Path() == path })
			if i < 0 {
				return nil, notRestored(path, "run "+q.Run+" has no such file in quarantine", errcode.NoInputFile)
			}
			todo = append(todo, q.Files[i])
		}
	}
	// Nothing is written before all can be.
	for _, k := range todo {
		switch _, err := os.Lstat(k.Path()); {
		case k.Kind != 0 && k.Kind != fs.ModeSymlink && k.Kind != fs.ModeDir:
			return nil, notRestored(k.Path(), "it was a "+k.Kind.String()+", which is not made again", errcode.Arguments)
		case err == nil && (!replace || k.Kind == fs.ModeDir):
			return nil, notRestored(k.Path(), "there is a file of this name; move it away, or replace it with --force", errcode.Arguments)
		}
	}
	var done []string
	for _, k := range todo {
		if err := q.restore(k); err != nil {
			return done, fmt.Errorf("%s: %w", k.Path(), err)
		}
		done = append(done, k.Path())
	}
	return done, nil
}

// restore goes through the root, so that a link planted since leads nowhere else.
func (q Quarantine) restore(k Kept) error {
	r, err := os.OpenRoot(k.Root)
	if err != nil {
		return err
	}
	defer r.Close()
	if dir := filepath.Dir(k.Rel); dir != "." {
		if err := r.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	temp := filepath.Join(filepath.Dir(k.Rel), ".atip-exec-"+strconv.Itoa(os.Getpid()))
	_ = r.Remove(temp)
	switch k.Kind {
	case fs.ModeSymlink:
		err = r.Symlink(k.Link, temp)
	case fs.ModeDir:
		if err = r.Mkdir(temp, 0o700); err == nil {
			err = copyTree(r, temp, q.Place(k))
		}
	default:
		err = copyFile(r, temp, q.Place(k), k.Mode)
	}
	if err == nil {
		err = r.Rename(temp, k.Rel)
	}
	if err != nil {
		_ = r.RemoveAll(temp)
	}
	return err
}

// Place is where a file or directory is kept.
func (q Quarantine) Place(k Kept) string {
	if file := filepath.FromSlash(k.File); filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(q.Dir, filepath.FromSlash(k.File))
}

func copyFile(r *os.Root, temp, from string, mode fs.FileMode) error {
	in, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := r.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// copyTree copies what lies in a directory that was kept as it was. What is neither file,
// directory nor link is left out.
func copyTree(r *os.Root, to, from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		target, source := filepath.Join(to, e.Name()), filepath.Join(from, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			if err = r.Mkdir(target, info.Mode().Perm()|0o700); err == nil {
				err = copyTree(r, target, source)
			}
		case fs.ModeSymlink:
			var link string
			if link, err = os.Readlink(source); err == nil {
				err = r.Symlink(link, target)
			}
		case 0:
			err = copyFile(r, target, source, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Drop removes what was kept of a run.
func (q Quarantine) Drop() error { return os.RemoveAll(q.Dir) }

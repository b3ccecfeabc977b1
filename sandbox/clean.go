package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// PrivateDir is what runs in one workspace have left for the next one.
type PrivateDir struct {
	Path  string    `json:"path"`
	Bytes int64     `json:"bytes"`
	Files int       `json:"files"`
	Used  time.Time `json:"lastUsed"`
	Why   string    `json:"why,omitempty"` // it stays
}

// CleanOptions say what Clean removes.
type CleanOptions struct {
	Cache    string    // our cache directory
	Before   time.Time // only what was not used since; zero is everything
	DryRun   bool
	Progress func(done, all int, name string) // nil to tell nobody
}

// removing begins the name of a directory that is being removed: no run finds it any more.
const removing = ".removing-"

// Clean removes the directories for temporary files and caches that runs keep for each
// workspace, but not those of a run that has not ended.
func Clean(o CleanOptions) (removed, stay []PrivateDir, err error) {
	root, err := os.OpenRoot(filepath.Join(o.Cache, "ws"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // nothing was ever kept
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, err
	}
	for i, e := range entries {
		if !e.IsDir() || !workspaceName(e.Name()) && !strings.HasPrefix(e.Name(), removing) {
			continue
		}
		if o.Progress != nil {
			o.Progress(i, len(entries), e.Name())
		}
		d := measure(root, e.Name())
		if d.Why = cleanOne(root, e.Name(), d, o); d.Why != "" {
			stay = append(stay, d)
		} else {
			removed = append(removed, d)
		}
	}
	if o.Progress != nil {
		o.Progress(len(entries), len(entries), "")
	}
	return removed, stay, nil
}

// workspaceName tells our directories from whatever else somebody put there.
func workspaceName(name string) bool {
	return len(name) == 16 && strings.Trim(name, "0123456789abcdef") == ""
}

// cleanOne returns why the directory stays, "" if it went, or would.
func cleanOne(root *os.Root, name string, d PrivateDir, o CleanOptions) string {
	if !o.Before.IsZero() && d.Used.After(o.Before) && workspaceName(name) {
		return "it was used since"
	}
	lock, free := lockUnused(d.Path)
	if !free {
		return "a run uses it"
	}
	defer lock.Close()
	if o.DryRun {
		return ""
	}
	if workspaceName(name) {
		// A run that starts now makes its own.
		to := removing + name + "-" + strconv.Itoa(os.Getpid())
		if err := root.Rename(name, to); err != nil {
			return withoutPath(err)
		}
		name = to
	}
	if err := removeTree(root, name); err != nil {
		return withoutPath(err)
	}
	return ""
}

func withoutPath(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}

// measure adds up what is there. What cannot be read is removed uncounted. The time is that
// of the directory alone, which every start sets: files in it can be as old as they like.
func measure(root *os.Root, name string) PrivateDir {
	d := PrivateDir{Path: filepath.Join(root.Name(), name)}
	if fi, err := root.Lstat(name); err == nil {
		d.Used = fi.ModTime().UTC()
	}
	_ = fs.WalkDir(root.FS(), name, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if fi, err := e.Info(); err == nil && !e.IsDir() {
			d.Files++
			d.Bytes += fi.Size()
		}
		return nil
	})
	return d
}

// removeTree removes a directory with all modes that a run may have left in it: those of
// a module cache are read-only, those of an overlay's own directory are closed.
func removeTree(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	if err := openTree(root, name); err != nil {
		return err
	}
	return root.RemoveAll(name)
}

// openTree gives the owner all rights on the directories below name.
func openTree(root *os.Root, name string) error {
	fi, err := root.Lstat(name)
	if err != nil || !fi.IsDir() {
		return err
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	dir, err := root.Open(name) // root.FS takes no name that is not UTF-8
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := openTree(root, name+"/"+e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

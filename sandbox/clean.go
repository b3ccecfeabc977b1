package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	root, err := os.OpenRoot(o.Cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // nothing was ever kept
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	var names []string
	for _, dir := range [...]string{"ws", "layers"} {
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		for _, e := range entries {
			switch {
			case !e.IsDir():
			case strings.HasPrefix(e.Name(), removing):
				if !o.DryRun { // somebody was interrupted
					_ = removeTree(root, dir+"/"+e.Name())
				}
			case workspaceName(e.Name()) && !slices.Contains(names, e.Name()):
				names = append(names, e.Name())
			}
		}
	}
	for i, name := range names {
		if o.Progress != nil {
			o.Progress(i, len(names), name)
		}
		d := measure(root, name)
		if d.Why = cleanOne(root, name, d, o); d.Why != "" {
			stay = append(stay, d)
		} else {
			removed = append(removed, d)
		}
	}
	if o.Progress != nil {
		o.Progress(len(names), len(names), "")
	}
	return removed, stay, nil
}

// workspaceName tells our directories from whatever else somebody put there.
func workspaceName(name string) bool {
	return len(name) == 16 && strings.Trim(name, "0123456789abcdef") == ""
}

// cleanOne returns why the directory stays, "" if it went, or would.
func cleanOne(root *os.Root, name string, d PrivateDir, o CleanOptions) string {
	if !o.Before.IsZero() && d.Used.After(o.Before) {
		return "it was used since"
	}
	if !o.DryRun {
		if err := root.MkdirAll("ws/"+name, 0o700); err != nil {
			return withoutPath(err)
		}
	}
	unlock, free := lockUnused(d.Path)
	defer unlock()
	switch {
	case !free && o.DryRun:
		if _, err := root.Lstat("ws/" + name); errors.Is(err, fs.ErrNotExist) {
			return "" // layers alone
		}
		return "a run uses it"
	case !free:
		return "a run uses it"
	}
	if o.DryRun {
		return ""
	}
	// What was brought into a directory that is gone has to be brought in again: as long as the
	// lock is held no run reads the book.
	for _, book := range [...]string{name, name + "-in", name + "-out"} {
		if err := root.Remove("tmp/" + book + ".book"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return withoutPath(err)
		}
	}
	// A run that starts now waits for the lock until the directory has another name, and makes its
	// own. By then the layers must not be there any more, either.
	to := removing + name + "-" + strconv.Itoa(os.Getpid())
	for _, dir := range [...]string{"layers/", "ws/"} {
		if err := root.Rename(dir+name, dir+to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return withoutPath(err)
		}
	}
	unlock() // removing can take long, and no run finds these any more
	for _, dir := range [...]string{"layers/", "ws/"} {
		if err := removeTree(root, dir+to); err != nil {
			return withoutPath(err)
		}
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
	d := PrivateDir{Path: filepath.Join(root.Name(), "ws", name)}
	if fi, err := root.Lstat("ws/" + name); err == nil {
		d.Used = fi.ModTime().UTC()
	}
	for _, dir := range [...]string{"ws/", "layers/"} {
		_ = fs.WalkDir(root.FS(), dir+name, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if fi, err := e.Info(); err == nil && !e.IsDir() {
				d.Files++
				d.Bytes += fi.Size()
			}
			return nil
		})
	}
	return d
}

// removeTree removes a directory with all modes that a run may have left in it: those of
// a module cache are read-only, those of an overlay's own directory are closed.
func removeTree(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTEMPTY) {
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

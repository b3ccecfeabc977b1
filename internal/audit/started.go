package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// startedDir holds one file for each run between its intent and its record. Its run
// holds the lock of the file, so a file that can be locked belongs to a dead run: no
// process id is compared, and a reboot leaves no doubt.
const startedDir = "started"

// unlocked begins the name of a mark that has no lock yet.
const unlocked = "."

// maxStarted bounds what is read of such a file, and how many one run settles.
const maxStarted = 8 << 10

// Started is the mark of a run that has begun and has no record yet.
type Started struct {
	path string
	file *os.File
}

// Begin marks run as started. about is a JSON object that Settle puts into the record of
// a run that was killed; it must hold no secret and at most 8 KiB.
func (l *Log) Begin(run string, about []byte) (*Started, error) {
	dir := filepath.Join(l.dir, startedDir)
	path := filepath.Join(dir, run)
	// It gets its name when it is locked: a name without a lock is a dead run to others.
	unnamed := filepath.Join(dir, unlocked+run)
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := openPrivate(unnamed, flags)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Mkdir(dir, 0o700); err == nil || errors.Is(err, os.ErrExist) {
			f, err = openPrivate(unnamed, flags)
		}
	}
	if err != nil {
		return nil, &Error{Op: "mark", Path: path, Err: err}
	}
	s := &Started{path: unnamed, file: f}
	err = tryLock(f)
	if err == nil && len(about) <= maxStarted {
		_, err = f.Write(about)
	}
	if err == nil {
		if err = os.Rename(unnamed, path); err == nil {
			s.path = path
		}
	}
	if err != nil {
		s.End()
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, nil // nothing here tells a dead run from one that runs
		}
		return nil, &Error{Op: "mark", Path: path, Err: err}
	}
	return s, nil
}

// End takes the mark away: the run has its record, or nothing was started.
func (s *Started) End() {
	if s == nil || s.file == nil {
		return
	}
	os.Remove(s.path)
	s.file.Close()
	s.file = nil
}

// Settle writes a record of kind "killed" for each run whose process is gone without
// one, and takes its mark away. It returns the runs.
func (l *Log) Settle() ([]string, error) {
	dir, err := os.Open(filepath.Join(l.dir, startedDir))
	if err != nil {
		return nil, nil // no run has begun yet
	}
	names, _ := dir.Readdirnames(maxStarted)
	dir.Close()
	var settled []string
	for _, name := range names {
		if strings.HasPrefix(name, unlocked) {
			continue
		}
		ok, err := l.settle(name)
		if err != nil {
			return settled, err
		}
		if ok {
			settled = append(settled, name)
		}
	}
	return settled, nil
}

func (l *Log) settle(run string) (bool, error) {
	path := filepath.Join(l.dir, startedDir, run)
	f, err := openPrivate(path, os.O_RDWR)
	if err != nil {
		return false, nil // it ended meanwhile
	}
	defer f.Close()
	if tryLock(f) != nil {
		return false, nil // it runs
	}
	if _, err := os.Lstat(path); err != nil {
		return false, nil // another run has settled it
	}
	if !l.has(run) {
		about, err := io.ReadAll(io.LimitReader(f, maxStarted))
		object := bytes.TrimSpace(about)
		if err != nil || len(object) < 2 || object[0] != '{' || object[len(object)-1] != '}' {
			object = []byte("{}")
		}
		head := []byte(`{"kind":"killed","run":`)
		head = appendString(head, run)
		if len(object) > 2 {
			head = append(head, ',')
		}
		if _, err := l.Append(Encoded{ID: run + "-killed", Object: append(head, object[1:]...)}); err != nil {
			return false, err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return true, err
	}
	return true, nil
}

// has reports whether the newest two daily files hold a record of the run: it was killed
// between its record and the end of its mark.
func (l *Log) has(run string) bool {
	names, _ := dayFiles(l.dir)
	want := appendString([]byte(`"id":`), run)
	for _, name := range names[max(0, len(names)-2):] {
		raw, err := os.ReadFile(filepath.Join(l.dir, name))
		if err == nil && bytes.Contains(raw, want) {
			return true
		}
	}
	return false
}

//go:build !linux

package trust

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/owner"
)

// Other systems have no leases, no descriptor to start and no /proc/PID/exe:
// every file is loose, hashed each time and started by path.
const canStartByDescriptor = false

type stat struct {
	dev, ino uint64 // not known through the portable interface
	size     int64
	mtime    int64
	mode     fs.FileMode
	root     bool // only root can write it
}

func (s stat) same(t stat) bool { return s == t }

func statOf(fi fs.FileInfo) stat {
	return stat{size: fi.Size(), mtime: fi.ModTime().UnixNano(), mode: fi.Mode(), root: ownedByRoot(fi)}
}

func statPath(p string) (stat, error) {
	fi, err := os.Stat(p)
	if err != nil {
		return stat{}, err
	}
	return statOf(fi), nil
}

func statSystem(p string) (stat, error) { return statPath(p) }

type held struct {
	file        *os.File
	role, found string
	path, via   string
	st          stat
	form        Form
	class       Class
	digest      [32]byte
	hit         bool
	head        []byte
	shebangArg  string
	swappable   bool
	system      bool
	own         bool
}

type cache struct{}

func openCache(string, bool) *cache { return nil }

// PruneCache has nothing to do: no digest is cached here.
func PruneCache(dir string, now time.Time) (removed int, err error) { return 0, nil }

func hasSeparator(word string) bool { return strings.ContainsAny(word, `/`+string(filepath.Separator)) }

func spellings(word string) []string {
	if runtime.GOOS != "windows" || filepath.Ext(word) != "" {
		return []string{word}
	}
	return []string{word + ".exe", word + ".com", word + ".bat", word + ".cmd"}
}

func isMissing(err error) bool         { return errors.Is(err, fs.ErrNotExist) }
func readLink(p string) (string, bool) { t, err := os.Readlink(p); return t, err == nil }

func rootOnly(s stat, _ string) bool { return s.root }

// ownOnly cannot be told here.
func ownOnly(string) bool { return false }

// ownedByRoot reports a file that only root can change: not where owners cannot be told.
func ownedByRoot(fi fs.FileInfo) bool {
	uid, _, ok := owner.Of(fi)
	return ok && uid == 0 && fi.Mode().Perm()&0o022 == 0
}

func replaceable(dir string) bool {
	fi, err := os.Stat(dir)
	return err != nil || !ownedByRoot(fi)
}

// keeps is not known here.
func keeps(_, _ string) bool { return false }

func candidate(p string) error {
	fi, err := os.Stat(p)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return errNotRegular
	}
	if runtime.GOOS != "windows" && fi.Mode()&0o111 == 0 {
		return fs.ErrPermission
	}
	return nil
}

func hold(word, found, role string, _ *cache) (*held, error) {
	if err := candidate(found); err != nil && !(role == RoleArgument && errors.Is(err, fs.ErrPermission)) {
		return nil, candidateError(word, found, err)
	}
	file, err := os.Open(found)
	if err != nil {
		return nil, candidateError(word, found, err)
	}
	h := &held{file: file, role: role, found: found, via: found}
	if err := h.identify(word); err != nil {
		file.Close()
		return nil, err
	}
	return h, nil
}

func (h *held) identify(word string) error {
	fi, err := h.file.Stat()
	if err != nil {
		return candidateError(word, h.found, err)
	}
	if !fi.Mode().IsRegular() {
		return &NotExecutableError{Word: word, Path: h.found, Why: whyNotRegular}
	}
	h.st = statOf(fi)
	if h.path, err = filepath.EvalSymlinks(h.found); err != nil {
		return candidateError(word, h.found, err)
	}
	buf := make([]byte, headSize)
	n, err := h.file.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return candidateError(word, h.found, err)
	}
	h.head = buf[:n]
	if h.form = formOf(h.head); h.form == FormUnknown && h.role != RoleArgument && runtime.GOOS != "windows" {
		return &NotExecutableError{Word: word, Path: h.path, Why: "no format this system can execute"}
	}
	s := sha256.New()
	if _, err := io.Copy(s, io.NewSectionReader(h.file, 0, h.st.size)); err != nil {
		return candidateError(word, h.found, err)
	}
	s.Sum(h.digest[:0])
	return nil
}

func (h *held) close()  { h.file.Close() }
func (h *held) unlock() {}

func (h *held) wanted() bool { return false }

func (f *File) yield() {}

func (h *held) readAt(buf []byte) int {
	n, _ := h.file.ReadAt(buf, 0)
	return n
}

func watchFile(*File) {}
func unwatch(*File)   {}

// Start says how to start the file: by path.
func (f *File) Start() (path string, byDescriptor bool, file *os.File) {
	return f.startPath, false, f.parts[0].file
}

// Recheck is called just before the start: the paths still lead to files with
// the same size and time.
func (f *File) Recheck() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starting, f.started = true, time.Time{}
	for _, h := range f.parts {
		if now, err := statPath(h.found); err != nil || !now.same(h.st) {
			return &ChangedError{Path: h.path, Why: "its size, time or mode differ"}
		}
	}
	return nil
}

// CheckStarted cannot look at another process here.
func (f *File) CheckStarted(pid int) (string, error) { return "unsupported", nil }

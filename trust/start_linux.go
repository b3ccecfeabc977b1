package trust

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Start says how to start the file: by path, or, if byDescriptor, through
// /proc/self/fd/N of file, which stays right when the path is replaced. file is
// owned by f and closed by Close; path is what a reader calls it.
func (f *File) Start() (path string, byDescriptor bool, file *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handle == nil && !f.closed && f.parts[0].fd >= 0 {
		f.handle = os.NewFile(uintptr(f.parts[0].fd), f.id.Canonical)
	}
	return f.startPath, f.byDescriptor, f.handle
}

// Recheck is called just before the start: all leases are still held and the
// files are those that were identified. From here to StartedOK no lease is given
// back. Errors: *BusyError, *ChangedError.
func (f *File) Recheck() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &ChangedError{Path: f.id.Canonical, Why: "it is no longer held"}
	}
	f.starting, f.started = true, time.Time{}
	for _, h := range f.parts {
		if err := h.recheck(); err != nil {
			f.starting = false
			return err
		}
	}
	return nil
}

func (h *held) recheck() error {
	if h.class == ClassLeased && !(h.leased && leaseHeld(h.fd)) {
		// It was asked back: try once more, then the comparison decides whether
		// anything was written meanwhile.
		h.unlock()
		ok, err := lease(h.fd)
		if err != nil || !ok {
			return &BusyError{Path: h.path}
		}
		h.leased = true
	}
	now, err := statFD(h.fd)
	if err != nil {
		return &ChangedError{Path: h.path, Why: err.Error()}
	}
	if !now.same(h.st) {
		return &ChangedError{Path: h.path, Why: "its content or attributes differ"}
	}
	if !h.pathIntact() {
		return &ChangedError{Path: h.path, Why: "its path leads to another file"}
	}
	return nil
}

func (h *held) pathIntact() bool {
	if h.via == "" {
		return true
	}
	now, err := statPath(h.via)
	return err == nil && now.same(h.st)
}

func (f *File) pathsIntact() bool {
	for _, h := range f.parts {
		if !h.pathIntact() {
			return false
		}
	}
	return true
}

// CheckStarted compares the program that process pid runs with the identified
// chain: "true" it is one of them; "ended" it is gone, and the path is still
// right; "replaced" it has exec'd another program already; "unknown" it may not
// be looked at. With an error the caller kills the process tree.
func (f *File) CheckStarted(pid int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	exe, err := statPath("/proc/" + strconv.Itoa(pid) + "/exe")
	switch err {
	case nil:
		for _, h := range f.parts {
			if h.form != FormScript && exe.same(h.st) {
				// An interpreter says nothing about the script it was given.
				if f.scriptsIntact() {
					return "true", nil
				}
				return "", f.changed()
			}
		}
		// env, sudo and most wrappers exec'd the next program before we looked.
		if f.pathsIntact() {
			return "replaced", nil
		}
	case unix.ENOENT, unix.ESRCH:
		if f.pathsIntact() {
			return "ended", nil
		}
	default: // EACCES: not dumpable, or another user's by now
		return "unknown", nil
	}
	return "", f.changed()
}

func (f *File) changed() error {
	return &ChangedError{Path: f.id.Canonical, Why: "another file was started in its place"}
}

func (f *File) scriptsIntact() bool {
	for _, h := range f.parts {
		if h.form == FormScript && !h.pathIntact() {
			return false
		}
	}
	return true
}

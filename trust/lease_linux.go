package trust

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// lease takes a read lease (fcntl_locking(2), F_SETLEASE): from then on an open
// for writing waits, or gets EAGAIN, until we let go. false without an error
// means that this file cannot be leased; an error, that it is open for writing.
func lease(fd int) (bool, error) {
	announceBy(fd)
	for try := 0; ; try++ {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			return true, nil
		case err == unix.EINTR:
		case err != unix.EAGAIN:
			return false, nil
		case try >= 2:
			return false, err
		default:
			time.Sleep(time.Duration(15+20*try) * time.Millisecond)
		}
	}
}

// leaseHeld reports whether the lease is held and nobody asks for it back: while
// a writer waits, F_GETLEASE names the type the lease is being broken to.
func leaseHeld(fd int) bool {
	t, err := unix.FcntlInt(uintptr(fd), unix.F_GETLEASE, 0)
	return err == nil && t == unix.F_RDLCK
}

// wanted reports whether a writer waits for the lease.
func (h *held) wanted() bool { return h.leased && !leaseHeld(h.fd) }

func (h *held) unlock() {
	if h.leased && h.fd >= 0 {
		unix.FcntlInt(uintptr(h.fd), unix.F_SETLEASE, unix.F_UNLCK)
		h.leased = false
	}
}

// listenAfter is how long leases are held before anybody listens for a writer who
// wants one back. Most runs are past the start by then and hold none, and catching
// SIGIO costs switches of threads that the start would wait for.
const listenAfter = 10 * time.Millisecond

// watch is the set of open files whose leases somebody may ask back. Its lock is
// never held while one of a File is taken.
var watch struct {
	mu    sync.Mutex
	files []*File
	timed bool // listen was called, or will be
	catch sync.Once
}

// listening is set once SIGIO is caught, for good.
var listening atomic.Bool

// announceBy chooses the signal by which the kernel asks for the lease of fd. Until
// SIGIO is caught, which would end this process, it is SIGURG: the Go runtime takes
// and drops that one.
func announceBy(fd int) {
	sig := unix.SIGURG
	if listening.Load() {
		sig = unix.SIGIO
	}
	// A refusal leaves no lease to be asked for either.
	unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(sig))
}

// listen catches SIGIO if a lease is held, and looks whether one was wanted before.
// The signal is caught and not ignored: a child would inherit that.
func listen() {
	files := watched()
	if !anyLeased(files) {
		watch.mu.Lock()
		watch.timed = false
		watch.mu.Unlock()
		return
	}
	catchSIGIO()
	for _, f := range files {
		f.announce()
		f.yield()
	}
}

func catchSIGIO() {
	watch.catch.Do(func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGIO)
		listening.Store(true)
		go func() {
			for range c {
				for _, f := range watched() {
					f.yield()
				}
			}
		}()
	})
}

func watched() []*File {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	return append([]*File(nil), watch.files...)
}

func anyLeased(files []*File) bool {
	for _, f := range files {
		f.mu.Lock()
		leased := f.leased()
		f.mu.Unlock()
		if leased {
			return true
		}
	}
	return false
}

// leased reports whether a part is held by a lease. f is locked, or nobody else has it.
func (f *File) leased() bool {
	return slices.ContainsFunc(f.parts, func(h *held) bool { return h.leased })
}

// announce makes SIGIO the signal of all leases of f.
func (f *File) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.parts {
		if h.leased && h.fd >= 0 {
			announceBy(h.fd)
		}
	}
}

func watchFile(f *File) {
	if !f.leased() {
		return
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	watch.files = append(watch.files, f)
	if !watch.timed || listening.Load() {
		watch.timed = true
		time.AfterFunc(listenAfter, listen)
	}
}

func unwatch(f *File) {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	for i, g := range watch.files {
		if g == f {
			last := len(watch.files) - 1
			watch.files[i] = watch.files[last]
			watch.files[last] = nil
			watch.files = watch.files[:last]
			return
		}
	}
}

// yield gives leases back that a writer waits for, so that an editor does not
// hang for /proc/sys/fs/lease-break-time (45 s). It does so while a person is
// asked, when Recheck will notice, and while a script runs; never between.
func (f *File) yield() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || (f.starting && f.started.IsZero()) {
		return
	}
	if wait := scriptGrace - time.Since(f.started); f.starting && wait > 0 {
		time.AfterFunc(wait, f.yield)
		return
	}
	for _, h := range f.parts {
		if h.wanted() {
			h.unlock()
			f.broken = f.broken || f.starting
		}
	}
}

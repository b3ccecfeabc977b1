package trust

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lease takes a read lease (fcntl_locking(2), F_SETLEASE): from then on an open
// for writing waits, or gets EAGAIN, until we let go. false without an error
// means that this file cannot be leased; an error, that it is open for writing.
func lease(fd int) (bool, error) {
	catchSIGIO()
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

// watch is the set of open files whose leases somebody may ask back.
var watch struct {
	once  sync.Once
	mu    sync.Mutex
	files []*File
}

// catchSIGIO takes the signal by which the kernel asks for a lease. It must be
// caught and not ignored: a child would inherit the ignored disposition.
func catchSIGIO() {
	watch.once.Do(func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGIO)
		go func() {
			for range c {
				watch.mu.Lock()
				files := append([]*File(nil), watch.files...)
				watch.mu.Unlock()
				for _, f := range files {
					f.yield()
				}
			}
		}()
	})
}

func watchFile(f *File) {
	leased := false
	for _, h := range f.parts {
		leased = leased || h.leased
	}
	if !leased {
		return
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	watch.files = append(watch.files, f)
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

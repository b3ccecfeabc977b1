package trust

import (
	"os"
	"sync"
	"time"
)

// File is an identified executable, held open until Close.
type File struct {
	id           Identity
	parts        []*held
	startPath    string
	byDescriptor bool

	mu       sync.Mutex
	handle   *os.File
	starting bool      // from Recheck on, leases are given up no more
	started  time.Time // zero until StartedOK
	broken   bool      // a script's lease was asked back while it ran
	closed   bool
}

// Identity returns what was found.
func (f *File) Identity() Identity { return f.id }

// StartedOK is called once the program runs: binaries are given back to their
// writers (the kernel answers ETXTBSY from here on), scripts stay held, because
// interpreters read them as they go.
func (f *File) StartedOK() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = time.Now()
	if len(f.parts) == 1 {
		f.parts[0].unlock()
		return
	}
	for _, h := range f.parts {
		if h.wanted() { // the request came while nothing could be given up
			time.AfterFunc(scriptGrace, f.yield)
			return
		}
	}
}

// scriptGrace is how long a started script stays held against a waiting writer:
// its interpreter has to open it first.
const scriptGrace = time.Second

// Inherit reports whether the descriptor of Start must stay open in the child
// under its own number: the interpreter of a script opens it by that.
func (f *File) Inherit() bool { return f.byDescriptor && f.id.Form == FormScript }

// ScriptChanged reports whether somebody asked to write a part of the chain while
// it ran.
func (f *File) ScriptChanged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// Close releases everything. It may be called more than once.
func (f *File) Close() error {
	unwatch(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	for i, h := range f.parts {
		if i == 0 && f.handle != nil {
			h.unlock()
			f.handle.Close()
			continue
		}
		h.close()
	}
	return nil
}

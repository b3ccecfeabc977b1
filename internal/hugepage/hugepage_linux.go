//go:build amd64 || arm64

package hugepage

import (
	"syscall"
	"unsafe"

	_ "github.com/atip-dev/atip-exec/internal/standin" // before it: a stand-in needs no heap, and 2 MB to clear are a millisecond
)

// size is that of a huge page where pages have 4 KiB, and madvHugepage the advice of madvise(2)
// that asks for one (Documentation/admin-guide/mm/transhuge.rst). x/sys/unix is not initialised
// yet when this runs, and need not be.
const (
	size         = 2 << 20
	madvHugepage = 14
)

// head is larger than what the runtime hands out from what a processor has set aside, so that it
// and what follows it come from the same end of the heap.
const head = 128 << 10

// filler keeps what is allocated off the stack.
var filler []byte

// asked is where the huge page lies, 0 if there is none.
var asked uintptr

func init() {
	if syscall.Getpagesize() == 4096 {
		asked = advise()
	}
}

// advise asks for a huge page behind the part of the heap that is in use, and returns where it
// lies. The part up to there can have none any more, as some of it was touched, so it is taken
// by a slice that nothing writes: what the program allocates next lies in the huge page.
// The slice goes a little further, because the runtime maps 4 MiB at a time, and what it maps
// afterwards would lose the advice.
func advise() uintptr {
	filler = make([]byte, head)
	end := uintptr(unsafe.Pointer(&filler[0])) + head
	at := (end + size - 1) &^ (size - 1)
	filler = make([]byte, at-end+head)
	filler = nil
	if _, _, e := syscall.RawSyscall(syscall.SYS_MADVISE, at, size, madvHugepage); e != 0 {
		return 0
	}
	return at
}

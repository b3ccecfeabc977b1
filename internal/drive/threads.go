package drive

import (
	"runtime"
	"sync"
	"time"
)

// Threads kept ready while a command runs, and how long a command must run for them:
// most are over by then and do not pay.
const (
	spareThreads = 8
	spareAfter   = 5 * time.Millisecond
)

// KeepThreads makes threads while they can be had. A command that forks without end
// takes the last process of its user, a thread counts as one (RLIMIT_NPROC,
// setrlimit(2)), and the Go runtime ends a program that cannot make the one it wants:
// then no process is left to end the tree.
func KeepThreads() (stop func() bool) {
	return time.AfterFunc(spareAfter, func() {
		var here sync.WaitGroup
		leave := make(chan struct{})
		for range spareThreads {
			here.Add(1)
			go func() {
				runtime.LockOSThread() // held together, so that each needs a thread of its own
				defer runtime.UnlockOSThread()
				here.Done()
				<-leave
			}()
		}
		here.Wait()
		close(leave)
	}).Stop
}

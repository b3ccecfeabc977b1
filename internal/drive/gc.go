package drive

import "runtime/debug"

// usualGC is what the caller set by GOGC, or the default.
var usualGC = defaultGC

const defaultGC = 100

// PutOffGC has the first collection begin at 16 MB of heap, not at 4. A command that is over at once makes 3 to 6 of
// them, so that for most a collection would begin in the middle of the start: it takes a millisecond of each processor,
// and frees what the end of the process frees. KeepThreads ends it for a command that goes on.
func PutOffGC() {
	if usualGC = debug.SetGCPercent(4 * defaultGC); usualGC != defaultGC {
		debug.SetGCPercent(usualGC)
	}
}

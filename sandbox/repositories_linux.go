package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the search for repositories that a run has made.
const (
	maxWalked = 4096
	walkFor   = 5 * time.Millisecond
	minWalked = 256 // a small workspace is looked at whole, however busy the machine is
)

// search tells which git directories the run has made below the workspace, beside those
// whose names are protected.
func (g *protection) search(s *Settlement, names map[string]bool) {
	s.Truncated = g.cut
	for _, path := range g.found {
		if !names[path] && g.made(path) {
			s.Repositories = append(s.Repositories, path)
		}
	}
}

// made reports whether a name came into being since the run began. A directory that was
// renamed shows by a change that none of its entries explains.
func (g *protection) made(path string) bool {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st) != nil {
		return false
	}
	after := func(t unix.StatxTimestamp) bool { return !time.Unix(t.Sec, int64(t.Nsec)).Before(g.Began) }
	return st.Mask&unix.STATX_BTIME != 0 && after(st.Btime) || after(st.Ctime) && !after(st.Mtime)
}

// coarseNow is the time as file systems stamp it: that of the last tick of the clock.
func coarseNow() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts) != nil {
		return time.Now().Add(-10 * time.Millisecond)
	}
	return time.Unix(ts.Unix())
}

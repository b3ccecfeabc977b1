package sandbox

import (
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the search for repositories that a run has made.
const (
	maxWalked = 4096
	walkFor   = 5 * time.Millisecond
	minWalked = 256 // a small workspace is looked at whole, however busy the machine is
)

// search looks for git directories that the run has made below the workspace, beside those
// whose names are protected. It goes level by level, as what lies deep is met by fewer.
func (g *protection) search(s *Settlement) {
	s.Truncated = g.cut
	if g.patience == 0 {
		return // nothing ran, or it is known from before only
	}
	deadline, walked := time.Now().Add(g.patience), 0
	for root, r := range g.roots[:min(1, len(g.roots))] { // the workspace
		for level := []string{"."}; len(level) > 0; {
			var next []string
			for _, dir := range level {
				if walked > minWalked && time.Now().After(deadline) {
					s.Truncated = true
					return
				}
				f, err := r.Open(dir)
				if err != nil {
					continue
				}
				entries, _ := f.ReadDir(maxWalked - walked + 1)
				f.Close()
				for _, e := range entries {
					if walked++; walked > maxWalked {
						s.Truncated = true
						return
					}
					rel := filepath.Join(dir, e.Name())
					switch {
					case fold(e.Name()) == ".git":
						path := g.Roots[root] + "/" + rel
						if !g.named(path) && g.made(path) {
							s.Repositories = append(s.Repositories, path)
						}
					case e.Type() == fs.ModeDir:
						next = append(next, rel)
					}
				}
			}
			level = next
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
	if st.Mask&unix.STATX_BTIME != 0 && after(st.Btime) {
		return true
	}
	return after(st.Ctime) && !after(st.Mtime)
}

// coarseNow is the time as file systems stamp it: that of the last tick of the clock.
func coarseNow() time.Time {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts) != nil {
		return time.Now().Add(-10 * time.Millisecond)
	}
	return time.Unix(ts.Unix())
}

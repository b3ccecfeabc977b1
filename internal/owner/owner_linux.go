package owner

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// IsRoot reports whether uid, the owner of the file at path, is root. In a user namespace that has no
// root the kernel shows every owner outside of it as the overflow uid (user_namespaces(7)).
//
// In the private root of a normal user's run, what makes up the root itself is shown as the user's besides.
// On a read-only mount there, both stand for root: the parent run, which saw the owners as they are, granted
// what is there, and nothing inside can change it.
//
// In a sandbox of others, such as one of bubblewrap, the overflow uid stands for root below the directories
// that are root's on every system; elsewhere it may be any other user. The root directory may be the user's
// there: who puts another /usr into it puts in one that is shown as the user's. Who could fake such a root
// could as well do without us.
func IsRoot(uid uint32, path string) bool {
	if uid == 0 {
		return true
	}
	hidden, ours := hiddenRoot()
	switch {
	case hidden == 0:
		return false
	case !ours:
		return uid == hidden && ofSystem(path) || path == "/"
	}
	var st, root unix.Statfs_t
	if unix.Statfs(path, &st) != nil || st.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	return uid == hidden || unix.Statfs("/", &root) == nil && st.Fsid == root.Fsid
}

// ofSystem reports whether only root makes what lies at path, by the Filesystem Hierarchy Standard.
func ofSystem(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	first, _, _ := strings.Cut(filepath.Clean(path)[1:], "/")
	switch first {
	case "", "bin", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr":
		return true
	}
	return false
}

// hiddenRoot is the uid that stands for root where no root is mapped, 0 elsewhere, and whether that is in a
// private root of ours.
var hiddenRoot = sync.OnceValues(func() (uid uint32, ours bool) {
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || mapsRoot(maps) {
		return 0, false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	text, err2 := os.ReadFile("/proc/sys/fs/overflowuid")
	n, err3 := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32)
	if err != nil || err2 != nil || err3 != nil {
		return 0, false
	}
	return uint32(n), privateRoot(mounts)
})

// mapsRoot reports whether the uid map of a user namespace has uid 0; one that cannot be
// read has it.
func mapsRoot(maps []byte) bool {
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "0" {
			return true
		}
	}
	return len(maps) == 0
}

// privateRoot reports whether the root directory is the read-only one of our runs
// (proc_pid_mountinfo(5)).
func privateRoot(mounts []byte) bool {
	found := false
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(g) < 3 || f[4] != "/" {
			continue
		}
		// The last one is on top.
		found = g[0] == "tmpfs" && g[1] == "atip-exec" && strings.HasPrefix(f[5]+",", "ro,")
	}
	return found
}

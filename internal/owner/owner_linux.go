package owner

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// IsRoot reports whether uid, the owner of the file at path, is root. In the private root of
// a normal user's run the kernel shows every owner but that user as the overflow uid
// (user_namespaces(7)), and what makes up the root itself as the user's. On a read-only mount
// there, both stand for root: the parent run, which saw the owners as they are, granted what
// is there, and nothing inside can change it. Who could fake such a root could as well do
// without us.
func IsRoot(uid uint32, path string) bool {
	if uid == 0 {
		return true
	}
	hidden := hiddenRoot()
	if hidden == 0 {
		return false
	}
	var st, root unix.Statfs_t
	if unix.Statfs(path, &st) != nil || st.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	return uid == hidden || unix.Statfs("/", &root) == nil && st.Fsid == root.Fsid
}

// hiddenRoot is the uid that stands for root in a private root of ours, 0 elsewhere.
var hiddenRoot = sync.OnceValue(func() uint32 {
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || mapsRoot(maps) {
		return 0
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || !privateRoot(mounts) {
		return 0
	}
	text, err := os.ReadFile("/proc/sys/fs/overflowuid")
	uid, err2 := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32)
	if err != nil || err2 != nil {
		return 0
	}
	return uint32(uid)
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

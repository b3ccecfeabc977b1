package approve

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// maxAncestors bounds the walk: a tree deeper than this is a loop or an attack.
const maxAncestors = 256

// Ancestry returns the process pid and its ancestors, as far as /proc shows them.
func Ancestry(pid int) []Process {
	var out []Process
	for pid > 0 && len(out) < maxAncestors {
		p, parent, err := processOf(pid)
		if err != nil {
			break
		}
		out = append(out, p)
		pid = parent
	}
	return out
}

func processOf(pid int) (p Process, parent int, err error) {
	s, err := procstat.Of(pid)
	if err != nil {
		return p, 0, err
	}
	return Process{PID: pid, SID: s.Int(procstat.Session), TTY: s.Int(procstat.TTY), Name: s.Name, Start: s.Fields[procstat.Start]}, s.Int(procstat.Parent), nil
}

// maxEnviron bounds what is read of the environment of a process.
const maxEnviron = 1 << 20

// Holds is the first of the variables that a process of this user was started with, "" for none.
func Holds(pid int, names []string) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.LimitReader(f, maxEnviron))
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		if name, value, _ := strings.Cut(entry, "="); value != "" && slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

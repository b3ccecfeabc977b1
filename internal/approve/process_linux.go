package approve

import (
	"bytes"
	"os"
	"strconv"
	"strings"
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

// processOf reads /proc/PID/stat, see proc_pid_stat(5).
func processOf(pid int) (p Process, parent int, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, 0, err
	}
	// The name in parentheses may hold anything; the other fields follow the last one.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return p, 0, os.ErrInvalid
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 {
		return p, 0, os.ErrInvalid
	}
	p = Process{PID: pid, Name: string(stat[open+1 : end]), Start: fields[19]}
	parent, _ = strconv.Atoi(fields[1])
	p.SID, _ = strconv.Atoi(fields[3])
	p.TTY, _ = strconv.Atoi(fields[4])
	return p, parent, nil
}

// Package procstat reads /proc/PID/stat, and the command lines of processes.
package procstat

import (
	"bytes"
	"iter"
	"os"
	"strconv"
	"strings"
)

// Indices into Stat.Fields; see proc_pid_stat(5), which counts from 1 and the name as field 2.
const (
	State   = 0 // a letter of ps(1)
	Parent  = 1
	Session = 3
	TTY     = 4  // device number of the controlling terminal, 0 for none
	User    = 11 // processor time of all its threads in clock ticks, that of the kernel not counted
	System  = 12 // that of the kernel
	Start   = 19 // in clock ticks after boot: with the number it tells processes apart
)

// Stat is one line of /proc/PID/stat.
type Stat struct {
	Name   string   // of the executable, cut to 15 bytes; a process sets it as it likes
	Fields []string // after the name, at least up to Start
}

// Of reads the line of a process or thread of this PID namespace. The error is that of
// reading the file, or os.ErrInvalid for a line that is not understood.
func Of(pid int) (Stat, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	// The name in parentheses may hold anything; the last one ends it.
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return Stat{}, os.ErrInvalid
	}
	s := Stat{string(line[open+1 : end]), strings.Fields(string(line[end+1:]))}
	if len(s.Fields) <= Start {
		return Stat{}, os.ErrInvalid
	}
	return s, nil
}

// Int returns one of the numbers; 0 where it is none.
func (s Stat) Int(field int) int {
	n, _ := strconv.Atoi(s.Fields[field])
	return n
}

// Lines are the processes of this PID namespace, each with its command line, whose words end with a NUL
// byte. A pattern for paths of such files would list the directory of each process.
func Lines() iter.Seq2[int, string] {
	return func(yield func(pid int, line string) bool) {
		for _, pid := range Numbers("/proc") {
			if line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && !yield(pid, string(line)) {
				return
			}
		}
	}
}

// Numbers lists what has a number for a name in a directory of /proc: processes, threads or descriptors.
func Numbers(dir string) []int {
	entries, _ := os.ReadDir(dir)
	var out []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, n)
		}
	}
	return out
}

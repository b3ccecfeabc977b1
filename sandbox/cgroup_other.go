//go:build !linux

package sandbox

func findCgroup([]string) (dir, why string) { return "", "there are no control groups on this system" }

const (
	cgroupMemory    = "memory.max"
	cgroupProcesses = "pids.max"
)

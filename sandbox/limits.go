package sandbox

// defaultProcesses bounds a fork bomb where processes are counted for free.
const defaultProcesses = 4096

// How a limit is kept.
const (
	byRlimit     = "rlimit"
	byUserNS     = "rlimit-userns"
	byCgroup     = "cgroup"
	byMountSize  = "tmpfs"
	byAbsence    = "none there"
	sharedMemory = 256 << 20 // of /dev/shm, unless a limit says otherwise
)

// kept is what becomes of the limits at a tier.
type kept struct {
	limits  Limits            // with defaults
	by      map[string]string // mechanism of each limit that is set
	cgroup  string            // where a group of this run is made; "" for none
	max     map[string]uint64 // its limits
	problem error             // a limit that cannot be kept
}

// keep chooses the mechanism of each limit. Processes are counted by the kernel per user
// of the whole machine, except in a user namespace, and for root not at all
// (setrlimit(2)); a control group counts them for everybody.
func keep(l Limits, t Tier, h Host) kept {
	k := kept{limits: l, by: map[string]string{}}
	if t == T0 {
		return k
	}
	group := func(file, controller string, max uint64) string {
		where, why := h.cgroupFor(controller)
		if where == "" {
			return why
		}
		if k.max == nil {
			k.max = map[string]uint64{}
		}
		k.cgroup, k.max[file] = where, max
		return ""
	}
	for name, max := range map[string]uint64{"openFiles": l.OpenFiles, "cpu": l.CPU, "fileSize": l.FileSize} {
		if max != 0 {
			k.by[name] = byRlimit
		}
	}
	if l.Memory != 0 {
		k.by["memory"] = byCgroup
		if group(cgroupMemory, "memory", l.Memory) != "" {
			k.by["memory"] = byRlimit // of each process, RLIMIT_DATA
		}
	}
	switch {
	case t == T3 && !h.Root:
		if l.Processes == 0 {
			k.limits.Processes = defaultProcesses
		}
		k.by["processes"] = byUserNS
	case l.Processes != 0:
		if why := group(cgroupProcesses, "pids", l.Processes); why != "" {
			k.problem = &LimitError{Limit: "processes", Why: "processes of " + whose(h) + " are counted by a control group only, and " + why}
			k.limits.Processes = 0
			break
		}
		k.by["processes"] = byCgroup
	}
	if t == T3 {
		if l.Shm == 0 {
			k.limits.Shm = sharedMemory
		}
		k.by["shm"] = byMountSize
	} else if l.Shm != 0 {
		k.by["shm"] = byAbsence // lower tiers have no /dev/shm
	}
	return k
}

func whose(h Host) string {
	if h.Root {
		return "root"
	}
	return "one run at this tier"
}

// ofProcess are the limits that processes set on themselves.
func (k kept) ofProcess() Limits {
	l := k.limits
	if k.by["memory"] == byCgroup {
		l.Memory = 0
	}
	if k.by["processes"] == byCgroup {
		l.Processes = 0
	}
	return l
}

// noCgroup as Host.cgroup means that there is none, whatever this machine has.
const noCgroup = "none"

// cgroupFor finds where a group with the controller can be made. It is asked only if a
// limit needs one.
func (h Host) cgroupFor(controller string) (dir, why string) {
	switch h.cgroup {
	case "":
		return findCgroup([]string{controller})
	case noCgroup:
		return "", "this host has no control groups"
	}
	return h.cgroup, ""
}

// value is the limit of that name.
func (l Limits) value(name string) uint64 {
	switch name {
	case "openFiles":
		return l.OpenFiles
	case "cpu":
		return l.CPU
	case "fileSize":
		return l.FileSize
	case "memory":
		return l.Memory
	case "processes":
		return l.Processes
	case "shm":
		return l.Shm
	}
	return 0
}

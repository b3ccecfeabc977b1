package escape

import "strings"

// Promise names the guarantee (docs/threat-model.md) that the probe would break.
func Promise(family string, p Probe) string {
	switch family {
	case "files":
		switch {
		case p.name == "host-tmp" || p.name == "host-shm":
			return "tmp.private"
		case strings.HasPrefix(p.name, "read-") || p.name == "shadow" || p.name == "watch-and-map" || strings.HasPrefix(p.name, "device-"):
			return "files.read"
		}
		return "files.write"
	case "sight":
		if p.name == "command-line" || p.name == "process-directory" {
			return "proc.hidden"
		}
		return "files.hidden"
	case "processes":
		return processPromise(p.name)
	case "kernel":
		switch p.name {
		case "shared-memory", "semaphore", "message-queue":
			return "ipc.sysv"
		case "set-user-id", "own-capabilities", "no-new-privileges-off":
			return "privilege"
		}
		return "kernel"
	case "channels", "loopback", "allowlist", "full-network":
		switch p.name {
		case "unix-path", "unix-datagram":
			return "ipc.unix"
		case "unix-abstract":
			return "ipc.abstract"
		case "fifo":
			return "files.write"
		}
		return "net"
	case "metadata":
		return "files.meta"
	}
	switch {
	case strings.HasPrefix(p.name, "shared-"):
		return "tmp.private"
	case strings.HasPrefix(p.name, "planted-"):
		return "ws.check"
	case p.name == "many-descriptors":
		return "limits"
	}
	return "ws.protect"
}

func processPromise(name string) string {
	switch name {
	case "kill", "tkill", "tgkill", "sigqueue", "pidfd-signal", "proc-directory-as-pidfd":
		return "proc.signal"
	case "limits", "affinity", "priority", "io-priority-of-user", "io-priority", "oom-score", "timer-slack", "wrapper-score":
		return "proc.tune"
	}
	return "proc.attach"
}

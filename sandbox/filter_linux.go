package sandbox

import "github.com/atip-dev/atip-exec/sandbox/seccomp"

// filter chooses the system call filter of the setup.
func (s *Setup) filter() seccomp.Choice {
	p := &s.profile
	if s.tier == T3 {
		// Sockets are bounded by the network namespace and the private root, metadata by
		// read-only mounts, and other processes are not there.
		return seccomp.Choice{Inet: p.Net.Mode != NetNone, Unix: true, Metadata: true, Truncate: true, Fork: !p.SubprocessNo, Private: true}
	}
	return seccomp.Choice{
		Inet:     p.Net.Mode == NetFull,
		Unix:     len(p.Unix) > 0 && s.host.ABI >= resolveUnixABI,
		Metadata: p.HostWrite,
		Truncate: s.host.ABI >= truncateABI,
		Fork:     !p.SubprocessNo,
	}
}

// program names the filter without installing it. Ids and ticket are placeholders.
func (s *Setup) program() Program {
	_, name, sha, err := seccomp.Load(s.filter(), 1, 1, 1)
	if err != nil {
		return Program{Name: name}
	}
	return Program{Name: name, SHA256: sha}
}

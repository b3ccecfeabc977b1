package sandbox

// filter chooses the system call filter of the setup.
func (s *Setup) filter() seccompChoice {
	p := &s.profile
	if s.tier == T3 {
		// Sockets are bounded by the network namespace and the private root, metadata by
		// read-only mounts, and other processes are not there.
		return seccompChoice{inet: p.Net.Mode != NetNone, unix: true, metadata: true, truncate: true, fork: !p.SubprocessNo, private: true}
	}
	return seccompChoice{
		inet:     p.Net.Mode == NetFull,
		unix:     len(p.Unix) > 0 && s.host.ABI >= resolveUnixABI,
		metadata: p.HostWrite,
		truncate: s.host.ABI >= truncateABI,
		fork:     !p.SubprocessNo,
	}
}

// program names the filter without installing it. Ids and ticket are placeholders.
func (s *Setup) program() Program {
	_, name, sha, err := loadProgram(s.filter(), 1, 1, 1)
	if err != nil {
		return Program{Name: name}
	}
	return Program{Name: name, SHA256: sha}
}

package policy

// TrustPolicy returns the merged trust object: the managed layer wins over the
// user's, and every other layer only tightens.
func (s *Set) TrustPolicy() TrustPolicy {
	p := TrustPolicy{Pins: map[string][]string{}}
	for _, d := range s.docs {
		x := &d.trust
		p.RequireMetadata = p.RequireMetadata || x.RequireMetadata
		p.RequireTool = p.RequireTool || x.RequireTool
		p.MinimumSLSALevel = max(p.MinimumSLSALevel, x.MinimumSLSALevel)
		p.Revoked = union(p.Revoked, x.Revoked)
		p.RevokedSigners = append(p.RevokedSigners, x.RevokedSigners...)
		switch {
		case owner(d):
			p.Signers = append(p.Signers, x.Signers...)
			p.Builders = append(p.Builders, x.Builders...)
		case x.SignersSet:
			p.SignerFilters = append(p.SignerFilters, x.Signers)
		}
		p.MaxRootAge = least(p.MaxRootAge, x.MaxRootAge)
		p.MaxStateAge = least(p.MaxStateAge, x.MaxStateAge)
		p.OnUnsigned = replaceAction(p.OnUnsigned, x.OnUnsigned, owner(d))
		p.OnUnverified = replaceAction(p.OnUnverified, x.OnUnverified, owner(d))
		for name, digests := range x.Pins {
			if old, pinned := p.Pins[name]; pinned {
				p.Pins[name] = intersect(old, digests)
			} else if owner(d) {
				p.Pins[name] = digests
			}
			// A pin vouches for a file, so a project cannot add one.
		}
		if x.SystemPathsSet {
			switch {
			case p.SystemPathsSet:
				p.SystemPaths = intersect(p.SystemPaths, x.SystemPaths)
			case owner(d):
				p.SystemPaths, p.SystemPathsSet = x.SystemPaths, true
			}
		}
		if !owner(d) {
			continue
		}
		p.ExpectationsOff = p.ExpectationsOff || x.ExpectationsOff
		if p.DistroTrust == "" {
			p.DistroTrust = x.DistroTrust
		}
		if p.Scripts == "" {
			p.Scripts = x.Scripts
		}
		if p.Recheck == "" {
			p.Recheck = x.Recheck
		}
	}
	return p
}

// replaceAction merges onUnsigned and onUnverified. Unset, the verdict's own
// action holds, which is never looser than confirm.
func replaceAction(old, now string, owner bool) string {
	switch {
	case now == "":
		return old
	case old == "":
		if now == "allow" && !owner {
			return old
		}
		return now
	}
	a, _ := ActionByName(old)
	b, _ := ActionByName(now)
	return min(a, b).String()
}

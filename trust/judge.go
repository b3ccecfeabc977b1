package trust

import (
	"path/filepath"
	"strings"
)

// Judge decides about every part of the chain and returns the weakest level with
// the strictest action. settled is what is known of the parts' signatures, in the order
// of the chain; parts without an entry have none.
func Judge(id Identity, p Policy, settled ...Settled) Verdict {
	verdicts := make([]Verdict, 0, len(id.Chain))
	for i, part := range id.Chain {
		var s Settled
		if i < len(settled) {
			s = settled[i]
		}
		v := Decide(evaluatePart(id, i, p, s), p)
		v.Part, v.Evidence = part.Path, s.Evidence
		verdicts = append(verdicts, v)
	}
	v := Combine(verdicts...)
	v.Caps = id.Caps
	return v
}

// WithArgument adds the last part of the chain, a file that the program was told to run. Nobody signs
// those, so that it counts only if it is condemned: revoked, or other bytes than a pin or a lock says.
func (v Verdict) WithArgument(id Identity, p Policy) Verdict {
	last := len(id.Chain) - 1
	f := evaluatePart(id, last, p, Settled{})
	if !f.Revoked && !f.LockMismatch && f.Checksum != ChecksumMismatch {
		return v
	}
	w := Decide(f, p)
	w.Part = id.Chain[last].Path
	return Combine(v, w)
}

func evaluatePart(id Identity, i int, p Policy, s Settled) Facts {
	part := id.Chain[i]
	f := s.Facts(Facts{Unreadable: part.Digest == "", SystemPath: part.SystemPath, OwnPath: part.OwnPath})
	if i == 0 {
		f.Caps = id.Caps
	}
	if part.Digest != "" && contains(p.Revoked, part.Digest) {
		f.Revoked = true
	}
	// All shims of a version manager have equal bytes: the tool's name belongs to
	// the program behind the shim, if that is known.
	_, behind := id.Target()
	names := []string{part.Path}
	switch {
	case i == 0 && behind:
		names = append(names, id.Place)
	case i == 0:
		names = append(names, id.Place, id.Invoked, id.Effective)
	case part.Role == RoleTarget:
		names = append(names, id.Invoked, filepath.Base(part.Path))
	default:
		names = append(names, filepath.Base(part.Path))
	}
	// A pinned name with other bytes is a mismatch wherever it was found; several
	// pins on one file must all hold.
	for _, name := range names {
		digests, ok := p.Pins[name]
		if !ok {
			continue
		}
		if part.Digest == "" || !contains(digests, part.Digest) {
			f.Checksum, f.Pinned = ChecksumMismatch, false
			return f
		}
		f.Pinned = true
	}
	for _, name := range names {
		if digest, ok := p.Locked[name]; ok {
			if part.Digest == "" || digest != part.Digest {
				f.LockMismatch = true
			} else {
				f.Pinned = true
			}
		}
		if digest, ok := p.LockedByProject[name]; ok && digest != part.Digest {
			f.LockMismatch = true
		}
	}
	return f
}

// contains compares digests: hex in any case, with or without "sha256:".
func contains(digests []string, hex string) bool {
	for _, d := range digests {
		d, _ = strings.CutPrefix(d, "sha256:")
		if strings.EqualFold(d, hex) {
			return true
		}
	}
	return false
}

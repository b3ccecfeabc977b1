package filter

// Again returns a Set that has learned nothing, of one that has not either. Both have the same
// entries, whose index is built once for all of them.
func (s *Set) Again() *Set {
	out := &Set{cfg: s.cfg, key: s.key, loadKey: s.loadKey, allow: s.allow}
	out.full.Store(s.cfg.NoMemory)
	out.snap.Store(s.snap.Load())
	return out
}

package filter

// looseTo returns how far the held bytes may go out at a pause: to the first
// candidate that already looks like a secret.
func (e *engine) looseTo() int {
	v := e.view.vis
	if !e.open.loose {
		return e.holdAt
	}
	probe := engine{set: e.set, snap: e.snap}
	probe.view.vis = v
	for i := e.holdAt + 1; i < len(v); i++ {
		for _, of := range [...]*engine{e, &probe} {
			for _, c := range of.values {
				if c.at != i {
					continue
				}
				if r := of.judgeValue(&c, false); r.outcome != no && !r.loose {
					return i
				}
			}
		}
		if i+3 > len(v) {
			continue // a candidate that starts here is too short to matter
		}
		x := e.snap.index
		for k := x.entryAt(v, i); k >= 0; k = x.after(v, i, k) {
			ent := &x.entries[k]
			if ent.kind >= eName {
				probe.zoned = false
				probe.announce(i, ent, false, true)
			} else if r := e.judgeEntry(i, ent, false); r.outcome != no && !r.loose {
				return i
			}
		}
	}
	return len(v)
}

package policy

// lift returns what is left of a restrictive rule after the allow rules of lower
// layers, and the rule that lifted it.
func (s *Set) lift(r *rule, action Action, matched []*rule, j *judged) (left Action, by *rule) {
	left = action
	if r.layer == LayerOrg || r.floor <= action {
		return left, nil
	}
	for _, a := range matched {
		switch {
		case a.layer <= r.layer,
			r.decision == Deny && !s.named(a, r),
			r.needsDigest && !j.namesDigest(a):
			continue
		}
		if r.floor > left || r.floor == left && by != nil && a.name() < by.name() {
			left, by = r.floor, a
		}
	}
	return left, by
}

// named reports whether an allow rule names the upper deny rule it replaces, and
// every ceiling between them admits that.
func (s *Set) named(a, r *rule) bool {
	if !contains(a.lifts, r.id) && !contains(a.lifts, r.name()) {
		return false
	}
	for _, d := range s.docs {
		c := d.ceiling
		if c != nil && c.hasLifts && d.source.Layer < a.layer && !contains(c.lifts, r.id) && !contains(c.lifts, r.name()) {
			return false
		}
	}
	return true
}

func (j *judged) namesDigest(a *rule) bool {
	return j.step.File.Digest != "" && contains(a.when.tool, "sha256:"+j.step.File.Digest)
}

package policy

// Restricts reports whether a document restricts anything beyond the built-in policy: by a
// rule. A delegation is held when the run is planned and by the sandbox.
func (s *Set) Restricts() bool {
	for _, r := range s.restrict {
		if r.layer != LayerBuiltin {
			return true
		}
	}
	return false
}

// Written returns the set without the built-in rules and without a default: what documents
// restrict, and nothing else. Programs that code of the workspace starts are judged by it, as they could do no
// more than that code, which has the same sandbox.
func (s *Set) Written() *Set {
	out := *s
	out.dflt, out.restrict = Allow, nil
	for _, r := range s.restrict {
		if r.layer != LayerBuiltin {
			out.restrict = append(out.restrict, r)
		}
	}
	return &out
}

// Defers reports whether planning may leave words that are not known to the decision at
// execve.
func (s *Set) Defers() bool { return s.switches&switchBit("defer") != 0 }

// FetchesDeclared reports whether what a project declares may be fetched in a run of its own
// before a command that would ask for the network.
func (s *Set) FetchesDeclared() bool { return s.switches&switchBit("declared_dependencies") != 0 }

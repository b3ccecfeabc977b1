package policy

// Allowlist is the demand of a document that only files which a registry approves run.
type Allowlist struct {
	File     string
	Layer    Layer
	Registry string // address of the registry, "" where the document does not name one
}

// Allowlists lists the demands in force. Each must be met: one registry's approval says
// nothing about another's.
func (s *Set) Allowlists() []Allowlist {
	var out []Allowlist
	for _, d := range s.docs {
		if d.allowlist {
			out = append(out, Allowlist{File: d.source.File, Layer: d.source.Layer, Registry: d.registry})
		}
	}
	return out
}

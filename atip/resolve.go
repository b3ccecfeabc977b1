package atip

// ResolveOptions is what Resolve must know beside the words.
type ResolveOptions struct {
	Provenance Provenance
	// InvokedAs is the base name the program is called by ("" for argv[0]);
	// Effective is the base name of the resolved file ("" for InvokedAs).
	InvokedAs, Effective string
	// Env looks up a variable as the child will see it; nil means none is set.
	Env func(name string) (string, bool)
	// EnvNames lists the variables the child will see, for rules such as GIT_*.
	// If nil while Env is not, such rules cannot be answered and count as unknown.
	EnvNames []string
}

// Resolve turns an argv into a Call. It never fails: at worst all is unknown.
func (d *Document) Resolve(argv []string, o ResolveOptions) Call {
	c := UnknownCall(argv, o.InvokedAs)
	c.Provenance = o.Provenance
	return c
}

// UnknownCall is the Call of a tool without a document: every effect unknown.
func UnknownCall(argv []string, invokedAs string) Call {
	if invokedAs == "" && len(argv) > 0 {
		invokedAs = baseName(argv[0])
	}
	c := Call{
		Tool: invokedAs, InvokedAs: invokedAs, Argv: argv, Path: []string{}, Readings: 1,
		Options: []OptionUse{}, UnknownOptions: []string{}, Positionals: []Positional{},
		Resources: []Resource{}, Nested: []Nested{}, Secrets: []string{},
	}
	c.Provenance = Provenance{Channel: "none", Binding: "none"}
	return c
}

func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

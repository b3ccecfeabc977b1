package shims

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
)

// Query is what identification found out about an executable.
type Query struct {
	Digest    string // lower-case hex SHA-256 of the file, "" if it could not be read
	Effective string // base name of the resolved file
	Invoked   string // base name as typed
	// Borrow is the base name of a root-owned link, in a directory that this user
	// cannot write, which leads to the file: vi for /usr/bin/vim.basic. Its
	// metadata serves if the file's own name has none.
	Borrow   string
	Believed bool // pinned, known digest, distribution or system path
	Verified bool // signature verified
	// NameOnly marks a version manager's shim. All of them have equal bytes, so
	// the digest must not choose metadata.
	NameOnly bool
}

// Found is the answer of a look-up. The zero value is "no metadata".
type Found struct {
	Document   *atip.Document // nil: none
	Raise      *atip.Document // what it says "yes" to joins in
	Provenance atip.Provenance
	Lost       []atip.Provenance // sources seen that did not decide
	Warnings   []string

	raiseFrom atip.Provenance
	name      string // effective name to resolve by
}

// Resolve says what argv does according to the document found, joined with what
// the raising document adds. argv[0] is the word that was typed.
func (f Found) Resolve(argv []string, o atip.ResolveOptions) atip.Call {
	if o.InvokedAs == "" && len(argv) > 0 {
		o.InvokedAs = filepath.Base(argv[0])
	}
	if f.name != "" {
		o.Effective = f.name
	}
	if f.Document == nil {
		c := atip.UnknownCall(argv, o.InvokedAs)
		c.Provenance = f.Provenance
		c.Warnings = append(c.Warnings, f.Warnings...)
		return c
	}
	o.Provenance = f.Provenance
	c := f.Document.Resolve(argv, o)
	if f.Raise != nil {
		o.Provenance = f.raiseFrom
		c = atip.JoinDanger(c, f.Raise.Resolve(argv, o))
	}
	c.Warnings = append(c.Warnings, f.Warnings...)
	return c
}

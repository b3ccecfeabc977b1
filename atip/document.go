package atip

// ParseOptions chooses how strictly and how much is read. The zero value allows
// no comments and reads at most 4 MiB.
type ParseOptions struct {
	Comments bool     // JSONC: // and /* */ outside strings; never for what may be signed
	MaxBytes int      // 0: 4 MiB
	DataKeys []string // ParseTree: objects under these keys have data as keys, exempt from case folding
	Known    []string // ParseTree: field names that no other key may equal under case folding
}

// Document is the parsed metadata of one tool. It is safe for concurrent use.
type Document struct{}

// Parse reads an ATIP document, versions 0.1 to 0.6, native or shim. A breach of
// strict JSON refuses all of it with a *DocError.
func Parse(raw []byte, o ParseOptions) (*Document, error) {
	return nil, &DocError{Code: "E1103", Msg: "document cannot be read"}
}

// Name is the tool's name; a shim's binary.name where the root has none.
func (d *Document) Name() string { return "" }

// Version is the tool's version; a shim's binary.version where the root has none.
func (d *Document) Version() string { return "" }

// Description is the one-line description of the tool.
func (d *Document) Description() string { return "" }

// Names returns the globs of x-atip-names: other names of the same program.
func (d *Document) Names() []string { return nil }

// Multicall reports x-atip-multicall: the invoked name selects the command.
func (d *Document) Multicall() bool { return false }

// BinaryHash is the lower-case hex SHA-256 of the one binary a shim describes, "" if none.
func (d *Document) BinaryHash() string { return "" }

// DeclaredSource is trust.source as a rank; false if missing or "native", which
// declare what the place of the document allows.
func (d *Document) DeclaredSource() (Rank, bool) { return Inferred, false }

// Inferred reports trust.source "inferred": such a document may claim danger only.
func (d *Document) Inferred() bool { return true }

// Warnings lists what was ignored or weakened on loading.
func (d *Document) Warnings() []Finding { return nil }

// Validate checks a document as `atip validate` does: what loading tolerates is
// an error here. file is its name, which a hash-keyed shim must match.
func Validate(raw []byte, file string) []Finding {
	return []Finding{{Severity: SeverityError, Code: "E1103", Message: "document cannot be read"}}
}

// RankByName is the inverse of Rank.String.
func RankByName(name string) (Rank, bool) {
	for r := Inferred; r <= Vendor; r++ {
		if r.String() == name {
			return r, true
		}
	}
	return Inferred, false
}

package atip

// Kind is the type of a JSON value.
type Kind uint8

// The JSON types.
const (
	KindNull Kind = iota
	KindFalse
	KindTrue
	KindNumber
	KindString
	KindArray
	KindObject
)

// Node is one value of a strictly read JSON text, with its position. Members of an
// object keep their order.
type Node struct {
	Kind      Kind
	Key       string // member name, when the parent is an object
	KeyLine   int
	KeyCol    int
	Text      string // a string decoded, a number as written
	Items     []*Node
	Line, Col int // of the value; columns count bytes from 1
}

// Get returns the member with this name, nil if there is none.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != KindObject {
		return nil
	}
	for _, m := range n.Items {
		if m.Key == key {
			return m
		}
	}
	return nil
}

// Bool returns the value of true or false; ok is false for any other kind.
func (n *Node) Bool() (v, ok bool) {
	if n == nil {
		return false, false
	}
	return n.Kind == KindTrue, n.Kind == KindTrue || n.Kind == KindFalse
}

// ParseTree reads strict JSON: valid UTF-8, no byte order mark, no duplicate or
// case-variant keys, no lone surrogates, no U+0000, nothing after the value, at
// most 64 levels. Errors are *DocError with code E1101 or E1102.
func ParseTree(raw []byte, o ParseOptions) (*Node, error) {
	return nil, &DocError{Code: "E1101", Msg: "text cannot be read"}
}

// ScanStrict checks what ParseTree checks and builds nothing.
func ScanStrict(raw []byte, o ParseOptions) error {
	return &DocError{Code: "E1101", Msg: "text cannot be read"}
}

// StripComments replaces // and /* */ comments outside strings by spaces, so that
// line and column of everything else stay as they are.
func StripComments(raw []byte) ([]byte, error) {
	return nil, &DocError{Code: "E1101", Msg: "text cannot be read"}
}

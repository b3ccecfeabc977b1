package atip

// Value is a three-valued truth. The zero value is Unknown: what a document does
// not state is never read as "no".
type Value uint8

// The three truth values.
const (
	Unknown Value = iota
	No
	Yes
)

// String returns "unknown", "no" or "yes".
func (v Value) String() string {
	switch v {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// MarshalText implements encoding.TextMarshaler.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Of turns a stated JSON boolean into a Value.
func Of(b bool) Value {
	if b {
		return Yes
	}
	return No
}

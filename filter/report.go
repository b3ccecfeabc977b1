package filter

// Stream names the stream a Writer cleans.
type Stream uint8

// The streams of a run. A PTY is one stream with the echo in it.
const (
	Stdout Stream = iota
	Stderr
	PTY
)

// String returns the name used in reports.
func (s Stream) String() string {
	switch s {
	case Stderr:
		return "stderr"
	case PTY:
		return "pty"
	}
	return "stdout"
}

// Finding is one replaced region. It never holds a byte of the value, and its
// offsets are for `atip redact --report` only: an audit record must not have them.
type Finding struct {
	Rule  string `json:"rule"`
	Layer string `json:"layer"` // known, armour, prefix, context
	Tag   string `json:"tag,omitempty"`
	Start int64  `json:"start"` // offset in the input
	End   int64  `json:"end"`
	Line  int64  `json:"line"` // 1-based
}

// Unfiltered says what of a stream was not filtered as text, "" if all was.
func (r *Report) Unfiltered() string {
	if !r.Binary || r.Blocked {
		return ""
	}
	return decimal(r.BinaryBytes) + " bytes are binary; only known values, keys and tokens were looked for in them"
}

// Redaction counts the findings of one rule and tag in one stream.
type Redaction struct {
	Rule   string `json:"rule"`
	Tag    string `json:"tag,omitempty"`
	Count  int64  `json:"count"`
	Stream string `json:"stream"`
}

// Report is what a Writer did.
type Report struct {
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`
	Binary   bool  `json:"binary"` // a stretch of it was
	// BinaryBytes is how much of the stream lay in binary stretches, in which only known
	// values, keys and tokens are looked for.
	BinaryBytes int64       `json:"binary_bytes,omitempty"`
	Redacted    bool        `json:"redacted"` // false: a part of the stream was not filtered as text
	Redactions  []Redaction `json:"redactions"`
	// Blocked says that policy kept binary stretches from being shown.
	Blocked bool `json:"-"`
	// Findings is filled only if Config.KeepFindings is set.
	Findings []Finding `json:"-"`
}

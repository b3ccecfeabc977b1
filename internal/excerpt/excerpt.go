// Package excerpt keeps a bounded part of a stream, whatever its writer does.
package excerpt

import "strconv"

// Head keeps the first bytes of a stream and drops the rest, so that its writer is neither
// stopped nor believed.
type Head struct {
	Limit int
	Kept  []byte
	Over  bool   // there was more
	Full  func() // called when there is more; may be nil
}

// Write implements io.Writer.
func (h *Head) Write(p []byte) (int, error) {
	room := min(len(p), h.Limit-len(h.Kept))
	h.Kept = append(h.Kept, p[:room]...)
	if room < len(p) {
		if h.Over = true; h.Full != nil {
			h.Full()
		}
	}
	return len(p), nil
}

// Ends keeps the head of a stream, a fifth of the limit, and its end.
type Ends struct {
	Limit int

	head, end []byte
	total     int
}

// Write implements io.Writer.
func (e *Ends) Write(p []byte) (int, error) {
	n := len(p)
	e.total += n
	if room := e.Limit/5 - len(e.head); room > 0 && len(e.end) == 0 {
		take := min(room, n)
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	e.end = append(e.end, p...)
	if limit := e.Limit - e.Limit/5; len(e.end) > 2*limit {
		e.end = append(e.end[:0], e.end[len(e.end)-limit:]...)
	}
	return n, nil
}

// Bytes returns what was kept, with a line in place of what was not.
func (e *Ends) Bytes() (data []byte, truncated bool) {
	end := e.end[max(0, len(e.end)-(e.Limit-e.Limit/5)):]
	data = append([]byte{}, e.head...)
	left := e.total - len(e.head) - len(end)
	if left > 0 {
		data = append(data, "\n[atip-exec: "+strconv.Itoa(left)+" bytes omitted]\n"...)
	}
	return append(data, end...), left > 0
}

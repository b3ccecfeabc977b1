package filter

import (
	"io"
	"time"
)

// IdleAfter is how long a stream with held bytes may pause before Idle is called.
const IdleAfter = 25 * time.Millisecond

// Writer cleans one stream. It is used by one goroutine at a time.
//
// After each Write all bytes before the earliest possible secret are out. If
// Held is greater than zero after a Write, the caller arms a timer of IdleAfter
// and calls Idle when no further bytes came.
type Writer struct {
	set    *Set
	dst    io.Writer
	stream Stream
}

// Write cleans p. It takes all of p or fails.
func (w *Writer) Write(p []byte) (int, error) {
	return 0, &Error{Code: "E5002", Reason: "no engine in this build"}
}

// Held is the number of bytes that wait for the rest of a possible secret.
func (w *Writer) Held() int { return 0 }

// Idle tells the Writer that the stream pauses: what is unlikely to be a secret
// is written, such as a prompt.
func (w *Writer) Idle() error { return nil }

// Close ends the stream. The destination stays open.
func (w *Writer) Close() error { return nil }

// Report says what was done; complete after Close.
func (w *Writer) Report() Report { return Report{} }

package drive

import "io"

// tailSize is how much of the end of standard error a hint is guessed from.
const tailSize = 4 << 10

// Tail passes a stream on and remembers its end. What it sees is redacted already.
type Tail struct {
	To   io.Writer
	Last []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.Last = append(t.Last, p[max(0, len(p)-tailSize):]...)
	if over := len(t.Last) - tailSize; over > 0 {
		t.Last = append(t.Last[:0], t.Last[over:]...)
	}
	return t.To.Write(p)
}

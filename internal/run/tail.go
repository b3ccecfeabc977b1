package run

import "io"

// tailSize is how much of the end of standard error a hint is guessed from.
const tailSize = 4 << 10

// tail passes a stream on and remembers its end. What it sees is redacted already.
type tail struct {
	to   io.Writer
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p[max(0, len(p)-tailSize):]...)
	if over := len(t.last) - tailSize; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return t.to.Write(p)
}

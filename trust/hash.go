package trust

import (
	"errors"
	"sync"
)

var errShort = errors.New("the file changed its size while it was read")

// hashBuffers keeps the read buffer of one digest for the next part of a chain.
var hashBuffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}

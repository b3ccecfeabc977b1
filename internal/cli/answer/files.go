package answer

import (
	"errors"
	"fmt"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// MaxDocument bounds a metadata document, in bytes.
const MaxDocument = 4 << 20

// ReadFile reads a regular file of at most limit bytes; a FIFO is refused instead
// of waited for.
func ReadFile(path string, limit int64) ([]byte, error) {
	raw, err := regular.Read(path, limit)
	if err == nil {
		return raw, nil
	}
	code, why := errcode.NoInputFile, err.Error()
	var large *regular.TooLargeError
	switch {
	case errors.As(err, &large):
		code, why = errcode.MetadataLimit, fmt.Sprintf("%s is larger than %d bytes", path, limit)
	case errors.Is(err, regular.ErrNot):
		why = path + " is not a regular file"
	}
	return nil, fault.New(code, why).With("file", path)
}

package answer

import (
	"fmt"
	"io"
	"os"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// MaxDocument bounds a metadata document, in bytes.
const MaxDocument = 4 << 20

// ReadFile reads a regular file of at most limit bytes; a FIFO is refused instead
// of waited for.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error()).With("file", path)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(errcode.NoInputFile, path+" is not a regular file").With("file", path)
	}
	if info.Size() > limit {
		return nil, fault.New(errcode.MetadataLimit, fmt.Sprintf("%s is larger than %d bytes", path, limit)).With("file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error()).With("file", path)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, fault.New(errcode.NoInputFile, err.Error()).With("file", path)
	}
	return raw, nil
}

//go:build !linux

package shims

import (
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// Documents are read whole here: what else a file system says of a file is not known
// to change with it.

func (f *safeFile) indexed(string) (doc *atip.Document, digest string) { return nil, "" }

func (f *safeFile) keepIndex(string, []byte, bool, time.Time) {}

func docIndexPath(dir, path string) string { return filepath.Join(dir, filepath.Base(path)) }

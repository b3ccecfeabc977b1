package remote

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/shims"
)

// Document is a document in the folder of a registry.
type Document struct {
	Digest string // of the executable
	Path   string
}

// Documents lists the documents that lie in the folder of a registry, by digest; what has
// no name of a document is none, and a folder without any has none.
func Documents(dir string) ([]Document, error) {
	entries, err := os.ReadDir(documentDir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []Document
	for _, e := range entries { // sorted by name
		if hex, ok := strings.CutSuffix(e.Name(), ".json"); ok && shims.IsDigest(hex) {
			list = append(list, Document{Digest: hex, Path: filepath.Join(documentDir(dir), e.Name())})
		}
	}
	return list, nil
}

func documentDir(dir string) string { return filepath.Join(dir, "shims", "sha256") }

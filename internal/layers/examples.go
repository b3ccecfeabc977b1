package layers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/policy"
)

// Examples runs the examples of policy documents, once per document and program: that they
// held is remembered. Forging that only skips a test of the author's.
type Examples struct {
	Dir  string // where it is remembered
	Self string // this program
	// Judge makes what says what a shell string would ask, for a document whose examples have to run.
	Judge func(self string) (func(cmd, cwd string) (policy.Request, error), error)
}

// Check is an error if an example of a document does not hold.
func (e Examples) Check(doc *policy.Document) error {
	if !doc.HasExamples() {
		return nil
	}
	mark := filepath.Join(e.Dir, e.key(doc))
	if _, err := os.Lstat(mark); err == nil {
		return nil
	}
	request, err := e.Judge(e.Self)
	if err != nil {
		return err
	}
	if err := doc.CheckExamples(request); err != nil {
		return err
	}
	if os.MkdirAll(e.Dir, 0o700) == nil {
		// Nothing rests on it: without the mark the examples run again.
		_ = os.WriteFile(mark, nil, 0o600)
	}
	return nil
}

// key names a document as judged by this program: another build may judge otherwise.
func (e Examples) key(doc *policy.Document) string {
	build := ""
	if info, err := os.Stat(e.Self); err == nil {
		build = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
	}
	h := sha256.Sum256([]byte(doc.Digest() + "\x00" + build))
	return hex.EncodeToString(h[:16])
}

//go:build unix

package runfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestForeignFilesAreRefused: a file of somebody else, or one that others can write, is read
// neither as the Runfile nor as one that it sources.
func TestForeignFilesAreRefused(t *testing.T) {
	for _, name := range []string{"p/Runfile", "p/lib"} {
		for what, spoil := range map[string]func(at *Place, file string) error{
			"of another user": func(at *Place, file string) error {
				if os.Getuid() == 0 {
					return os.Chown(file, 54321, -1)
				}
				at.UID = 54321 // who asks is the other user
				return nil
			},
			"others may write": func(_ *Place, file string) error { return os.Chmod(file, 0o646) },
			"the group may":    func(_ *Place, file string) error { return os.Chmod(file, 0o664) },
		} {
			at := place(t, map[string]string{"p/Runfile": "source lib\nf() x\n", "p/lib": "g() y\n"})
			if _, err := Load(at); err != nil {
				t.Fatalf("the control: %v", err)
			}
			file := filepath.Join(filepath.Dir(at.Dir), name)
			if err := spoil(&at, file); err != nil {
				t.Fatal(err)
			}
			var e *Error
			if _, err := Load(at); codeOf(err) != "E1206" || !errors.As(err, &e) || os.Getuid() == 0 && e.File != file {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

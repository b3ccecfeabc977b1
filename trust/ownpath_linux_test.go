package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwnPath: an executable is the user's own where no run writes and nobody else can put
// another file, by whatever link it was found.
func TestOwnPath(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, home string) // what makes it somebody else's
		kept  string                          // where no run writes, below the home; "" is all of it
		want  bool
	}{
		{"plain", nil, "", true},
		{"runs write beside it", nil, "elsewhere", false},
		{"runs write where the link lies", nil, ".tool", false},
		{"others write the file", mode(".tool/bin/tool", 0o757), "", false},
		{"others write its directory", mode(".tool/bin", 0o777), "", false},
		{"others write above it", mode(".tool", 0o777), "", false},
		{"others write where the link lies", mode("bin", 0o777), "", false},
		{"sticky, as /tmp", mode("bin", 0o777|os.ModeSticky), "", true},
		{"the private group writes", mode(".tool/bin", 0o775), "", os.Getgid() == os.Getuid()},
		{"a link in a directory of others leads to the directory", func(t *testing.T, home string) {
			must(t, os.Mkdir(home+"/open", 0o755))
			must(t, os.Symlink(home+"/.tool/bin", home+"/open/bin"))
			must(t, os.Chmod(home+"/open", 0o777))
			must(t, os.Remove(home+"/bin/tool"))
			must(t, os.Symlink(home+"/open/bin/tool", home+"/bin/tool"))
		}, "", false},
		{"the file of another user", func(t *testing.T, home string) {
			if os.Getuid() != 0 {
				must(t, os.Chmod(home+"/.tool/bin/tool", 0o757)) // a user gives nothing away: the nearest
				return
			}
			must(t, os.Chown(home+"/.tool/bin/tool", 54321, -1))
		}, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			must(t, os.Chmod(home, 0o755))
			must(t, os.MkdirAll(home+"/.tool/bin", 0o755))
			must(t, os.MkdirAll(home+"/bin", 0o755))
			write(t, home+"/.tool/bin/tool", "#!/bin/sh\n:\n", 0o755)
			must(t, os.Symlink("../.tool/bin/tool", home+"/bin/tool"))
			if row.spoil != nil {
				row.spoil(t, home)
			}
			o := Opener{Home: home, Kept: func(path string) bool {
				return strings.HasPrefix(path, filepath.Join(home, row.kept)+"/")
			}}
			id := open(t, o, "tool", []string{home + "/bin"}, home).Identity()
			if part := id.Chain[0]; part.OwnPath != row.want || part.SystemPath {
				t.Errorf("own %v, system %v", part.OwnPath, part.SystemPath)
			}
			if id := open(t, Opener{Home: home}, "tool", []string{home + "/bin"}, home).Identity(); id.Chain[0].OwnPath {
				t.Error("own without a word about where runs write")
			}
		})
	}
}

func mode(name string, m os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, home string) { must(t, os.Chmod(filepath.Join(home, name), m)) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSystemPathInStickyDirectory: whoever may add entries to a sticky directory of root, as builders may to
// /nix/store, replaces no entry of root there.
func TestSystemPathInStickyDirectory(t *testing.T) {
	root := os.Getuid() == 0 // a user's files are never the system's
	for _, row := range []struct {
		name  string
		spoil func(t *testing.T, store string)
		want  bool
	}{
		{"others add entries", func(t *testing.T, store string) { must(t, os.Chmod(store, os.ModeSticky|0o777)) }, root},
		{"without the sticky bit", func(t *testing.T, store string) { must(t, os.Chmod(store, 0o777)) }, false},
		{"the package is another user's", func(t *testing.T, store string) {
			must(t, os.Chmod(store, os.ModeSticky|0o777))
			if root {
				must(t, os.Chown(store+"/package", 54321, -1))
			}
		}, false},
		{"others write in the package", func(t *testing.T, store string) {
			must(t, os.Chmod(store, os.ModeSticky|0o777))
			must(t, os.Chmod(store+"/package/bin", 0o777))
		}, false},
		{"the directory is another user's", func(t *testing.T, store string) {
			must(t, os.Chmod(store, os.ModeSticky|0o777))
			if root {
				must(t, os.Chown(store, 54321, -1))
			}
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			store, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			must(t, os.MkdirAll(store+"/package/bin", 0o755))
			must(t, os.Chmod(store+"/package", 0o755))
			write(t, store+"/package/bin/tool", "#!/bin/sh\n:\n", 0o755)
			row.spoil(t, store)
			o := Opener{SystemPaths: []string{store}}
			if got := open(t, o, "tool", []string{store + "/package/bin"}, store).Identity().Chain[0].SystemPath; got != row.want {
				t.Errorf("of the system: %v", got)
			}
		})
	}
}

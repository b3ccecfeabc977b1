package trust

import (
	"os"
	"testing"
)

// TestLasting: only a program of the system is known again without opening it, and only as long as it is
// the same file.
func TestLasting(t *testing.T) {
	o := Opener{Workspace: t.TempDir()}
	lasting := func(word string) (Lasting, bool) { return o.Lasting(open(t, o, word, nil, "/")) }
	seen, ok := lasting(realPath(t, "true"))
	if !ok || !seen.Lasts() {
		t.Fatal("true does not last")
	}
	for what, change := range map[string]func(*Lasting){
		"size": func(l *Lasting) { l.st.size++ }, "content": func(l *Lasting) { l.st.mtime++ }, "mode or owner": func(l *Lasting) { l.st.ctime++ },
		"file": func(l *Lasting) { l.st.ino++ }, "file system": func(l *Lasting) { l.st.dev++ }, "path": func(l *Lasting) { l.path += "-" },
	} {
		other := seen
		if change(&other); other.Lasts() {
			t.Errorf("another %s is taken for the same", what)
		}
	}
	must(t, os.Symlink(realPath(t, "true"), o.Workspace+"/link"))
	copyBinary(t, "true", o.Workspace+"/copy")
	write(t, o.Workspace+"/script", "#!/bin/sh\n", 0o755)
	for _, word := range []string{o.Workspace + "/link", o.Workspace + "/copy", o.Workspace + "/script", "/usr/../" + realPath(t, "true")} {
		if _, ok := lasting(word); ok {
			t.Errorf("%s lasts", word)
		}
	}
	if os.Getuid() != 0 {
		return // only root can change the system
	}
	dir, err := os.MkdirTemp("/opt", "lasting")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	for what, change := range map[string]func(path string){
		"written":        func(path string) { write(t, path, "#!/bin/sh\n", 0o755) },
		"replaced":       func(path string) { copyBinary(t, "true", path+"2"); must(t, os.Rename(path+"2", path)) },
		"writable":       func(path string) { must(t, os.Chmod(path, 0o777)) },
		"another user's": func(path string) { must(t, os.Chown(path, 54321, -1)) },
		"a link instead": func(path string) { must(t, os.Remove(path)); must(t, os.Symlink(realPath(t, "false"), path)) },
		"gone":           func(path string) { must(t, os.Remove(path)) },
	} {
		copyBinary(t, "true", dir+"/tool")
		must(t, os.Chmod(dir+"/tool", 0o755))
		f := open(t, o, dir+"/tool", nil, "/")
		seen, ok := o.Lasting(f)
		f.Close() // so that it can be written
		if !ok || !seen.Lasts() {
			t.Fatalf("%s: it did not last before", what)
		}
		if change(dir + "/tool"); seen.Lasts() {
			t.Errorf("%s: taken for the same", what)
		}
		must(t, os.RemoveAll(dir+"/tool"))
	}
}

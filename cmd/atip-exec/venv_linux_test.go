package main_test

import (
	"os"
	"testing"
)

// TestEnvironmentOfToolchain: a virtual environment of the project leads to an interpreter in the home
// directory. The project's own recipes and scripts start it, and no plan reads them for that.
func TestEnvironmentOfToolchain(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	tool := w.home + "/.local/share/manager/python/3.99"
	put(t, tool+"/lib", map[string]string{"tool": "echo it ran as $0\n"})
	put(t, tool+"/bin", map[string]string{"python3.99": "#!/bin/sh\n. " + tool + "/lib/tool\n"})
	private := w.home + "/papers/bin"
	put(t, private, map[string]string{"python3": "#!/bin/sh\necho it ran\n"})
	put(t, w.home+"/papers/lib", map[string]string{"letter": "words of a letter\n"})
	put(t, w.ws, map[string]string{"env/pyvenv.cfg": "home = " + tool + "/bin\n", "Makefile": "it:\n\tenv/bin/python it.py\n", "it.py": "", "run.sh": "env/bin/python it.py\n",
		"other/read.sh": "cat " + w.home + "/papers/lib/letter\n"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(tool+"/bin/python3.99", 0o755))
	must(os.MkdirAll(w.ws+"/env/bin", 0o755))
	must(os.Symlink(tool+"/bin/python3.99", w.ws+"/env/bin/python"))
	for _, args := range [][]string{{"--", "make", "-s", "it"}, {"-c", "sh run.sh"}, {"--", "python3", "-c", "import subprocess; subprocess.run(['env/bin/python', 'it.py'], check=True)"}} {
		if out, err := w.command(args...).CombinedOutput(); err != nil || string(out) != "it ran as env/bin/python\n" {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	// What is called as an interpreter, and lies where no environment leads to, is not shown, nor where a
	// run could write it.
	if out, err := w.command("-c", "sh other/read.sh").CombinedOutput(); err == nil {
		t.Errorf("a letter was read: %s", out)
	}
	must(os.Remove(w.ws + "/env/bin/python"))
	must(os.Symlink(private+"/python3", w.ws+"/env/bin/python"))
	must(os.Chmod(private, 0o777))
	if out, err := w.command("-c", "sh other/read.sh").CombinedOutput(); err == nil {
		t.Errorf("a letter was read by a link into a directory that others write: %s", out)
	}
}

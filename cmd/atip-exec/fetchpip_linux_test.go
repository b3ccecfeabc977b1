package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// newIndex is an index of Python packages (PEP 503) on the machine's loopback: two as a wheel, and
// built, which is there as a source only whose setup.py speaks to the index.
func newIndex(t *testing.T) *registry {
	t.Helper()
	wheel := zipped(t, "", map[string]string{"two/__init__.py": "TWO = 2\n", "two-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: two\nVersion: 1.0.0\n",
		"two-1.0.0.dist-info/WHEEL":  "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"two-1.0.0.dist-info/RECORD": "two/__init__.py,,\ntwo-1.0.0.dist-info/METADATA,,\ntwo-1.0.0.dist-info/WHEEL,,\ntwo-1.0.0.dist-info/RECORD,,\n"})
	setup := "import os, urllib.request\ntry:\n    urllib.request.urlopen(os.environ['REGISTRY'] + '/from-setup', timeout=2)\nexcept Exception:\n    pass\nfrom setuptools import setup\nsetup(name='built', version='1.0.0')\n"
	source := tarred(t, "built-1.0.0/", map[string]string{"setup.py": setup, "PKG-INFO": "Metadata-Version: 2.1\nName: built\nVersion: 1.0.0\n"})
	return serve(t, func(_ *registry, w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/simple/two/":
			_, _ = w.Write([]byte(`<a href="/files/two-1.0.0-py3-none-any.whl">two-1.0.0-py3-none-any.whl</a>`))
		case "/simple/built/":
			_, _ = w.Write([]byte(`<a href="/files/built-1.0.0.tar.gz">built-1.0.0.tar.gz</a>`))
		case "/files/two-1.0.0-py3-none-any.whl":
			_, _ = w.Write(wheel)
		case "/files/built-1.0.0.tar.gz":
			_, _ = w.Write(source)
		default:
			http.NotFound(w, q)
		}
	})
}

// TestFetchApartPip: requirements come into a virtual environment without a question. The machine's pip
// fetches wheels, and neither sees nor starts anything of the project; that of the environment, which
// is code of the workspace, has no host.
func TestFetchApartPip(t *testing.T) {
	t.Parallel()
	needTier3(t)
	if _, err := os.Stat("/usr/bin/pip"); err != nil {
		t.Skip("pip of the system is not installed")
	}
	w, r := newWorldAtHome(t), newIndex(t)
	w.policy(`{"version":1,"network":{"allow":["` + strings.TrimPrefix(r.URL, "http://") + `"]},"env":{"pass":["REGISTRY"]}}`)
	env := []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin:" + bin, "REGISTRY=" + r.URL, "PIP_INDEX_URL=" + r.URL + "/simple", "PIP_DISABLE_PIP_VERSION_CHECK=1"}
	start := startsIn(env)
	clear := func() {
		if _, err := os.Stat(w.ws + "/.venv"); err == nil {
			if out, err := start(exec.Command(w.ws+"/.venv/bin/pip", "uninstall", "-qy", "two")); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}
		for _, name := range []string{"ran", "setup.py", "sitecustomize.py", "evil"} {
			if err := os.RemoveAll(filepath.Join(w.ws, name)); err != nil {
				t.Fatal(err)
			}
		}
		r.paths()
	}
	code := "import os, urllib.request\nopen(" + strconv.Quote(w.ws+"/ran") + ", 'w').close()\nurllib.request.urlopen(os.environ['REGISTRY'] + '/from-project', timeout=2)\n"
	install := ".venv/bin/pip install -r requirements.txt"
	for _, cmd := range []string{"python3 -m venv .venv && " + install, ". .venv/bin/activate && pip install -q -r requirements.txt", "source .venv/bin/activate; python -m pip install --requirement=requirements.txt -c limits.txt"} {
		clear()
		put(t, w.ws, map[string]string{"requirements.txt": "# from https://example.invalid/ -r\ntwo==1.0.0 \\\n   ; python_version > \"3\"  # -e .\n", "limits.txt": "two<2\n", "sitecustomize.py": code})
		out, err := start(w.command("-c", cmd+" && .venv/bin/python -I -c 'import two; print(two.TWO + 40)'"), "PYTHONPATH="+w.ws)
		if asked := r.paths(); err != nil || !strings.Contains(out, "42") || !slices.Contains(asked, "/simple/two/") || slices.Contains(asked, "/from-project") {
			t.Errorf("%s: %v, asked for %v\n%s", cmd, err, asked, out)
		}
	}
	// The planted code reaches the index where nothing confines it.
	if out, err := start(exec.Command("/usr/bin/python3", "-c", "pass"), "PYTHONPATH="+w.ws); !slices.Contains(r.paths(), "/from-project") {
		t.Errorf("control: %v %s", err, out)
	}
	for _, row := range []struct{ name, text, cmd string }{
		{"a directory", "./evil\n", install},
		{"an index in the words", "two\n", install + " -i http://127.0.0.1:1"},
		{"an index in a variable", "two\n", "PIP_INDEX_URL=http://127.0.0.1:1 " + install},
		{"a package in the words", "two\n", install + " two"},
		{"sources in the words", "two\n", install + " --no-binary :all:"},
		{"a file outside", "two\n", ".venv/bin/pip install -r ../requirements.txt"},
		{"a place of its own", "two\n", install + " --target /tmp/x"},
		{"pip of the machine, which would install there", "two\n", "pip install -r requirements.txt"},
		{"requirements that the string writes", "two\n", "echo ./evil >requirements.txt; " + install},
		{"code before it", "two\n", ".venv/bin/python -c 1; " + install},
		{"another environment than the one that it makes", "two\n", "python3 -m venv .other && .third/bin/pip install -r requirements.txt"},
		{"an environment of a Python of the workspace", "two\n", ".venv/bin/python -m venv .other && .other/bin/pip install -r requirements.txt"},
	} {
		put(t, w.ws, map[string]string{"requirements.txt": row.text})
		if out, err := start(w.command("explain", "-o", "text", "-c", row.cmd)); !strings.HasPrefix(out, "CONFIRM") {
			t.Errorf("%s: %v\n%s", row.name, err, out)
		}
	}
	// What has no wheel is not built with a host, nor is a directory with the name of a requirement. Unconfined
	// both are.
	for name, control := range map[string][]string{"built": {"download", "--no-deps", "-d", t.TempDir(), "built"}, "evil": {"download", "--only-binary", ":all:", "-d", t.TempDir(), "./evil"}} {
		clear()
		put(t, w.ws, map[string]string{"requirements.txt": name + "\n", "evil/setup.py": code + "from setuptools import setup\nsetup(name='evil', version='1')\n"})
		out, err := start(w.command("-c", install))
		asked := r.paths()
		if _, there := os.Stat(w.ws + "/ran"); err == nil || there == nil || !slices.Contains(asked, "/simple/"+name+"/") || slices.Contains(asked, "/from-setup") || slices.Contains(asked, "/from-project") {
			t.Errorf("%s: %v, asked for %v\n%s", name, err, asked, out)
		}
		cmd := exec.Command(w.ws+"/.venv/bin/pip", control...)
		cmd.Dir = w.ws
		if out, err := start(cmd); !slices.ContainsFunc(r.paths(), func(p string) bool { return strings.HasPrefix(p, "/from-") }) {
			t.Errorf("control of %s: %v %s", name, err, out)
		}
	}
}

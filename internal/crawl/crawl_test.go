package crawl

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestVersions(t *testing.T) {
	for in, want := range map[string]string{"1:7.88.1-10+deb12u5": "7.88.1", "2.0": "2.0", "1.0-rc1-2": "1.0-rc1", "": ""} {
		if got := upstream(in); got != want {
			t.Errorf("upstream %q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"/x/curl-8.5.0-linux-x86_64.tar.gz": "8.5.0", "tool_v1.2_amd64.zip": "1.2", "tool.tar.xz": "", "tool-linux-amd64": ""} {
		if got := versionIn(in); got != want {
			t.Errorf("version in %q: %q, want %q", in, got, want)
		}
	}
}

func TestWanted(t *testing.T) {
	x := &finder{m: Manifest{Name: "curl"}}
	for name, want := range map[string]bool{"usr/bin/curl": true, "curl": true, "curl-8.5/curl": true, "curl-8.5/bin/curl": true, "curl-8.5/bin/curl.exe": true,
		"usr/share/doc/curl": false, "usr/lib/x/curl": false, "usr/bin/curl-config": false, "usr/share/bash-completion/completions/curl": false} {
		if got := x.wanted("")(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if w := x.wanted("curl-*/bin/curl"); !w("curl-8.5.0/bin/curl") || w("curl-8.5.0/x/bin/curl") || w("bin/curl") {
		t.Error("a pattern matches by components")
	}
}

func TestPlatformOf(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := platformOf(self); got != runtime.GOOS+"-"+runtime.GOARCH {
		t.Errorf("this program is for %q", got)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ body, want string }{
		"script": {"#!/bin/sh\n", "any"}, "text": {"hello, world\n", ""}, "short": {"\x7f", ""}, "cut": {"\x7fELF\x02\x01", ""}, "dos": {"MZ" + strings.Repeat("\x00", 100), ""},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.body), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := platformOf(file); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := platformOf(filepath.Join(dir, "gone")); got != "" {
		t.Errorf("%q", got)
	}
}

// TestOneFileTwice: two manifests may name one file; the first has it.
func TestOneFileTwice(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var list []Manifest
	for _, name := range []string{"one", "two"} {
		file := filepath.Join(dir, name+".yaml")
		text := "name: " + name + "\nsources: {local: {path: tool, version: '1.0'}}\ntemplate: '{\"description\":\"d\",\"effects\":{\"network\":true}}'\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	www := filepath.Join(dir, "www")
	r, err := Run(t.Context(), list, Options{Dir: www, Now: time.Now()})
	if err != nil || len(r.Items) != 2 || r.Items[0].Outcome != Added || r.Items[1].Outcome != Kept || r.Folder.Total != 1 {
		t.Errorf("%+v %v", r, err)
	}
	// The other name for the same file is another program: it is not replaced either.
	r, err = Run(t.Context(), list[1:], Options{Dir: www, Now: time.Now(), Replace: true})
	if err != nil || r.Items[0].Outcome != Failed || !strings.Contains(r.Items[0].Why, "binary.* never changes") {
		t.Errorf("%+v %v", r, err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add("name: x\nsources: {local: {path: x}}\ntemplate: '{\"description\":\"d\"}'\n")
	f.Add("name: &a x\nsources: {local: {paths: [*a, *a]}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "m.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Read(file)
		if err == nil && (!nameable(m.Name) || strings.ContainsAny(m.Name, "/\\\x00")) {
			t.Errorf("%q is taken for the name of a program", m.Name)
		}
	})
}

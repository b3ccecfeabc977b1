package trust

import (
	"path/filepath"
	"runtime"
	"testing"
)

// TestScriptsThatCannotTell: by descriptor start those scripts that do not ask for their own name.
func TestScriptsThatCannotTell(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no start by descriptor")
	}
	dir := t.TempDir()
	for text, want := range map[string]bool{
		"#!/bin/sh\necho hi\n":                                     true,
		"#!/bin/bash -e\nmake test\n":                              true,
		"#!/bin/sh\ncd \"$(dirname \"$0\")\"\n":                    false,
		"#!/bin/bash\ncd ${BASH_SOURCE%/*}\n":                      false,
		"#!/usr/bin/env python3\nprint(1)\n":                       true,
		"#!/usr/bin/env python3\nimport sys\nprint(sys.argv[0])\n": false,
		"#!/usr/bin/env python3\nopen(__file__)\n":                 false,
		"#!/usr/bin/perl\nprint 1;\n":                              true,
		"#!/usr/bin/perl\nuse FindBin;\n":                          false,
		"#!/bin/cat\nhi\n":                                         false,
	} {
		script := write(t, filepath.Join(dir, "script"), text, 0o755)
		f, err := Opener{TmpDirs: []string{dir}}.Open(script, systemPath(), "/")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if f.Inherit() != want {
			t.Errorf("%q: by descriptor %v", text, f.Inherit())
		}
		f.Close()
	}
}

package main

import (
	"bytes"
	"os"
	"testing"
)

// The table in the repository must be what the documents give.
func TestTableIsCurrent(t *testing.T) {
	files, err := build("..")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		got, err := os.ReadFile("../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./shims/builtin", file)
		}
	}
}

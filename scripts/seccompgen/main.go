// Command seccompgen compiles the table of refused system calls of package
// sandbox into the filter programs that the package embeds: for each program and
// architecture the BPF bytes and a readable listing, and per architecture an index
// in Go. With -check it compares instead of writing and fails on any difference.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	table "github.com/atip-dev/atip-exec/sandbox/seccomp"
	seccomp "github.com/seccomp/libseccomp-golang"
)

// The programs are byte-identical only for one version of the library: its
// optimiser decides the order of the tests.
const libraryVersion = "2.5.4"

func main() {
	dir := flag.String("dir", "../../sandbox/seccomp", "directory of package seccomp")
	check := flag.Bool("check", false, "compare with the committed files instead of writing them")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "seccompgen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	major, minor, micro := seccomp.GetLibraryVersion()
	if v := fmt.Sprintf("%d.%d.%d", major, minor, micro); v != libraryVersion {
		return fmt.Errorf("libseccomp is %s, the committed programs need %s", v, libraryVersion)
	}
	// The level decides what the library emits; left alone it asks the kernel of the
	// machine that generates.
	if err := seccomp.SetAPI(6); err != nil {
		return fmt.Errorf("set API level 6: %w", err)
	}
	files, err := generate()
	if err != nil {
		return err
	}
	if check {
		return compare(dir, files)
	}
	return write(dir, files)
}

// generate returns every generated file by its path below package table.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, arch := range architectures {
		var index []indexEntry
		for _, program := range table.Programs() {
			c, err := compile(arch, program)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", arch.name, program.Name, err)
			}
			base := arch.name + "/" + program.Name
			files[base+".bpf"] = c.bytes()
			files[base+".pfc"] = c.listing()
			index = append(index, c.entry())
		}
		sort.Slice(index, func(i, j int) bool { return index[i].name < index[j].name })
		source, err := indexSource(arch, index)
		if err != nil {
			return nil, err
		}
		files["index_linux_"+arch.name+".go"] = source
		numbers, err := callNumbers(arch)
		if err != nil {
			return nil, err
		}
		files[arch.name+"/calls.txt"] = numbers
	}
	return files, nil
}

func write(dir string, files map[string][]byte) error {
	stale, err := extra(dir, files)
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compare(dir string, files map[string][]byte) error {
	var different []string
	for name, data := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, data) {
			different = append(different, name)
		}
	}
	stale, err := extra(dir, files)
	if err != nil {
		return err
	}
	different = append(different, stale...)
	if len(different) > 0 {
		sort.Strings(different)
		return fmt.Errorf("%d files differ from the table, run scripts/seccompgen: %v", len(different), different)
	}
	return nil
}

// extra lists committed program files that the table no longer produces.
func extra(dir string, files map[string][]byte) ([]string, error) {
	var stale []string
	for _, arch := range architectures {
		found, err := filepath.Glob(filepath.Join(dir, arch.name, "*"))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return nil, err
			}
			if _, ok := files[filepath.ToSlash(name)]; !ok {
				stale = append(stale, name)
			}
		}
	}
	return stale, nil
}

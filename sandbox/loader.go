package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// loaderOf returns the programs the kernel opens by itself to run path: interpreters
// of a script, one after the other, and the ELF loader of the last one.
func loaderOf(path string) []string {
	var out []string
	// The kernel follows at most four interpreters (BINPRM depth in fs/exec.c).
	for range 5 {
		next, err := interpreter(path)
		if err != nil || next == "" {
			return out
		}
		out = append(out, next)
		path = next
	}
	return out
}

// interpreter reads the #! line or the PT_INTERP segment of an executable; "" means
// that it needs none.
func interpreter(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("#!")) {
		line, _, _ := strings.Cut(string(head[2:]), "\n")
		name, _, _ := strings.Cut(strings.TrimLeft(line, " \t"), " ")
		name, _, _ = strings.Cut(name, "\t")
		return strings.TrimRight(name, "\r"), nil
	}
	return elfInterpreter(f, head)
}

// elfInterpreter finds PT_INTERP in a 64-bit little-endian file, the only kind the
// supported architectures start: 32-bit programs die at their first system call.
func elfInterpreter(f io.ReaderAt, head []byte) (string, error) {
	if len(head) < 64 || !bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")) {
		return "", nil
	}
	le := binary.LittleEndian
	at, size, count := int64(le.Uint64(head[32:])), int(le.Uint16(head[54:])), int(le.Uint16(head[56:]))
	if size < 56 || count == 0 || size*count > 1<<16 || at < 0 {
		return "", nil
	}
	table := make([]byte, size*count)
	if _, err := f.ReadAt(table, at); err != nil {
		return "", err
	}
	for i := range count {
		entry := table[i*size:]
		if le.Uint32(entry) != 3 { // PT_INTERP
			continue
		}
		offset, length := int64(le.Uint64(entry[8:])), le.Uint64(entry[32:])
		if length == 0 || length > 4096 || offset < 0 {
			return "", nil
		}
		name := make([]byte, length)
		if _, err := f.ReadAt(name, offset); err != nil {
			return "", err
		}
		return string(bytes.TrimRight(name, "\x00")), nil
	}
	return "", nil
}

// EnvTarget is the program that env(1) looks up to run a script whose first line names it, ""
// for any other file.
func EnvTarget(path string) string {
	f, err := regular.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) < 2 || !strings.HasSuffix(words[0], "/env") {
		return ""
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

// Script reports a file whose first line names its interpreter.
func Script(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "#!"
}

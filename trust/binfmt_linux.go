package trust

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
)

const binfmtDir = "/proc/sys/fs/binfmt_misc"

// binfmtRuns reports whether an enabled binfmt_misc entry takes a file that
// begins with head (Documentation/admin-guide/binfmt-misc.rst).
func binfmtRuns(head []byte, path string) bool {
	if len(head) == 0 {
		return false
	}
	entries, err := os.ReadDir(binfmtDir)
	if err != nil {
		return false
	}
	if status, err := os.ReadFile(binfmtDir + "/status"); err != nil || !bytes.HasPrefix(status, []byte("enabled")) {
		return false
	}
	for _, e := range entries {
		if e.Name() == "status" || e.Name() == "register" {
			continue
		}
		text, err := os.ReadFile(binfmtDir + "/" + e.Name())
		if err == nil && binfmtMatches(string(text), head, path) {
			return true
		}
	}
	return false
}

// binfmtMatches reads one entry as the kernel prints it.
func binfmtMatches(entry string, head []byte, path string) bool {
	lines := strings.Split(entry, "\n")
	if lines[0] != "enabled" {
		return false
	}
	offset := 0
	var magic, mask []byte
	for _, line := range lines[1:] {
		key, value, _ := strings.Cut(line, " ")
		var err error
		switch key {
		case "offset":
			offset, err = strconv.Atoi(value)
		case "magic":
			magic, err = hex.DecodeString(value)
		case "mask":
			mask, err = hex.DecodeString(value)
		case "extension":
			return value != "" && strings.HasSuffix(path, value)
		}
		if err != nil {
			return false
		}
	}
	if len(magic) == 0 || offset < 0 || offset+len(magic) > len(head) {
		return false
	}
	for i, m := range magic {
		b := head[offset+i]
		if i < len(mask) {
			b &= mask[i]
		}
		if b != m {
			return false
		}
	}
	return true
}

package place

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// index is what a git index names, sorted bytewise as git keeps it. The names
// are parts of the file's bytes: a large repository has 100,000 of them, and they
// are read for every command.
type index struct {
	names [][]byte
}

// maxIndex bounds the file: above it nothing is known to be tracked.
const maxIndex = 16 << 20

var errIndex = errors.New("not a git index this program reads")

// readIndex reads versions 2 to 4 of gitformat-index(5); extensions and the
// trailing checksum are passed over.
func readIndex(p string) (*index, error) {
	data, err := regular.Read(p, maxIndex)
	if err != nil {
		return nil, err
	}
	return parseIndex(data)
}

func parseIndex(data []byte) (*index, error) {
	const (
		headerLen = 12
		fixedLen  = 62 // ten 32-bit stat fields, a SHA-1, the flags
		flagsAt   = 60
		extended  = 0x4000
	)
	if len(data) < headerLen || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	version := binary.BigEndian.Uint32(data[4:])
	count := binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || uint64(count)*(fixedLen+1) > uint64(len(data)) {
		return nil, errIndex
	}
	idx := &index{names: make([][]byte, 0, count)}
	var prev []byte
	for rest := data[headerLen:]; count > 0; count-- {
		if len(rest) < fixedLen {
			return nil, errIndex
		}
		start := fixedLen
		if version >= 3 && binary.BigEndian.Uint16(rest[flagsAt:])&extended != 0 {
			start += 2
		}
		if len(rest) < start {
			return nil, errIndex
		}
		at, cut := start, 0
		if version == 4 {
			n, used := offsetVarint(rest[at:])
			if used == 0 || n > len(prev) {
				return nil, errIndex
			}
			at, cut = at+used, n
		}
		length := bytes.IndexByte(rest[at:], 0)
		if length < 0 {
			return nil, errIndex
		}
		end := at + length
		name := rest[at:end:end]
		if version == 4 {
			kept := prev[: len(prev)-cut : len(prev)-cut]
			name = append(kept, name...)
			end++
		} else {
			end = (end + 8) &^ 7 // the entry is padded with one to eight NULs
		}
		if end > len(rest) {
			return nil, errIndex
		}
		// Stages of a conflict repeat a name.
		if bytes.Compare(prev, name) > 0 {
			return nil, errIndex
		}
		idx.names = append(idx.names, name)
		prev, rest = name, rest[end:]
	}
	return idx, nil
}

// offsetVarint reads the integer of version 4, the one pack files use for offsets.
func offsetVarint(b []byte) (n, used int) {
	for i, c := range b {
		if i == 5 {
			return 0, 0
		}
		n = n<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}

// has reports whether name, or anything below it, is tracked.
func (x *index) has(name string) bool {
	if i := x.search(name); i < len(x.names) && string(x.names[i]) == name {
		return true
	}
	dir := name + "/"
	i := x.search(dir)
	return i < len(x.names) && bytes.HasPrefix(x.names[i], []byte(dir))
}

func (x *index) search(name string) int {
	i, _ := slices.BinarySearchFunc(x.names, name, func(have []byte, want string) int { return strings.Compare(string(have), want) })
	return i
}

package place

import (
	"encoding/binary"
	"errors"
	"sort"
	"strings"
	"time"
)

// index is what a git index names, sorted bytewise as git keeps it.
type index struct {
	names []string
	size  int64 // of the file, with its time
	time  time.Time
}

// maxIndex bounds the file: above it nothing is known to be tracked.
const maxIndex = 16 << 20

var errIndex = errors.New("not a git index this program reads")

// readIndex reads versions 2 to 4 of gitformat-index(5); extensions and the
// trailing checksum are passed over.
func readIndex(p string) (*index, error) {
	data, err := readRegular(p, maxIndex)
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
	idx := &index{names: make([]string, 0, count)}
	prev := ""
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
		end := at
		for end < len(rest) && rest[end] != 0 {
			end++
		}
		if end == len(rest) {
			return nil, errIndex
		}
		name := string(rest[at:end])
		if version == 4 {
			name = prev[:len(prev)-cut] + name
			end++
		} else {
			end = (end + 8) &^ 7 // the entry is padded with one to eight NULs
		}
		if end > len(rest) {
			return nil, errIndex
		}
		idx.names = append(idx.names, name)
		prev, rest = name, rest[end:]
	}
	if !sort.StringsAreSorted(idx.names) {
		return nil, errIndex
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
	if i := sort.SearchStrings(x.names, name); i < len(x.names) && x.names[i] == name {
		return true
	}
	dir := name + "/"
	i := sort.SearchStrings(x.names, dir)
	return i < len(x.names) && strings.HasPrefix(x.names[i], dir)
}

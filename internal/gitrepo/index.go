package gitrepo

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// gitlink is the mode of an entry that is a commit of another repository.
const gitlink = 0o160000

// errIndex says that an index cannot be read as git's index-format.txt describes it.
var errIndex = errors.New("not an index that is understood")

// Gitlinks are the paths of the submodules that the index holds, relative to the work tree.
// A repository without an index has none.
func (r Repository) Gitlinks() ([]string, error) {
	path := filepath.Join(r.Dir, "index")
	f, err := open(path)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	links, err := readIndex(bufio.NewReaderSize(io.LimitReader(f, maxIndex), 1<<16))
	if err != nil {
		return links, fmt.Errorf("%s: %w", path, err)
	}
	return links, nil
}

// readIndex reads versions 2 to 4 of the format.
func readIndex(r *bufio.Reader) ([]string, error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	var out []string
	var name []byte
	var fixed [62]byte
	for range count {
		if _, err := io.ReadFull(r, fixed[:]); err != nil {
			return out, errIndex
		}
		size := len(fixed)
		flags := binary.BigEndian.Uint16(fixed[60:])
		if flags&0x4000 != 0 {
			if version == 2 {
				return out, errIndex
			}
			if _, err := r.Discard(2); err != nil {
				return out, errIndex
			}
			size += 2
		}
		if version == 4 {
			cut, err := varint(r)
			if err != nil || cut > uint64(len(name)) {
				return out, errIndex
			}
			name = name[:len(name)-int(cut)]
		} else {
			name = name[:0]
		}
		part, err := r.ReadSlice(0)
		if err != nil {
			return out, errIndex // also a path longer than the buffer
		}
		name = append(name, bytes.TrimSuffix(part, []byte{0})...)
		if version < 4 {
			// Entries end in one to eight NUL bytes, at a multiple of eight.
			if _, err := r.Discard(7 - (size+len(name))%8); err != nil {
				return out, errIndex
			}
		}
		if binary.BigEndian.Uint32(fixed[24:]) == gitlink {
			out = append(out, string(name))
		}
	}
	return out, nil
}

// varint is the number before a path of version 4 (varint.c, decode_varint).
func varint(r *bufio.Reader) (uint64, error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	v := uint64(c & 0x7f)
	for c&0x80 != 0 {
		if v > 1<<32 {
			return 0, errIndex
		}
		if c, err = r.ReadByte(); err != nil {
			return 0, err
		}
		v = (v+1)<<7 | uint64(c&0x7f)
	}
	return v, nil
}

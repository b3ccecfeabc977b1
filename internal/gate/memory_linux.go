package gate

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	page   = 4096 // the smallest there is: no read crosses into a page that may be missing
	window = 4 * page
	head   = 128 // what most strings fit into
)

// memory reads another process, a window at a time.
type memory struct {
	pid   int
	from  uint64
	have  []byte
	buf   [window]byte
	heads [window]byte
}

// forget makes it the memory of another process, or of the same one at another time.
func (m *memory) forget(pid int) { m.pid, m.from, m.have = pid, 0, nil }

// at returns what can be read from address on, nil if nothing can.
func (m *memory) at(address uint64) []byte {
	if address >= m.from && address < m.from+uint64(len(m.have)) {
		return m.have[address-m.from:]
	}
	m.from, m.have = address, nil
	if address == 0 {
		return nil
	}
	first := page - int(address%page)
	remote := make([]unix.RemoteIovec, 0, window/page)
	remote = append(remote, unix.RemoteIovec{Base: uintptr(address), Len: first})
	size := first
	for len(remote) < cap(remote) {
		next := address + uint64(size)
		if next < address {
			break
		}
		remote = append(remote, unix.RemoteIovec{Base: uintptr(next), Len: page})
		size += page
	}
	m.have = m.read(remote, &m.buf, size)
	return m.have
}

// read returns what can be read of several places, which are size bytes in all.
func (m *memory) read(remote []unix.RemoteIovec, into *[window]byte, size int) []byte {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(size)
	n, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(m.pid), uintptr(unsafe.Pointer(&local[0])), 1, uintptr(unsafe.Pointer(&remote[0])), uintptr(len(remote)), 0)
	if errno != 0 {
		return nil
	}
	return into[:n]
}

// texts calls got with each string in turn, until it returns false. Their beginnings are read together:
// strings that were made one by one lie far from each other.
func (m *memory) texts(pointers []uint64, got func(string) bool) unix.Errno {
	var remote [window / head]unix.RemoteIovec
	for len(pointers) > 0 {
		some := pointers[:min(len(pointers), len(remote))]
		pointers = pointers[len(some):]
		size := 0
		for i, p := range some {
			remote[i] = unix.RemoteIovec{Base: uintptr(p), Len: min(head, page-int(p%page))}
			size += remote[i].Len
		}
		have := m.read(remote[:len(some)], &m.heads, size)
		for i, p := range some {
			part := have[:min(len(have), remote[i].Len)]
			have = have[len(part):]
			var s string
			if end := bytes.IndexByte(part, 0); end >= 0 {
				s = string(part[:end])
			} else {
				var errno unix.Errno
				if s, errno = m.text(p); errno != 0 {
					return errno
				}
			}
			if !got(s) {
				return unix.E2BIG
			}
		}
	}
	return 0
}

// text reads a string that ends with NUL.
func (m *memory) text(address uint64) (string, unix.Errno) {
	var out []byte
	for {
		part := m.at(address)
		if len(part) == 0 {
			return "", unix.EFAULT
		}
		if i := bytes.IndexByte(part, 0); i >= 0 {
			if len(out)+i >= maxWord {
				return "", unix.E2BIG
			}
			return string(append(out, part[:i]...)), 0
		}
		if out = append(out, part...); len(out) >= maxWord {
			return "", unix.E2BIG
		}
		address += uint64(len(part))
	}
}

// list reads strings by a list of their addresses that ends with 0. The kernel takes no
// list for an empty one. budget is what all of it may still hold.
func (m *memory) list(address uint64, budget *int) ([]string, unix.Errno) {
	if address == 0 {
		return nil, 0
	}
	var pointers []uint64
	for next := address; ; next += 8 {
		word, ok := m.word(next)
		if !ok {
			return nil, unix.EFAULT
		}
		if word == 0 {
			break
		}
		if *budget -= 8; *budget < 0 {
			return nil, unix.E2BIG
		}
		pointers = append(pointers, word)
	}
	out := make([]string, 0, len(pointers))
	errno := m.texts(pointers, func(s string) bool {
		out = append(out, s)
		*budget -= len(s) + 1
		return *budget >= 0
	})
	if errno != 0 {
		return nil, errno
	}
	return out, 0
}

// word reads one pointer, which may lie across two pages.
func (m *memory) word(address uint64) (uint64, bool) {
	var b [8]byte
	for have := 0; have < len(b); {
		part := m.at(address + uint64(have))
		if len(part) == 0 {
			return 0, false
		}
		have += copy(b[have:], part)
	}
	return binary.NativeEndian.Uint64(b[:]), true
}

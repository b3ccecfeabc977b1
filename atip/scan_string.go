package atip

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// str reads the string at i and returns the index after its closing quote.
func (s *scanner) str(start int) (end int, flags uint8, err error) {
	b, i := s.b, start+1
	for {
		// Eight plain ASCII bytes at a time: a byte below 0x20, a quote, a
		// backslash, 0x7f or a byte from 0x80 ends the stride. Upper case must be
		// seen too, for keys.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			const lo, hi = 0x0101010101010101, 0x8080808080808080
			q := w ^ (lo * '"')
			k := w ^ (lo * '\\')
			m := (w - lo*0x20) | w | (q - lo) | (k - lo) | (w + lo)
			if m &= hi; m != 0 {
				n := bits.TrailingZeros64(m) >> 3
				if hasUpper(w & (1<<(n*8) - 1)) {
					flags |= flagMixed
				}
				i += n
				break
			}
			if hasUpper(w) {
				flags |= flagMixed
			}
			i += 8
		}
		if i >= len(b) {
			return i, flags, s.bad(start, "string is not closed")
		}
		switch c := b[i]; {
		case c == '"':
			i++
			if i-start > maxString {
				return i, flags, s.fail(errcode.MetadataLimit, start, "string of more than 64 KiB")
			}
			return i, flags, nil
		case c == '\\':
			flags |= flagEscaped
			n, control, msg := escape(b[i:])
			if msg != "" {
				return i, flags, s.bad(i, msg)
			}
			if control {
				flags |= flagControl
			}
			i += n
		case c < 0x20:
			return i, flags, s.bad(i, "control character in a string")
		case c < 0x80:
			if c == 0x7f {
				flags |= flagControl
			}
			if c >= 'A' && c <= 'Z' {
				flags |= flagMixed
			}
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return i, flags, s.bad(i, "invalid UTF-8")
			}
			if r < 0xa0 {
				flags |= flagControl
			}
			flags |= flagMixed
			i += n
		}
	}
}

// hasUpper may report a letter that is not upper case; it never misses one. All
// bytes of w are below 0x80.
func hasUpper(w uint64) bool {
	const lo, hi = 0x0101010101010101, 0x8080808080808080
	return (w+lo*(0x80-'A'))&^(w+lo*(0x80-'Z'-1))&hi != 0
}

// escape checks the escape sequence at the start of b.
func escape(b []byte) (n int, control bool, msg string) {
	if len(b) < 2 {
		return 0, false, "string is not closed"
	}
	switch b[1] {
	case '"', '\\', '/':
		return 2, false, ""
	case 'b', 'f', 'n', 'r', 't':
		return 2, true, ""
	case 'u':
		r, ok := hex4(b[2:])
		switch {
		case !ok:
			return 0, false, "invalid \\u escape"
		case r == 0:
			return 0, false, "U+0000 in a string"
		case r >= 0xdc00 && r < 0xe000:
			return 0, false, "lone surrogate in a string"
		case r >= 0xd800 && r < 0xdc00:
			if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
				return 0, false, "lone surrogate in a string"
			}
			if low, ok := hex4(b[8:]); !ok || low < 0xdc00 || low > 0xdfff {
				return 0, false, "lone surrogate in a string"
			}
			return 12, false, ""
		}
		return 6, r < 0x20 || r >= 0x7f && r < 0xa0, ""
	}
	return 0, false, "invalid escape in a string"
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

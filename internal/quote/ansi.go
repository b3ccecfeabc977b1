package quote

import "strings"

// ANSI decodes the text of $'…' as bash does: a NUL byte ends it.
func ANSI(s string) string {
	out, _ := Decode(s)
	return out
}

// Decode is ansi; whole is false if a NUL byte cut the text off.
func Decode(s string) (out string, whole bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'e', 'E':
			b.WriteByte(27)
		case 'f':
			b.WriteByte(12)
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte(11)
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'c':
			if i+1 < len(s) {
				i++
				b.WriteByte(s[i] & 0x1f)
			}
		case 'x', 'u', 'U':
			most := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			n, used := number16(s[i+1:], most)
			if used == 0 {
				b.WriteByte('\\')
				b.WriteByte(c)
				continue
			}
			i += used
			switch {
			case n == 0:
				// bash ends the string here.
				return b.String(), false
			case c == 'x':
				b.WriteByte(byte(n))
			default:
				b.WriteRune(rune(n))
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, used := 0, 0
			for used < 3 && i+used < len(s) && s[i+used] >= '0' && s[i+used] <= '7' {
				n = n*8 + int(s[i+used]-'0')
				used++
			}
			i += used - 1
			if byte(n) == 0 {
				return b.String(), false
			}
			b.WriteByte(byte(n))
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

func number16(s string, most int) (n uint32, used int) {
	for used < most && used < len(s) {
		d := strings.IndexByte("0123456789abcdef", s[used]|0x20)
		if d < 0 || s[used] < '0' {
			break
		}
		n = n<<4 | uint32(d)
		used++
	}
	return n, used
}

package audit

import "time"

// idDigits is Crockford's base 32: no I, L, O, U, and sorted like its values.
const idDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a new identifier in the form of a ULID: 48 bits of milliseconds
// and 80 random bits in 26 characters, so that ids sort by time.
func NewID() string { return newID(time.Now()) }

func newID(t time.Time) string {
	var raw [16]byte
	ms := uint64(t.UnixMilli())
	for i := range 6 {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	random(raw[6:])
	// 128 bits are 25.6 digits of 5 bits: the first digit holds the top 3.
	var out [26]byte
	var bits uint
	var acc uint32
	pos := len(out)
	for i := len(raw) - 1; i >= 0; i-- {
		acc |= uint32(raw[i]) << bits
		for bits += 8; bits >= 5; bits -= 5 {
			pos--
			out[pos] = idDigits[acc&31]
			acc >>= 5
		}
	}
	out[0] = idDigits[acc&31]
	return string(out[:])
}

// IDTime returns the time in an id made by NewID.
func IDTime(id string) (time.Time, bool) {
	if len(id) != 26 {
		return time.Time{}, false
	}
	var ms uint64
	for i := range 10 {
		d := digit(id[i])
		if d < 0 {
			return time.Time{}, false
		}
		ms = ms<<5 | uint64(d)
	}
	return time.UnixMilli(int64(ms)), true
}

func digit(c byte) int {
	for i := range len(idDigits) {
		if idDigits[i] == c {
			return i
		}
	}
	return -1
}

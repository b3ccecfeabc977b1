package filter

// byteSet is a set of bytes as a bitmap.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *byteSet) without(chars string) byteSet {
	out := *s
	for i := range len(chars) {
		out[chars[i]>>6] &^= 1 << (chars[i] & 63)
	}
	return out
}

// The alphabets that rules may name. They are bitmaps written out because package
// initialisation is paid by every command.
const (
	bitsDigit  = 0x03ff000000000000 // in word 0
	bitsUpper  = 0x0000000007fffffe // in word 1
	bitsLower  = 0x07fffffe00000000
	bitsScore  = 0x0000000080000000 // _
	bitsDash   = 0x0000200000000000 // - in word 0
	bitsDot    = 0x0000400000000000
	bitsPlus   = 0x0000080000000000
	bitsSlash  = 0x0000800000000000
	bitsEqual  = 0x2000000000000000
	bitsLetter = bitsUpper | bitsLower
)

type setID uint8

const (
	setNone setID = iota
	setDigit
	setHex    // digits and a-f
	setHEX    // digits and A-F
	setXDigit // digits, a-f, A-F
	setLower
	setUpper
	setLoAlnum
	setUpAlnum
	setAlnum
	setBase32
	setBase58
	setBase64
	setBase64Pad
	setWord
	setToken
	setTokenDot
	setTokenTilde
	setPath
	setAny64 // both base64 alphabets and the padding
	setTokenEq
	setTokenDotEq
	setAny64List // joined by commas
	setCount
)

var sets = [setCount]byteSet{
	setDigit:      {bitsDigit},
	setHex:        {bitsDigit, 0x7e << 32},
	setHEX:        {bitsDigit, 0x7e},
	setXDigit:     {bitsDigit, 0x7e<<32 | 0x7e},
	setLower:      {0, bitsLower},
	setUpper:      {0, bitsUpper},
	setLoAlnum:    {bitsDigit, bitsLower},
	setUpAlnum:    {bitsDigit, bitsUpper},
	setAlnum:      {bitsDigit, bitsLetter},
	setBase32:     {0x00fc000000000000, bitsUpper},
	setBase58:     {bitsDigit &^ (1 << '0'), bitsLetter &^ (1<<('O'-64) | 1<<('I'-64) | 1<<('l'-64))},
	setBase64:     {bitsDigit | bitsPlus | bitsSlash, bitsLetter},
	setBase64Pad:  {bitsDigit | bitsPlus | bitsSlash | bitsEqual, bitsLetter},
	setWord:       {bitsDigit, bitsLetter | bitsScore},
	setToken:      {bitsDigit | bitsDash, bitsLetter | bitsScore},
	setTokenDot:   {bitsDigit | bitsDash | bitsDot, bitsLetter | bitsScore},
	setTokenTilde: {bitsDigit | bitsDash | bitsDot, bitsLetter | bitsScore | 1<<('~'-64)},
	setPath:       {bitsDigit | bitsDash | bitsDot | bitsSlash, bitsLetter | bitsScore},
	setAny64:      {bitsDigit | bitsPlus | bitsSlash | bitsEqual | bitsDash, bitsLetter | bitsScore},
	setTokenEq:    {bitsDigit | bitsDash | bitsEqual, bitsLetter | bitsScore},
	setAny64List:  {bitsDigit | bitsPlus | bitsSlash | bitsEqual | bitsDash | 1<<',', bitsLetter | bitsScore},
	setTokenDotEq: {bitsDigit | bitsDash | bitsDot | bitsEqual, bitsLetter | bitsScore},
}

// setByName is the inverse of the names in rules/*.jsonc.
func setByName(name string) (setID, bool) {
	switch name {
	case "digit":
		return setDigit, true
	case "hex":
		return setHex, true
	case "HEX":
		return setHEX, true
	case "xdigit":
		return setXDigit, true
	case "lower":
		return setLower, true
	case "upper":
		return setUpper, true
	case "loalnum":
		return setLoAlnum, true
	case "upalnum":
		return setUpAlnum, true
	case "alnum":
		return setAlnum, true
	case "base32":
		return setBase32, true
	case "base58":
		return setBase58, true
	case "base64":
		return setBase64, true
	case "base64pad":
		return setBase64Pad, true
	case "word":
		return setWord, true
	case "token", "base64url":
		return setToken, true
	case "tokendot":
		return setTokenDot, true
	case "tokentilde":
		return setTokenTilde, true
	case "path":
		return setPath, true
	case "any64":
		return setAny64, true
	case "any64list":
		return setAny64List, true
	case "tokeneq":
		return setTokenEq, true
	case "tokendoteq":
		return setTokenDotEq, true
	}
	return setNone, false
}

func isAlnum(c byte) bool { return sets[setAlnum].has(c) }
func isDigit(c byte) bool { return c-'0' < 10 }
func isUpper(c byte) bool { return c-'A' < 26 }
func isLower(c byte) bool { return c-'a' < 26 }
func isAlpha(c byte) bool { return c|0x20-'a' < 26 }
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func fold(c byte) byte    { return c | byte((uint32(c-'A')-26)>>31)<<5 }

// hasFold reports whether text starts with want, ignoring ASCII case; want is
// lower case.
func hasFold(text []byte, want string) bool {
	if len(text) < len(want) {
		return false
	}
	for i := range len(want) {
		if fold(text[i]) != want[i] {
			return false
		}
	}
	return true
}

func hasFoldSuffix(text []byte, want string) bool {
	return len(text) >= len(want) && hasFold(text[len(text)-len(want):], want)
}

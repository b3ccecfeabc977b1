package filter

import (
	"bytes"
	"math"
	"strings"
	"sync"
)

// wordy reports whether a value is made of listed words, joined or camelCased,
// with at most two digits at the end.
func wordy(val []byte) bool {
	end := len(val)
	for end > 0 && len(val)-end < 2 && isDigit(val[end-1]) {
		end--
	}
	for _, c := range val[:end] { // first what costs less than the list
		if !isAlpha(c) && strings.IndexByte("-_. /:,'", c) < 0 {
			return false
		}
	}
	words, listed := 0, false
	for i := 0; i < end; {
		if !isAlpha(val[i]) {
			i++
			continue
		}
		j := i + 1
		for j < end && isAlpha(val[j]) && !(isUpper(val[j]) && isLower(val[j-1])) {
			j++
		}
		if j-i > 2 && !inWordList(val[i:j]) {
			return false
		}
		listed = listed || j-i > 2
		words++
		i = j
	}
	return words > 0 && (listed || sameCase(val)) // VhWtZlTs is no text of words
}

// onlyWords reports prose: letters and spaces with ordinary punctuation.
func onlyWords(val []byte) bool {
	for _, w := range bytes.Fields(val) {
		for i, c := range w {
			if !isAlpha(c) && !(i == len(w)-1 && strings.IndexByte(".,:;!?)'", c) >= 0) && c != '\'' && c != '-' && c != '(' {
				return false
			}
		}
		if len(w) >= 8 && unlikely(w) {
			return false
		}
	}
	return true
}

// inWordList looks a word up, ignoring case.
func inWordList(w []byte) bool {
	if len(w) < 2 {
		return false
	}
	at := pairOf(w[0], w[1])
	if at < 0 {
		return false
	}
	starts := wordStarts()
	lo, hi := int(starts[at]), int(starts[at+1])
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		from := strings.LastIndexByte(wordList[:m], '\n') + 1
		to := from + strings.IndexByte(wordList[from:], '\n')
		switch c := compareFold(w, wordList[from:to]); {
		case c == 0:
			return true
		case c < 0:
			hi = from
		default:
			lo = to + 1
		}
	}
	return false
}

// wordStarts has where the words begin that begin with a pair of letters.
var wordStarts = sync.OnceValue(func() *[26*26 + 1]uint16 {
	out := new([26*26 + 1]uint16)
	pair := 0
	for at := 0; at < len(wordList); at += strings.IndexByte(wordList[at:], '\n') + 1 {
		for k := pairOf(wordList[at], wordList[at+1]); pair <= k; pair++ {
			out[pair] = uint16(at)
		}
	}
	for ; pair < len(out); pair++ {
		out[pair] = uint16(len(wordList))
	}
	return out
})

// pairOf numbers the pairs of letters, -1 is none.
func pairOf(a, b byte) int {
	a, b = (a|0x20)-'a', (b|0x20)-'a'
	if a >= 26 || b >= 26 {
		return -1
	}
	return int(a)*26 + int(b)
}

// entropy is the Shannon entropy of the bytes, in bits per byte.
func entropy(val []byte) float64 {
	var count [256]int32
	for _, c := range val {
		count[c]++
	}
	h, n := 0.0, float64(len(val))
	of, term := int32(0), 0.0
	for _, c := range val {
		k := count[c]
		if k == 0 {
			continue // counted
		}
		count[c] = 0
		if k != of {
			p := float64(k) / n
			of, term = k, p*math.Log2(p)
		}
		h -= term
	}
	return h
}

// bigramClass maps a byte to a row of the bigram table.
func bigramClass(c byte) int {
	alpha, digit := below(c|0x20-'a', 26), below(c-'0', 10) // without a branch, as tally
	return alpha*(int(c|0x20-'a')+1) + digit*27
}

// unlikely reports whether a text reads like no word or identifier: the mean cost
// of its letter pairs, in eighths of a bit, is above what all but a hundredth of
// the listed words stay below.
func unlikely(val []byte) bool { return unlikelier(val, 10) }

// unlikelier is unlikely by so many tenths of that cost.
func unlikelier(val []byte, tenths int) bool {
	if len(val) < 4 {
		return false
	}
	cost, n := 0, 0
	prev := 0
	for i, c := range val {
		cur := bigramClass(c)
		if i > 0 && cur == 0 && prev == 0 {
			continue
		}
		cost += int(bigramCost[prev*28+cur])
		if i > 0 && isUpper(c) && isLower(val[i-1]) {
			cost += 8 // seldom more than once or twice in a name
		}
		n++
		prev = cur
	}
	return n > 0 && cost*10 > unlikelyCost*n*tenths
}

package filter

import (
	"bytes"
	"math"
	"strings"
)

// wordy reports whether a value is made of listed words, joined or camelCased,
// with at most two digits at the end.
func wordy(val []byte) bool {
	end := len(val)
	for end > 0 && len(val)-end < 2 && isDigit(val[end-1]) {
		end--
	}
	words := 0
	for i := 0; i < end; {
		if !isAlpha(val[i]) {
			switch val[i] {
			case '-', '_', '.', ' ', '/', ':', ',', '\'':
				i++
				continue
			}
			return false
		}
		j := i + 1
		for j < end && isAlpha(val[j]) && !(isUpper(val[j]) && isLower(val[j-1])) {
			j++
		}
		if j-i > 2 && !inWordList(val[i:j]) {
			return false
		}
		words++
		i = j
	}
	return words > 0
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
	lo, hi := 0, len(wordList)
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

func compareFold(w []byte, s string) int {
	for i := range min(len(w), len(s)) {
		if c := fold(w[i]); c != s[i] {
			return int(c) - int(s[i])
		}
	}
	return len(w) - len(s)
}

// entropy is the Shannon entropy of the bytes, in bits per byte.
func entropy(val []byte) float64 {
	var count [256]int
	for _, c := range val {
		count[c]++
	}
	h, n := 0.0, float64(len(val))
	for _, c := range count {
		if c > 0 {
			p := float64(c) / n
			h -= p * math.Log2(p)
		}
	}
	return h
}

// bigramClass maps a byte to a row of the bigram table.
func bigramClass(c byte) int {
	switch {
	case isAlpha(c):
		return int(c|0x20-'a') + 1
	case isDigit(c):
		return 27
	}
	return 0
}

// unlikely reports whether a text reads like no word or identifier: the mean cost
// of its letter pairs, in eighths of a bit, is above what all but a hundredth of
// the listed words stay below.
func unlikely(val []byte) bool {
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
	return n > 0 && cost > unlikelyCost*n
}

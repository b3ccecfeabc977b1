package atip

import "encoding/binary"

// word is the i-th name or alias of a group.
func (x *index) word(r *nodeRecord, i uint32) (text string, child uint32, alias, ok bool) {
	p := x.data.bytes(x.wordsAt+(r.firstWord+i)*wordBytes, wordBytes)
	if p == nil {
		return "", 0, false, false
	}
	text, ok = x.str(binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]))
	child = binary.LittleEndian.Uint32(p[8:])
	return text, child, p[12] != 0, ok && child >= r.firstChild && child-r.firstChild < r.children
}

// lookup finds a child by name, alias or, if prefixes count, unique prefix. damaged
// means that the index cannot answer.
func (x *index) lookup(r *nodeRecord, word string, prefixes bool) (child uint32, found, abbreviated, damaged bool) {
	at := searchSorted(r.words, func(i uint32) bool {
		text, _, _, ok := x.word(r, i)
		damaged = damaged || !ok
		return text < word
	})
	if damaged || at == r.words {
		return 0, false, false, damaged
	}
	text, child, _, ok := x.word(r, at)
	if !ok || text == word {
		return child, ok, false, !ok
	}
	if !prefixes {
		return 0, false, false, false
	}
	candidates := 0
	for i := at; i < r.words && candidates < 2; i++ {
		text, c, alias, ok := x.word(r, i)
		if !ok {
			return 0, false, false, true
		}
		if len(text) < len(word) || text[:len(word)] != word {
			break
		}
		if !alias {
			child = c
			candidates++
		}
	}
	return child, candidates == 1, true, false
}

// flag is what the descendants of a group declare for a flag; nil if nothing.
func (x *index) flag(r *nodeRecord, flag string) (o *option, damaged bool) {
	entry := func(i uint32) (p []byte, text string, ok bool) {
		if p = x.data.bytes(x.flagsAt+(r.firstFlag+i)*flagBytes, flagBytes); p == nil {
			return nil, "", false
		}
		text, ok = x.str(binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:]))
		return p, text, ok
	}
	at := searchSorted(r.flags, func(i uint32) bool {
		_, text, ok := entry(i)
		damaged = damaged || !ok
		return text < flag
	})
	if damaged || at == r.flags {
		return nil, damaged
	}
	p, text, ok := entry(at)
	if !ok || text != flag {
		return nil, !ok
	}
	name, ok := x.str(binary.LittleEndian.Uint32(p[8:]), binary.LittleEndian.Uint32(p[12:]))
	if !ok {
		return nil, true
	}
	return &option{name: name, flags: []string{flag}, arity: int(int32(binary.LittleEndian.Uint32(p[16:]))), optional: p[20] != 0, pending: true}, false
}

// worst is the join of all commands as r may believe them.
func (x *index) worst(r *resolver) (out Effects, ok bool) {
	const each = uint32(worstBytes / 2)
	at := x.worstAt
	if r.rank > Inferred {
		at += each
	}
	p := x.data.bytes(at, each)
	if p == nil || p[0] == 0 {
		return out, false
	}
	for e := range out {
		f := p[4+e*factBytes:]
		number := func(i int) uint32 { return binary.LittleEndian.Uint32(f[4*i:]) }
		pointer, ok1 := x.str(number(1), number(2))
		clause, ok2 := x.str(number(3), number(4))
		if !ok1 || !ok2 || number(0) > uint32(Yes) {
			return out, false
		}
		out[e] = Fact{Value: Value(number(0)), Source: r.source, Pointer: pointer, Clause: clause, Rank: r.rank}
	}
	return out, true
}

// searchSorted is the first of n that is not below what is sought.
func searchSorted(n uint32, below func(i uint32) bool) uint32 {
	lo, hi := uint32(0), n
	for lo < hi {
		mid := lo + (hi-lo)/2
		if below(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// within reports off+n <= size without overflow.
func within(off, n, size uint32) bool { return n <= size && off <= size-n }

package atip

import (
	"strconv"
	"strings"
)

// val is one value of a document: an index into its tape. The zero val is absent;
// every method answers for it as for a value of another type.
type val struct {
	d *Document
	i uint32
}

func (v val) ok() bool { return v.d != nil }

func (v val) kind() Kind {
	if v.d == nil {
		return KindNull
	}
	return v.d.tape[v.i].kind
}

func (v val) is(k Kind) bool { return v.d != nil && v.d.tape[v.i].kind == k }

// get returns the member of an object.
func (v val) get(key string) val {
	if !v.is(KindObject) {
		return val{}
	}
	tape := v.d.tape
	end := tape[v.i].next
	for j := v.i + 1; j < end; j = tape[j+1].next {
		k := &tape[j]
		if k.flags&flagEscaped == 0 {
			if int(k.end-k.off)-2 == len(key) && v.d.src[k.off+1:k.end-1] == key {
				return val{v.d, j + 1}
			}
		} else if entryText(v.d.src, k) == key {
			return val{v.d, j + 1}
		}
	}
	return val{}
}

// members calls f for each member of an object until f returns false.
func (v val) members(f func(key string, m val) bool) {
	if !v.is(KindObject) {
		return
	}
	tape := v.d.tape
	end := tape[v.i].next
	for j := v.i + 1; j < end; j = tape[j+1].next {
		if !f(entryText(v.d.src, &tape[j]), val{v.d, j + 1}) {
			return
		}
	}
}

// items calls f for each element of an array.
func (v val) items(f func(n int, item val)) {
	if !v.is(KindArray) {
		return
	}
	tape := v.d.tape
	end := tape[v.i].next
	n := 0
	for j := v.i + 1; j < end; j = tape[j].next {
		f(n, val{v.d, j})
		n++
	}
}

// size is the number of entries of a value, itself included.
func (v val) size() int {
	if v.d == nil {
		return 0
	}
	return int(v.d.tape[v.i].next - v.i)
}

func (v val) len() int {
	n := 0
	switch v.kind() {
	case KindArray:
		v.items(func(int, val) { n++ })
	case KindObject:
		v.members(func(string, val) bool { n++; return true })
	}
	return n
}

// str returns a string, "" for anything else.
func (v val) str() string {
	if !v.is(KindString) {
		return ""
	}
	return entryText(v.d.src, &v.d.tape[v.i])
}

// boolean returns the value of true or false.
func (v val) boolean() (b, ok bool) {
	switch v.kind() {
	case KindTrue:
		return true, true
	case KindFalse:
		return false, v.d != nil
	}
	return false, false
}

func (v val) isTrue() bool { return v.is(KindTrue) }

// integer returns a whole number that fits 32 bits.
func (v val) integer() (int, bool) {
	if !v.is(KindNumber) {
		return 0, false
	}
	e := &v.d.tape[v.i]
	n, err := strconv.ParseInt(v.d.src[e.off:e.end], 10, 32)
	return int(n), err == nil
}

// strings returns the strings of an array; ok is false if it is no array or holds
// anything else.
func (v val) strings() (list []string, ok bool) {
	if !v.is(KindArray) {
		return nil, false
	}
	ok = true
	if n := v.len(); n > 0 {
		list = make([]string, 0, n)
	}
	v.items(func(_ int, item val) {
		if !item.is(KindString) {
			ok = false
			return
		}
		list = append(list, item.str())
	})
	return list, ok
}

// scalar is a value as an argv would spell it.
func (v val) scalar() string {
	switch v.kind() {
	case KindString:
		return v.str()
	case KindTrue, KindFalse, KindNumber:
		e := &v.d.tape[v.i]
		return v.d.src[e.off:e.end]
	}
	return ""
}

func (v val) pos() (line, col int) {
	if v.d == nil {
		return 0, 0
	}
	return v.d.position(int(v.d.tape[v.i].off))
}

// pointerTo appends one token to a JSON pointer (RFC 6901).
func pointerTo(base, token string) string {
	if strings.ContainsAny(token, "~/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
	}
	return base + "/" + token
}

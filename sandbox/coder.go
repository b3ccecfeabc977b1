package sandbox

import (
	"encoding/binary"
	"errors"
)

// coder writes the values it is shown, or reads them back in the same order. There is one
// description of each message for both directions, and no reflection: a process that lives
// for milliseconds pays for that what it pays for a dozen mounts.
//
// A number is a varint (zigzag, as encoding/binary has it), a text its length and bytes, a
// list its length and elements.
type coder struct {
	data    []byte // written so far, or left to read
	reading bool
	err     error // of reading; everything after it is zero
}

// end is the error of reading, also of bytes that nobody asked for.
func (c *coder) end() error {
	if c.err == nil && len(c.data) != 0 {
		c.err = errors.New("trailing data")
	}
	return c.err
}

func (c *coder) fail() { c.data, c.err = nil, errors.New("damaged message") }

// number passes an integer that fits into its type.
func number[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](c *coder, v *T) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, int64(*v))
		return
	}
	n, size := binary.Varint(c.data)
	if size <= 0 || int64(T(n)) != n {
		c.fail()
		return
	}
	*v, c.data = T(n), c.data[size:]
}

func (c *coder) flag(v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	number(c, &n)
	if n > 1 {
		c.fail()
		n = 0
	}
	*v = n == 1
}

// length passes the number of the elements that follow, each at least a byte long.
func (c *coder) length(have int) int {
	number(c, &have)
	if c.reading && (have < 0 || have > len(c.data)) {
		c.fail()
		return 0
	}
	return have
}

func (c *coder) text(v *string) {
	n := c.length(len(*v))
	if c.reading {
		*v, c.data = string(c.data[:n]), c.data[n:]
		return
	}
	c.data = append(c.data, *v...)
}

// series passes a slice; an empty one arrives as nil.
func series[T any](c *coder, v *[]T, element func(*coder, *T)) {
	n := c.length(len(*v))
	if c.reading {
		if n == 0 {
			return
		}
		*v = make([]T, n)
	}
	for i := range *v {
		element(c, &(*v)[i])
	}
}

func (c *coder) table(v *map[string]string) {
	type pair struct{ key, value string }
	var pairs []pair
	for k, value := range *v {
		pairs = append(pairs, pair{k, value})
	}
	series(c, &pairs, func(c *coder, p *pair) {
		c.text(&p.key)
		c.text(&p.value)
	})
	if c.reading && len(pairs) > 0 {
		*v = make(map[string]string, len(pairs))
		for _, p := range pairs {
			(*v)[p.key] = p.value
		}
	}
}

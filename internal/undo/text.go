package undo

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	maxDiff  = 1 << 20 // bytes of a file that is compared line by line
	maxEdits = 4_000
	context  = 3
)

// diffText shows how a file changed as git does: by lines, or for what is no text or too long
// by its size. A nil side is a file that is not there.
func diffText(name string, old, new []byte) string {
	a, b := "a/"+name, "b/"+name
	out := "diff --git " + quoteName(a) + " " + quoteName(b) + "\n"
	if old == nil {
		out, a = out+"new file\n", "/dev/null"
	}
	if new == nil {
		out, b = out+"deleted file\n", "/dev/null"
	}
	binary := func(x []byte) bool { return bytes.IndexByte(x[:min(len(x), 8000)], 0) >= 0 || len(x) > maxDiff }
	if binary(old) || binary(new) {
		return out + fmt.Sprintf("Binary files differ: %d bytes, then %d\n", len(old), len(new))
	}
	x, y := lines(old), lines(new)
	script, ok := edits(x, y)
	if !ok {
		return out + fmt.Sprintf("Too different to compare: %d lines, then %d\n", len(x), len(y))
	}
	return out + "--- " + quoteName(a) + "\n+++ " + quoteName(b) + "\n" + hunks(script)
}

func quoteName(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == 0xfffd }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")[:bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))+1]
}

// edit is a line that both have (' '), only the old ('-') or only the new ('+').
type edit struct {
	op   byte
	line string
}

// edits finds the shortest script between two texts (Myers, "An O(ND) Difference Algorithm",
// 1986); ok is false if it is too long.
func edits(x, y []string) (script []edit, ok bool) {
	start := 0
	for start < len(x) && start < len(y) && x[start] == y[start] {
		start++
	}
	endX, endY := len(x), len(y)
	for endX > start && endY > start && x[endX-1] == y[endY-1] {
		endX--
		endY--
	}
	a, b := x[start:endX], y[start:endY]
	for _, l := range x[:start] {
		script = append(script, edit{' ', l})
	}
	n, m := len(a), len(b)
	most := min(n+m, maxEdits)
	v := make([]int, 2*most+3)
	var trace [][]int
	found := -1
	for d := 0; d <= most && found < 0; d++ {
		trace = append(trace, append([]int(nil), v[most+1-d-1:most+1+d+2]...))
		for k := -d; k <= d; k += 2 {
			i := most + 1 + k
			p := 0
			if k == -d || k != d && v[i-1] < v[i+1] {
				p = v[i+1]
			} else {
				p = v[i-1] + 1
			}
			for p < n && p-k < m && a[p] == b[p-k] {
				p++
			}
			v[i] = p
			if p >= n && p-k >= m {
				found = d
				break
			}
		}
	}
	if found < 0 {
		return nil, false
	}
	var back []edit
	p, q := n, m
	for d := found; d >= 0; d-- {
		w := trace[d]
		at := func(k int) int { return w[k+d+1] }
		k := p - q
		prev := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			prev = k + 1
		}
		if d == 0 {
			for p > 0 && q > 0 {
				p, q = p-1, q-1
				back = append(back, edit{' ', a[p]})
			}
			break
		}
		from := at(prev)
		for p > from && q > from-prev {
			p, q = p-1, q-1
			back = append(back, edit{' ', a[p]})
		}
		if prev == k+1 {
			q--
			back = append(back, edit{'+', b[q]})
		} else {
			p--
			back = append(back, edit{'-', a[p]})
		}
	}
	for i := len(back) - 1; i >= 0; i-- {
		script = append(script, back[i])
	}
	for _, l := range x[endX:] {
		script = append(script, edit{' ', l})
	}
	return script, true
}

// hunks prints a script with a few lines around each change.
func hunks(script []edit) string {
	var out strings.Builder
	x, y := 0, 0
	for i := 0; i < len(script); {
		if script[i].op == ' ' {
			i++
			x++
			y++
			continue
		}
		from := max(i-context, 0)
		end, quiet := i, 0
		for j := i; j < len(script) && quiet <= 2*context; j++ {
			if script[j].op == ' ' {
				quiet++
			} else {
				end, quiet = j+1, 0
			}
		}
		end = min(end+context, len(script))
		sx, sy, nx, ny := x-(i-from), y-(i-from), 0, 0
		var body strings.Builder
		for _, e := range script[from:end] {
			body.WriteByte(e.op)
			body.WriteString(e.line)
			if e.op != '+' {
				nx++
			}
			if e.op != '-' {
				ny++
			}
		}
		at := func(s, n int) string {
			if n > 0 {
				s++
			}
			return fmt.Sprintf("%d,%d", s, n)
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n%s", at(sx, nx), at(sy, ny), body.String())
		x, y, i = sx+nx, sy+ny, end
	}
	return out.String()
}

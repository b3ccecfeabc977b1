package main

import (
	"fmt"
	"math/bits"
)

// node is an instruction with its successors resolved; a program stays a list of
// nodes in an order in which every jump goes forward.
type node struct {
	insn
	next [2]int // for a branch: true, false; else next[0]
}

// treeStart returns where the library's program has finished the tests that the
// prefix has done already: architecture, x32, and loading the number.
func treeStart(arch architecture, body []insn) (int, error) {
	at := 0
	expect := func(code uint16, k uint32) bool {
		return at < len(body) && body[at].code == code && body[at].k == k
	}
	ok := expect(opLoad, offArch)
	at++
	ok = ok && expect(opEqual, arch.audit)
	if ok {
		at += 1 + int(body[at].jt)
	}
	ok = ok && expect(opLoad, offNumber)
	at++
	if ok && arch.x32 {
		ok = expect(opAtLeast, x32Bit)
		if ok {
			at += 1 + int(body[at].jf)
		}
		// The library loads the number once more.
		ok = ok && expect(opLoad, offNumber)
		at++
	}
	if !ok {
		return 0, fmt.Errorf("the library's program does not begin as expected at %d", at)
	}
	return at, nil
}

// simplify removes what the library emits and the result does not need: the tests
// of upper halves under an empty mask, single-bit tests that can be one, and what
// is then unreachable. The kernel runs a program once for each call number when it
// is loaded and compiles it, so its length is paid by every start. That the result
// still is the table is what the tests of package sandbox/seccomp decide.
func simplify(insns []insn) ([]insn, error) {
	nodes := make([]node, len(insns))
	for i, in := range insns {
		n := node{insn: in, next: [2]int{i + 1, i + 1}}
		switch {
		case in.code == opJump:
			n.next = [2]int{i + 1 + int(in.k), i + 1 + int(in.k)}
		case isBranch(in):
			n.next = [2]int{i + 1 + int(in.jt), i + 1 + int(in.jf)}
		}
		nodes[i] = n
	}
	for changed := true; changed; {
		changed = emptyMasks(nodes) || singleBits(nodes)
	}
	return layout(nodes)
}

func isBranch(in insn) bool { return in.code&7 == 5 && in.code != opJump }

// reloads reports whether the code at i does not use the accumulator.
func reloads(nodes []node, i int) bool {
	for nodes[i].code == opJump {
		i = nodes[i].next[0]
	}
	return nodes[i].code == opLoad || nodes[i].code == opReturn
}

// emptyMasks turns "load, and 0, equal 0" into a jump.
func emptyMasks(nodes []node) bool {
	changed := false
	for i := 0; i+2 < len(nodes); i++ {
		load, and, eq := &nodes[i], nodes[i+1], nodes[i+2]
		if load.code == opLoad && and.code == opAnd && and.k == 0 && eq.code == opEqual && eq.k == 0 && reloads(nodes, eq.next[0]) {
			load.insn, load.next = insn{code: opJump}, [2]int{eq.next[0], eq.next[0]}
			changed = true
		}
	}
	return changed
}

// singleBits turns "and b, equal b" into one test of bits, and joins such tests of
// the same argument that end alike.
func singleBits(nodes []node) bool {
	changed := false
	for i := 0; i+1 < len(nodes); i++ {
		and, eq := &nodes[i], nodes[i+1]
		if and.code == opAnd && bits.OnesCount32(and.k) == 1 && eq.code == opEqual && eq.k == and.k &&
			reloads(nodes, eq.next[0]) && reloads(nodes, eq.next[1]) {
			and.insn, and.next = insn{code: opBits, k: and.k}, eq.next
			changed = true
		}
	}
	for i := 0; i+1 < len(nodes); i++ {
		load, test := nodes[i], &nodes[i+1]
		if load.code != opLoad || test.code != opBits {
			continue
		}
		j := test.next[1]
		for nodes[j].code == opJump {
			j = nodes[j].next[0]
		}
		if j+1 < len(nodes) && nodes[j].code == opLoad && nodes[j].k == load.k && nodes[j+1].code == opBits &&
			nodes[j+1].next[0] == test.next[0] && test.k|nodes[j+1].k != test.k {
			test.k |= nodes[j+1].k
			test.next[1] = nodes[j+1].next[1]
			changed = true
		}
	}
	return changed
}

// layout writes the reachable nodes in their order, without jumps that only follow
// another jump.
func layout(nodes []node) ([]insn, error) {
	through := func(i int) int {
		for nodes[i].code == opJump {
			i = nodes[i].next[0]
		}
		return i
	}
	reachable := make([]bool, len(nodes))
	start := through(0)
	reachable[start] = true
	for i := start; i < len(nodes); i++ {
		if reachable[i] && nodes[i].code != opReturn {
			nodes[i].next = [2]int{through(nodes[i].next[0]), through(nodes[i].next[1])}
			reachable[nodes[i].next[0]], reachable[nodes[i].next[1]] = true, true
		}
	}
	// A plain instruction must be followed by its successor, and a branch reaches
	// 255 instructions, so jumps are put back where the order does not serve.
	place := make([]int, len(nodes))
	var order []int
	for i := range nodes {
		if !reachable[i] {
			continue
		}
		place[i] = len(order)
		order = append(order, i)
	}
	var out []insn
	for at, i := range order {
		n := nodes[i]
		switch {
		case n.code == opReturn:
		case isBranch(n.insn):
			t, f := place[n.next[0]]-at-1, place[n.next[1]]-at-1
			if t < 0 || f < 0 || t > 255 || f > 255 {
				return nil, fmt.Errorf("branch at %d reaches %d and %d", at, t, f)
			}
			n.jt, n.jf = uint8(t), uint8(f)
		case place[n.next[0]] != at+1:
			return nil, fmt.Errorf("instruction at %d is not followed by its successor", at)
		}
		out = append(out, n.insn)
	}
	return out, nil
}

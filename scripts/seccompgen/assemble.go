package main

import (
	"fmt"
	"sort"

	table "github.com/atip-dev/atip-exec/sandbox/seccomp"
)

// insn is one classic BPF instruction (struct sock_filter).
type insn struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// The instructions used here, from linux/bpf_common.h.
const (
	opLoad    = 0x20 // LD | W | ABS
	opJump    = 0x05 // JMP | JA
	opEqual   = 0x15 // JMP | JEQ | K
	opAbove   = 0x25 // JMP | JGT | K
	opAtLeast = 0x35 // JMP | JGE | K
	opBits    = 0x45 // JMP | JSET | K
	opAnd     = 0x54 // ALU | AND | K
	opReturn  = 0x06 // RET | K

	retAllow = 0x7fff0000
	retErrno = 0x00050000
	retKill  = 0x80000000

	offNumber = 0
	offArch   = 4
	x32Bit    = 0x40000000
)

// argLow and argHigh are the offsets of an argument's halves in seccomp_data.
func argLow(arg uint8) uint32  { return 16 + 8*uint32(arg) }
func argHigh(arg uint8) uint32 { return argLow(arg) + 4 }

// assembler builds a program with named jump targets; "" is the next instruction.
type assembler struct {
	insns  []insn
	jumps  [][2]string
	labels map[string]int
}

func (a *assembler) emit(code uint16, k uint32, jt, jf string) {
	a.insns = append(a.insns, insn{code: code, k: k})
	a.jumps = append(a.jumps, [2]string{jt, jf})
}

func (a *assembler) load(offset uint32)                          { a.emit(opLoad, offset, "", "") }
func (a *assembler) ret(k uint32)                                { a.emit(opReturn, k, "", "") }
func (a *assembler) branch(code uint16, k uint32, jt, jf string) { a.emit(code, k, jt, jf) }
func (a *assembler) jump(label string)                           { a.emit(opJump, 0, label, "") }
func (a *assembler) label(name string) {
	if a.labels == nil {
		a.labels = map[string]int{}
	}
	a.labels[name] = len(a.insns)
}

func (a *assembler) finish() ([]insn, error) {
	for i := range a.insns {
		in := &a.insns[i]
		for side, name := range a.jumps[i] {
			if name == "" {
				continue
			}
			target, ok := a.labels[name]
			distance := target - i - 1
			switch {
			case !ok || distance < 0:
				return nil, fmt.Errorf("label %q cannot be reached from %d", name, i)
			case in.code == opJump:
				in.k = uint32(distance)
			case distance > 255:
				return nil, fmt.Errorf("label %q is too far from %d", name, i)
			case side == 0:
				in.jt = uint8(distance)
			default:
				in.jf = uint8(distance)
			}
		}
	}
	return a.insns, nil
}

// foreign refuses other architectures and loads the number; foreignTail must follow.
func (a *assembler) foreign(arch architecture) {
	a.load(offArch)
	a.branch(opEqual, arch.audit, "", "kill")
	a.load(offNumber)
}

// foreignTail continues with a number above all that are known: one of x32 ends
// the process on amd64, others go on to target. So does -1, which is what a tracer
// leaves when it has cancelled a call. The test stands here because what stands
// before every number is paid 470 times when the kernel loads the program.
func (a *assembler) foreignTail(arch architecture, target string) {
	a.label("high")
	a.branch(opEqual, 0xffffffff, "body", "")
	if arch.x32 {
		a.branch(opAtLeast, x32Bit, "kill", target)
	} else {
		a.jump(target)
	}
	a.label("kill")
	a.ret(retKill)
}

// prefixProgram assembles what stands before the library's program: calls newer
// than the library behind one test, the calls after the newest, and the one
// comparison the library lacks. bound adds the refusal of unreviewed calls, which
// only complete programs need.
func prefixProgram(arch architecture, rules []table.Rule, bound bool) ([]insn, error) {
	var numbered, other []table.Rule
	for _, rule := range rules {
		switch {
		case rule.Number != 0 && len(rule.Tests) == 0:
			numbered = append(numbered, rule)
		case len(rule.Tests) == 1 && rule.Tests[0].Op == table.OpOther:
			other = append(other, rule)
		default:
			return nil, fmt.Errorf("%v: cannot be assembled here", rule.Calls)
		}
	}
	sort.Slice(numbered, func(i, j int) bool { return numbered[i].Number < numbered[j].Number })
	if !bound && len(rules) == 0 {
		return nil, nil
	}
	first := uint32(table.Newest + 1)
	if len(numbered) > 0 {
		first = min(first, numbered[0].Number)
	}
	a := &assembler{}
	a.foreign(arch)
	a.branch(opAtLeast, first, "new", "")
	for i, rule := range other {
		nr, err := number(arch, rule, rule.Calls[0])
		if err != nil || nr < 0 || len(rule.Calls) != 1 {
			return nil, fmt.Errorf("%v: want one call that every architecture has", rule.Calls)
		}
		next := fmt.Sprintf("other%d", i+1)
		a.branch(opEqual, uint32(nr), "", next)
		a.load(argLow(rule.Tests[0].Arg))
		for _, value := range rule.Tests[0].Values {
			a.branch(opEqual, value, "allow", "")
		}
		a.ret(retErrno | uint32(rule.Answer))
		a.label(next)
	}
	a.jump("body")
	a.label("new")
	for _, rule := range numbered {
		a.branch(opEqual, rule.Number, fmt.Sprintf("errno%d", rule.Answer), "")
	}
	a.branch(opAbove, table.Newest, "high", "body")
	a.foreignTail(arch, "errno38")
	for _, answer := range []uint16{1, 38} {
		a.label(fmt.Sprintf("errno%d", answer))
		a.ret(retErrno | uint32(answer))
	}
	a.label("allow")
	a.ret(retAllow)
	a.label("body")
	return a.finish()
}

// ticketProgram assembles the rules of group N, which compare the upper half of
// an argument. Its rules are few and known, so anything else is an error.
func ticketProgram(arch architecture, rules []table.Rule) ([]insn, error) {
	a := &assembler{}
	a.foreign(arch)
	type answer struct {
		nr     uint32
		answer uint16
	}
	var plain []answer
	clone := -1
	var threads, ticket uint32
	for _, rule := range rules {
		for _, call := range rule.Calls {
			nr, err := number(arch, rule, call)
			if err != nil {
				return nil, err
			}
			if nr < 0 {
				continue
			}
			switch {
			case len(rule.Tests) == 0:
				plain = append(plain, answer{uint32(nr), rule.Answer})
			case call == "clone" && len(rule.Tests) == 2 && rule.Tests[0].Op == table.OpMasked &&
				rule.Tests[0].Arg == 0 && rule.Tests[0].Value == 0 && rule.Tests[1].Arg == 0:
				clone, threads = nr, rule.Tests[0].Mask
				switch {
				case rule.Tests[1].Op == table.OpHigh && rule.Tests[1].Value == 0 && rule.Answer == 1:
				case rule.Tests[1].Op == table.OpHighOther && rule.Answer == table.AnswerKill:
					ticket = rule.Tests[1].Value
				default:
					return nil, fmt.Errorf("%v: unknown rule", rule)
				}
			default:
				return nil, fmt.Errorf("%v: cannot be assembled here", rule)
			}
		}
	}
	if clone < 0 || ticket == 0 {
		return nil, fmt.Errorf("rules for clone are missing")
	}
	a.branch(opAbove, table.Newest, "high", "")
	a.branch(opEqual, uint32(clone), "clone", "")
	for _, p := range plain {
		a.branch(opEqual, p.nr, fmt.Sprintf("errno%d", p.answer), "")
	}
	a.ret(retAllow)
	a.label("clone")
	a.load(argLow(0))
	a.branch(opBits, threads, "allow", "")
	a.load(argHigh(0))
	a.branch(opEqual, ticket, "allow", "")
	a.branch(opEqual, 0, "errno1", "kill")
	a.foreignTail(arch, "body")
	for _, errno := range []uint16{1, 38} {
		a.label(fmt.Sprintf("errno%d", errno))
		a.ret(retErrno | uint32(errno))
	}
	a.label("allow")
	a.label("body")
	a.ret(retAllow)
	return a.finish()
}

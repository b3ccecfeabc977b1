package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The programs of both architectures are decided here by an interpreter of our own
// and compared with the table they were compiled from.

const (
	auditAMD64 = 0xc000003e
	auditARM64 = 0xc00000b7
	auditI386  = 0x40000003

	retAllow  = 0x7fff0000
	retKill   = 0x80000000
	retErrno  = 0x00050000
	x32Number = 0x40000000
)

type bpfInsn struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

type seccompData struct {
	nr, arch uint32
	args     [6]uint64
}

// word is the 32-bit load of seccomp_data on a little-endian machine; the
// instruction pointer reads as zero.
func (d seccompData) word(offset uint32) (uint32, error) {
	switch {
	case offset == 0:
		return d.nr, nil
	case offset == 4:
		return d.arch, nil
	case offset == 8 || offset == 12:
		return 0, nil
	case offset < 64 && offset%4 == 0:
		v := d.args[(offset-16)/8]
		if offset%8 != 0 {
			v >>= 32
		}
		return uint32(v), nil
	}
	return 0, fmt.Errorf("load at %d", offset)
}

// interpret runs classic BPF as the kernel defines it, with the instructions that
// seccomp allows and our programs use.
func interpret(prog []bpfInsn, d seccompData) (uint32, error) {
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		var jump bool
		switch in.code {
		case 0x20: // ld [k]
			var err error
			if a, err = d.word(in.k); err != nil {
				return 0, err
			}
			continue
		case 0x54: // and #k
			a &= in.k
			continue
		case 0x06: // ret #k
			return in.k, nil
		case 0x05: // ja k
			pc += int(in.k)
			continue
		case 0x15:
			jump = a == in.k
		case 0x25:
			jump = a > in.k
		case 0x35:
			jump = a >= in.k
		case 0x45:
			jump = a&in.k != 0
		default:
			return 0, fmt.Errorf("instruction %#x at %d", in.code, pc)
		}
		if jump {
			pc += int(in.jt)
		} else {
			pc += int(in.jf)
		}
	}
	return 0, errors.New("ran off the end")
}

// holds decides one test as the table words it.
func (t ArgTest) holds(arg uint64) bool {
	low, high := uint32(arg), uint32(arg>>32)
	switch t.Op {
	case OpEqual:
		return low == t.Value
	case OpMasked:
		return low&t.Mask == t.Value
	case OpAny:
		return low&t.Mask != 0
	case OpNot:
		return arg != uint64(t.Value)
	case OpOutside:
		return arg > 31 || t.Mask>>arg&1 == 0
	case OpOther:
		return !slices.Contains(t.Values[:], low)
	case OpHigh:
		return high == t.Value
	case OpHighOther:
		return high != 0 && high != t.Value
	}
	panic("unknown operation")
}

// expected lists the results that the table permits for one call: where several
// rules refuse it, any of their answers.
func expected(machine testMachine, rules []Rule, complete bool, d seccompData) []uint32 {
	if d.arch != machine.audit {
		return []uint32{retKill}
	}
	if machine.x32 && d.nr >= x32Number && d.nr != 0xffffffff {
		return []uint32{retKill}
	}
	if complete && d.nr > Newest && d.nr != 0xffffffff {
		return []uint32{retErrno | answerENOSYS}
	}
	var out []uint32
	for _, rule := range rules {
		for _, call := range rule.Calls {
			if nr, ok := machine.calls[call]; !ok || nr != d.nr {
				continue
			}
			refused := true
			for _, test := range rule.Tests {
				refused = refused && test.holds(d.args[test.Arg])
			}
			if refused && rule.Answer == AnswerKill {
				out = append(out, retKill)
			} else if refused {
				out = append(out, retErrno|uint32(rule.Answer))
			}
		}
	}
	if out == nil {
		out = []uint32{retAllow}
	}
	return out
}

type testMachine struct {
	name     string
	audit    uint32
	x32      bool
	calls    map[string]uint32
	programs map[string][]bpfInsn
}

func testMachines(t testing.TB) []testMachine {
	t.Helper()
	machines := []testMachine{{name: "amd64", audit: auditAMD64, x32: true}, {name: "arm64", audit: auditARM64}}
	for i := range machines {
		m := &machines[i]
		m.calls, m.programs = callsOf(t, m.name), map[string][]bpfInsn{}
		for _, p := range Programs() {
			code, err := os.ReadFile(filepath.Join(m.name, p.Name+".bpf"))
			if err != nil {
				t.Fatal(err)
			}
			var prog []bpfInsn
			for ; len(code) >= 8; code = code[8:] {
				prog = append(prog, bpfInsn{binary.LittleEndian.Uint16(code), code[2], code[3], binary.LittleEndian.Uint32(code[4:])})
			}
			m.programs[p.Name] = prog
		}
	}
	return machines
}

// callsOf reads the numbers of the calls of the table; those the architecture
// lacks are absent.
func callsOf(t testing.TB, arch string) map[string]uint32 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(arch, "calls.txt"))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]uint32{}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if nr, err := strconv.Atoi(number); err == nil {
			calls[name] = uint32(nr)
		} else if number != "-" {
			t.Fatalf("%s: line %q", arch, line)
		}
	}
	return calls
}

// values lists the arguments at which the test may change its mind, with bits
// above those that the kernel looks at.
func (t ArgTest) values() []uint64 {
	var out []uint64
	add := func(vs ...uint32) {
		for _, v := range vs {
			out = append(out, uint64(v), 0xdeadbeef<<32|uint64(v), 0xffffffff<<32|uint64(v))
		}
	}
	add(0, 0xffffffff)
	switch t.Op {
	case OpEqual, OpNot:
		add(t.Value, t.Value+1, t.Value-1, t.Value|1<<31)
	case OpMasked:
		add(t.Value, t.Value|^t.Mask, t.Value^t.Mask, t.Mask, ^t.Mask)
	case OpAny:
		for bit := range 32 {
			add(1<<bit, ^(uint32(1) << bit))
		}
	case OpOutside:
		for v := range uint32(48) {
			add(v)
		}
		add(132, 262)
	case OpOther:
		for _, v := range t.Values {
			add(v, v+1, v-1, v|1<<18)
		}
	case OpHigh, OpHighOther:
		for _, high := range []uint64{0, 1, uint64(t.Value), uint64(t.Value) + 1, 0xffffffff} {
			out = append(out, high<<32, high<<32|17, high<<32|cloneThread)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestEveryRowIsDecidedAsTheTableSays(t *testing.T) {
	for _, m := range testMachines(t) {
		for _, p := range Programs() {
			t.Run(m.name+"/"+p.Name, func(t *testing.T) { testProgram(t, m, p) })
		}
	}
}

func testProgram(t *testing.T, m testMachine, p Program) {
	rules, complete := Rules(p.Groups...), len(p.Groups) > 1
	decided := 0
	check := func(d seccompData) {
		decided++
		got, err := interpret(m.programs[p.Name], d)
		if err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		if want := expected(m, rules, complete, d); !slices.Contains(want, got) {
			t.Errorf("nr %d arch %#x args %#x: %#x, table says %#x", int32(d.nr), d.arch, d.args, got, want)
		}
	}
	for _, arch := range []uint32{auditAMD64, auditARM64, auditI386, 0} {
		for _, nr := range []uint32{0, 1, 59, 221, Newest, Newest + 1, 600, x32Number, x32Number + 39, x32Number + 520, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff} {
			check(seccompData{nr: nr, arch: arch})
		}
	}
	for nr := range uint32(700) {
		check(seccompData{nr: nr, arch: m.audit})
		check(seccompData{nr: nr, arch: m.audit, args: [6]uint64{1, 2, 3, 4, 5, 6}})
	}
	// All rules about a call are tried together, whether or not this program has
	// them: what one group leaves alone must be allowed.
	for call, nr := range m.calls {
		points := map[uint8][]uint64{}
		for _, rule := range table {
			if slices.Contains(rule.Calls, call) {
				for _, test := range rule.Tests {
					points[test.Arg] = append(points[test.Arg], test.values()...)
				}
			}
		}
		each([6]uint64{}, points, 0, func(args [6]uint64) { check(seccompData{nr, m.audit, args}) })
	}
	if decided < 2000 {
		t.Errorf("only %d decisions", decided)
	}
}

// each calls f with every combination of the points.
func each(args [6]uint64, points map[uint8][]uint64, arg uint8, f func([6]uint64)) {
	if arg == 6 {
		f(args)
		return
	}
	values := slices.Clone(points[arg])
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) == 0 {
		values = []uint64{0}
	}
	if len(values) > 24 && len(points) > 1 {
		// socket has three arguments of which each has many points: a sample with a
		// fixed seed, the ends always.
		r := rand.New(rand.NewPCG(uint64(arg), 1))
		r.Shuffle(len(values)-2, func(i, j int) { values[i+1], values[j+1] = values[j+1], values[i+1] })
		values = append(values[:23], values[len(values)-1])
	}
	for _, v := range values {
		args[arg] = v
		each(args, points, arg+1, f)
	}
}

// The combinations of socket that matter, without sampling.
func TestSocketFamilies(t *testing.T) {
	const nonblock = 0x80800 // SOCK_NONBLOCK | SOCK_CLOEXEC
	rows := []struct {
		family, kind, protocol uint64
		want                   map[string]uint32 // default EAFNOSUPPORT
	}{
		{1, 1, 0, map[string]uint32{"t2-unix": 0, "t2-net-unix": 0, "t3": 0, "t3-net": 0}},
		{1, 2 | nonblock, 0, map[string]uint32{"t2-unix": 0, "t2-net-unix": 0, "t3": 0, "t3-net": 0}},
		{2, 1 | nonblock, 6, map[string]uint32{"t2-net": 0, "t2-net-unix": 0, "t3-net": 0}},
		{2, 2, 17, map[string]uint32{"t2-net": 0, "t2-net-unix": 0, "t3-net": 0}},
		{10, 1, 0, map[string]uint32{"t2-net": 0, "t2-net-unix": 0, "t3-net": 0}},
		{16, 3 | nonblock, 0, map[string]uint32{"t2-net": 0, "t2-net-unix": 0, "t3-net": 0}},
		{16, 3, 9, map[string]uint32{"t2-net": answerEPROTONOSUPPORT, "t2-net-unix": answerEPROTONOSUPPORT, "t3-net": answerEPROTONOSUPPORT}},
		{2, 1, 262, map[string]uint32{"t2-net": answerEPROTONOSUPPORT, "t2-net-unix": answerEPROTONOSUPPORT, "t3-net": answerEPROTONOSUPPORT}},
		{2, 3 | nonblock, 1, map[string]uint32{"t2-net": answerEPERM, "t2-net-unix": answerEPERM, "t3-net": answerEPERM}},
		{10, 3, 58, map[string]uint32{"t2-net": answerEPERM, "t2-net-unix": answerEPERM, "t3-net": answerEPERM}},
		{17, 2, 0, nil}, {38, 5, 0, nil}, {40, 1, 0, nil}, {31, 5, 0, nil}, {44, 2, 0, nil}, {43, 2, 0, nil}, {0, 1, 0, nil},
		{0xffffffff, 1, 0, nil}, {1<<32 | 2, 1, 0, nil},
	}
	for _, m := range testMachines(t) {
		for _, row := range rows {
			for _, p := range []string{"t2", "t2-unix", "t2-net", "t2-net-unix", "t3", "t3-net"} {
				got, err := interpret(m.programs[p], seccompData{m.calls["socket"], m.audit, [6]uint64{row.family, row.kind, row.protocol}})
				want, special := row.want[p]
				switch {
				case !special && (p == "t2" || got != retErrno|answerEPROTONOSUPPORT):
					want = retErrno | answerEAFNOSUPPORT
				case !special: // refused twice, either answer is right
					want = got
				case want == 0:
					want = retAllow
				default:
					want |= retErrno
				}
				if err != nil || got != want {
					t.Errorf("%s %s socket(%#x, %#x, %d): %#x, %v, want %#x", m.name, p, row.family, row.kind, row.protocol, got, err, want)
				}
			}
		}
	}
}

func FuzzFilterFollowsTable(f *testing.F) {
	machines := testMachines(f)
	programs := Programs()
	f.Add(uint8(0), uint8(0), uint32(41), uint64(40), uint64(1), uint64(0), uint64(0))
	f.Add(uint8(1), uint8(3), uint32(220), uint64(PatchTicket)<<32|17, uint64(0), uint64(0), uint64(0))
	f.Add(uint8(0), uint8(5), uint32(16), uint64(0), uint64(0xdeadbeef00005412), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, machine, program uint8, nr uint32, a0, a1, a2, a3 uint64) {
		m, p := machines[int(machine)%len(machines)], programs[int(program)%len(programs)]
		d := seccompData{nr, m.audit, [6]uint64{a0, a1, a2, a3}}
		got, err := interpret(m.programs[p.Name], d)
		want := expected(m, Rules(p.Groups...), len(p.Groups) > 1, d)
		if err != nil || !slices.Contains(want, got) {
			t.Errorf("%s/%s %+v: %#x, %v, table says %#x", m.name, p.Name, d, got, err, want)
		}
	})
}

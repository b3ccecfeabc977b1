package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	table "github.com/atip-dev/atip-exec/sandbox/seccomp"
	seccomp "github.com/seccomp/libseccomp-golang"
)

// architecture is one for which programs are generated.
type architecture struct {
	name  string
	arch  seccomp.ScmpArch
	audit uint32 // AUDIT_ARCH_*
	x32   bool   // numbers from 1<<30 belong to another ABI
}

var architectures = []architecture{
	{"amd64", seccomp.ArchAMD64, 0xc000003e, true},
	{"arm64", seccomp.ArchARM64, 0xc00000b7, false},
}

// compiled is one finished program with what its listing tells.
type compiled struct {
	arch    architecture
	program table.Program
	rules   []table.Rule
	insns   []insn
	emitted int    // instructions of the library, before they were simplified
	pfc     []byte // the library's listing of the rest
	skipped []string
}

// number resolves a call; it is negative where the architecture lacks it.
func number(arch architecture, rule table.Rule, call string) (int, error) {
	if rule.Number != 0 {
		if len(rule.Calls) != 1 {
			return 0, fmt.Errorf("%v: a number needs exactly one call", rule.Calls)
		}
		return int(rule.Number), nil
	}
	nr, err := seccomp.GetSyscallFromNameByArch(call, arch.arch)
	if err != nil {
		return 0, fmt.Errorf("call %q: %w", call, err)
	}
	return int(nr), nil
}

func compile(arch architecture, program table.Program) (*compiled, error) {
	c := &compiled{arch: arch, program: program, rules: table.Rules(program.Groups...)}
	var library, hand []table.Rule
	for _, rule := range c.rules {
		for _, call := range rule.Calls {
			nr, err := number(arch, rule, call)
			if err != nil {
				return nil, err
			}
			if nr < 0 {
				// A rule on a pseudo number would become a test that is never true.
				c.skipped = append(c.skipped, call)
			}
		}
		if byHand(rule) {
			hand = append(hand, rule)
		} else {
			library = append(library, rule)
		}
	}
	if program.Name == "ticket" {
		insns, err := ticketProgram(arch, c.rules)
		c.insns = insns
		return c, err
	}
	prefix, err := prefixProgram(arch, hand, len(program.Groups) > 1)
	if err != nil {
		return nil, err
	}
	body, pfc, err := libraryProgram(arch, library)
	if err != nil {
		return nil, err
	}
	if len(prefix) > 0 {
		start, err := treeStart(arch, body)
		if err != nil {
			return nil, err
		}
		body = body[start:]
	}
	c.emitted, c.pfc = len(body), pfc
	c.insns, err = simplify(append(prefix, body...))
	return c, err
}

// byHand reports whether libseccomp cannot express the rule.
func byHand(rule table.Rule) bool {
	if rule.Number != 0 {
		return true
	}
	for _, test := range rule.Tests {
		if test.Op >= table.OpOther {
			return true
		}
	}
	return false
}

func libraryProgram(arch architecture, rules []table.Rule) ([]insn, []byte, error) {
	filter, err := seccomp.NewFilter(seccomp.ActAllow)
	if err != nil {
		return nil, nil, err
	}
	defer filter.Release()
	native, err := seccomp.GetNativeArch()
	if err != nil {
		return nil, nil, err
	}
	if native != arch.arch {
		if err := filter.AddArch(arch.arch); err != nil {
			return nil, nil, err
		}
		if err := filter.RemoveArch(native); err != nil {
			return nil, nil, err
		}
	}
	if err := filter.SetBadArchAction(seccomp.ActKillProcess); err != nil {
		return nil, nil, err
	}
	// A tree, because at load the kernel runs the program once per call number.
	if err := filter.SetOptimize(2); err != nil {
		return nil, nil, err
	}
	for _, rule := range rules {
		alternatives, err := expand(rule.Tests)
		if err != nil {
			return nil, nil, fmt.Errorf("%v: %w", rule.Calls, err)
		}
		for _, call := range rule.Calls {
			if nr, err := number(arch, rule, call); err != nil || nr < 0 {
				continue
			}
			nr, err := seccomp.GetSyscallFromName(call)
			if err != nil {
				return nil, nil, err
			}
			action := seccomp.ActErrno.SetReturnCode(int16(rule.Answer))
			for _, conditions := range alternatives {
				if err := filter.AddRuleConditional(nr, action, conditions); err != nil {
					return nil, nil, fmt.Errorf("rule for %s %v: %w", call, conditions, err)
				}
			}
		}
	}
	code, err := export(filter.ExportBPF)
	if err != nil {
		return nil, nil, err
	}
	pfc, err := export(filter.ExportPFC)
	if err != nil {
		return nil, nil, err
	}
	insns, err := parse(code)
	return insns, pfc, err
}

// expand turns the tests of a rule into the alternatives that the library can
// express: equalities under a mask and comparisons, one per argument.
func expand(tests []table.ArgTest) ([][]seccomp.ScmpCondition, error) {
	all := [][]seccomp.ScmpCondition{nil}
	for _, test := range tests {
		var next [][]seccomp.ScmpCondition
		conditions, err := conditionsOf(test)
		if err != nil {
			return nil, err
		}
		for _, head := range all {
			for _, condition := range conditions {
				next = append(next, append(head[:len(head):len(head)], condition))
			}
		}
		all = next
	}
	return all, nil
}

func conditionsOf(t table.ArgTest) ([]seccomp.ScmpCondition, error) {
	var out []seccomp.ScmpCondition
	add := func(op seccomp.ScmpCompareOp, values ...uint64) error {
		c, err := seccomp.MakeCondition(uint(t.Arg), op, values...)
		out = append(out, c)
		return err
	}
	var err error
	switch t.Op {
	case table.OpEqual:
		err = add(seccomp.CompareMaskedEqual, 0xffffffff, uint64(t.Value))
	case table.OpMasked:
		err = add(seccomp.CompareMaskedEqual, uint64(t.Mask), uint64(t.Value))
	case table.OpAny:
		for bit := uint64(1); bit <= uint64(t.Mask) && err == nil; bit <<= 1 {
			if uint64(t.Mask)&bit != 0 {
				err = add(seccomp.CompareMaskedEqual, bit, bit)
			}
		}
	case table.OpNot:
		err = add(seccomp.CompareNotEqual, uint64(t.Value))
	case table.OpOutside:
		highest := uint64(0)
		for i := range uint64(32) {
			if t.Mask>>i&1 != 0 {
				highest = i
			}
		}
		for i := range highest {
			if t.Mask>>i&1 == 0 && err == nil {
				err = add(seccomp.CompareMaskedEqual, 0xffffffff, i)
			}
		}
		if err == nil {
			err = add(seccomp.CompareGreater, highest)
		}
	default:
		err = fmt.Errorf("operation %d is not for the library", t.Op)
	}
	return out, err
}

// export reads what the library writes to a descriptor.
func export(write func(*os.File) error) ([]byte, error) {
	f, err := os.CreateTemp("", "seccompgen")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func parse(code []byte) ([]insn, error) {
	if len(code)%8 != 0 || len(code) == 0 {
		return nil, fmt.Errorf("program of %d bytes", len(code))
	}
	var out []insn
	for ; len(code) > 0; code = code[8:] {
		out = append(out, insn{binary.LittleEndian.Uint16(code), code[2], code[3], binary.LittleEndian.Uint32(code[4:])})
	}
	return out, nil
}

func (c *compiled) bytes() []byte {
	var out []byte
	for _, in := range c.insns {
		out = binary.LittleEndian.AppendUint16(out, in.code)
		out = append(out, in.jt, in.jf)
		out = binary.LittleEndian.AppendUint32(out, in.k)
	}
	return out
}

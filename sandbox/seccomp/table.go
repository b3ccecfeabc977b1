// Package seccomp holds the table of system calls that a run may not make and the filter
// programs compiled from it, loads the programs that a run needs and installs them on a thread.
//
// The table is the only source of the filters: scripts/seccompgen compiles it with libseccomp
// into the programs of this directory, and the tests decide every row again, once with a BPF
// interpreter and once on the kernel. It is a denylist, because an allowlist breaks ordinary
// tools; numbers above Newest are refused unseen, so that a new call stays closed until it has
// a row or was let pass.
package seccomp

// Newest is the newest call that was reviewed for this table. Calls added
// since 5.1 have the same number on every architecture.
const Newest = 470

// Answers of a rule: an errno, with the numbers that amd64 and arm64 share, or the
// end of the process by SIGSYS.
const (
	answerEPERM           = 1
	answerEACCES          = 13
	answerENOSYS          = 38
	answerEPROTONOSUPPORT = 93
	answerEOPNOTSUPP      = 95
	answerEAFNOSUPPORT    = 97

	// AnswerKill ends the process instead of returning an errno.
	AnswerKill = 0xffff
)

// Values that stand in the compiled programs for what only the start of a run
// knows. They are replaced when a program is loaded; a program in which one is
// left over is refused.
const (
	PatchWrapperPID = 0x5eed0001
	PatchWorkerTID  = 0x5eed0002
	PatchTicket     = 0x5eed0003
)

// Op compares one argument of a call.
type Op uint8

// The comparisons. The kernel truncates int arguments, so those that take 32 bits
// ignore what a caller puts above; the others see all 64 and answer yes for it.
const (
	OpEqual   Op = iota // the low 32 bits are Value
	OpMasked            // the low 32 bits under Mask are Value
	OpAny               // the low 32 bits have a bit of Mask
	OpNot               // all 64 bits are not Value
	OpOutside           // all 64 bits are not the index of a bit set in Mask
	// OpOther and the High comparisons are beyond libseccomp and assembled by hand.
	OpOther     // the low 32 bits are none of Values
	OpHigh      // the high 32 bits are Value
	OpHighOther // the high 32 bits are neither 0 nor Value
)

// ArgTest is one comparison of argument Arg.
type ArgTest struct {
	Arg    uint8
	Op     Op
	Mask   uint32
	Value  uint32
	Values [3]uint32
}

// Rule refuses Calls when every test holds.
type Rule struct {
	Group  string
	Calls  []string
	Number uint32 // of a single call that libseccomp does not know yet
	Tests  []ArgTest
	Answer uint16
}

// Program is one compiled filter: the groups of rules in it.
type Program struct {
	Name   string
	Groups []string
}

// Programs returns every program there is. Those named t2 or t3 are complete
// filters; ticket, truncate and untraced are stacked on one where it needs them, because
// each filter more costs every start of a process 15 µs.
func Programs() []Program {
	programs := []Program{
		{"t3", []string{"A", "B", "C", "D", "E", "F", "G", "G-unix", "G-type"}},
		{"t3-net", []string{"A", "B", "C", "D", "E", "F", "G", "G-inet-unix", "G-type", "G-inet-type"}},
		{"ticket", []string{"N"}},
		{"truncate", []string{"M"}},
		{"untraced", []string{"P"}},
	}
	for _, net := range []Program{
		{"t2", []string{"G-none"}},
		{"t2-net", []string{"G-inet", "G-type", "G-inet-type"}},
		{"t2-unix", []string{"G-unix", "G-type"}},
		{"t2-net-unix", []string{"G-inet-unix", "G-type", "G-inet-type"}},
	} {
		groups := append([]string{"guard", "A", "B", "C", "D", "E", "E-others", "F", "G", "H"}, net.Groups...)
		programs = append(programs,
			Program{net.Name, groups},
			Program{net.Name + "-meta", append(groups[:len(groups):len(groups)], "I")})
	}
	return programs
}

// Rules returns the rules of the named groups, in the order of the table.
func Rules(groups ...string) []Rule {
	var rules []Rule
	for _, rule := range table {
		for _, group := range groups {
			if rule.Group == group {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

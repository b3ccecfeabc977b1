package main

import (
	"testing"

	table "github.com/atip-dev/atip-exec/sandbox/seccomp"
)

func TestCommittedFilesAreWhatTheTableGives(t *testing.T) {
	if err := run("../../sandbox/seccomp", true); err != nil {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	amd64, arm64 := architectures[0], architectures[1]
	for _, row := range []struct {
		arch architecture
		rule table.Rule
		want int // -1 for any negative number
		fail bool
	}{
		{arch: amd64, rule: table.Rule{Calls: []string{"clone"}}, want: 56},
		{arch: arm64, rule: table.Rule{Calls: []string{"clone"}}, want: 220},
		{arch: amd64, rule: table.Rule{Calls: []string{"vm86"}}, want: -1},
		{arch: arm64, rule: table.Rule{Calls: []string{"fork"}}, want: -1},
		{arch: arm64, rule: table.Rule{Calls: []string{"file_setattr"}, Number: 469}, want: 469},
		{arch: amd64, rule: table.Rule{Calls: []string{"mounnt"}}, fail: true},
		{arch: amd64, rule: table.Rule{Calls: []string{"a", "b"}, Number: 469}, fail: true},
	} {
		got, err := number(row.arch, row.rule, row.rule.Calls[0])
		switch {
		case row.fail != (err != nil):
			t.Errorf("%s %v: %d, %v", row.arch.name, row.rule.Calls, got, err)
		case !row.fail && (got != row.want && !(row.want < 0 && got < 0)):
			t.Errorf("%s %v: %d, want %d", row.arch.name, row.rule.Calls, got, row.want)
		}
	}
}

// A rule on a call that an architecture lacks is listed and compiled into nothing.
func TestAbsentCallsAreSkippedAndListed(t *testing.T) {
	rules := []table.Rule{{Calls: []string{"fork", "mount"}, Answer: 1}}
	with, _, err := libraryProgram(architectures[1], rules)
	if err != nil {
		t.Fatal(err)
	}
	without, _, err := libraryProgram(architectures[1], []table.Rule{{Calls: []string{"mount"}, Answer: 1}})
	if err != nil || len(with) != len(without) {
		t.Errorf("%d instructions with fork, %d without, %v", len(with), len(without), err)
	}
}

func TestHandAssembledRulesAreNotGuessed(t *testing.T) {
	for _, rule := range []table.Rule{
		{Calls: []string{"file_setattr"}, Number: 469, Tests: []table.ArgTest{{Arg: 1}}, Answer: 1},
		{Calls: []string{"clone"}, Tests: []table.ArgTest{{Op: table.OpHigh}}, Answer: 1},
	} {
		if _, err := prefixProgram(architectures[0], []table.Rule{rule}, true); err == nil {
			t.Errorf("%v was assembled", rule)
		}
	}
	if _, err := ticketProgram(architectures[0], []table.Rule{{Calls: []string{"fork"}, Answer: 1}}); err == nil {
		t.Error("a ticket program without rules for clone")
	}
}

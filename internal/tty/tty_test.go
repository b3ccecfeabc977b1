package tty

import (
	"errors"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, row := range []struct {
		name string
		f    Facts
		want Mode
	}{
		{"nothing known", Facts{}, Detached},
		{"pipes", Facts{Passed: true}, Detached},
		{"a person's terminal", Facts{Controlling: true, Passed: true}, Handoff},
		{"input is /dev/null or a file", Facts{Controlling: true}, Detached},
		{"asked", Facts{Asked: true}, Pty},
		{"asked on a terminal", Facts{Asked: true, Controlling: true, Passed: true}, Pty},
		{"declared", Facts{Declared: true, Controlling: true, Screen: true, Passed: true}, Pty},
		{"declared, and nobody is there", Facts{Declared: true, Passed: true}, Detached},
		{"declared, and the output goes elsewhere", Facts{Declared: true, Controlling: true, Passed: true}, Handoff},
		{"declared, as a shell", Facts{Declared: true, Passed: true, Screen: true, Shell: true}, Detached},
		{"declared, as a shell on a terminal", Facts{Declared: true, Controlling: true, Screen: true, Passed: true, Shell: true}, Handoff},
		{"asked, as a shell", Facts{Asked: true, Shell: true}, Detached},
	} {
		if got := Choose(row.f); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
	for mode, want := range map[Mode]string{Detached: "detached", Handoff: "handoff", Pty: "pty", 9: "detached"} {
		if got := mode.String(); got != want {
			t.Errorf("mode %d is %q, want %q", mode, got, want)
		}
	}
}

func TestErrorCodes(t *testing.T) {
	cause := errors.New("no")
	for _, row := range []struct {
		err  *Error
		want string
	}{
		{&Error{Op: "open", Err: cause}, "E4102"},
		{&Error{Op: "open", Code: "E4003", Err: cause}, "E4003"},
	} {
		if row.err.FaultCode() != row.want || !errors.Is(row.err, cause) || row.err.FaultDetails()["operation"] != "open" {
			t.Errorf("%v: %s %v", row.err, row.err.FaultCode(), row.err.FaultDetails())
		}
	}
}

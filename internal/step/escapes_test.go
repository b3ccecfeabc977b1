package step

import "testing"

func TestEscape(t *testing.T) {
	for _, row := range []struct {
		language, line, want string
		ok                   bool
	}{
		{"ed", "!rm -rf x", "rm -rf x", true}, {"ed", "r !id", "id", true}, {"ed", "1,$w !sh", "sh", true}, {"ed", "1,3d", "", true}, {"ed", "s/a!/b/", "", false},
		{"gdb", "shell id", "id", true}, {"gdb", "she id", "id", true}, {"gdb", "!id", "id", true}, {"gdb", "run", "", true}, {"gdb", "bt full", "", true},
		{"gdb", "source x", "", false}, {"gdb", "target remote :1", "", false}, {"gdb", "pipe bt | sh", "", false}, {"gdb", "attach 1", "", false}, {"gdb", "make all", "", false},
		{"tcl", "exec rm -rf ~", "rm -rf ~", true}, {"tcl", "puts [exec id]", "id", true}, {"tcl", "puts hi", "", true},
	} {
		if got, ok := Escape(row.language, row.line); got != row.want || ok != row.ok {
			t.Errorf("%s: %q: %q, %v", row.language, row.line, got, ok)
		}
	}
}

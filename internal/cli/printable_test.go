package cli

import "testing"

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":      "plain\ttext\n",
		"\x1b[31mred\x1b]0;": `\u001b[31mred\u001b]0;`,
		"a\rb\a\x7f\u009b":   `a\u000db\u0007\u007f\u009b`,
		"x\u202ey\u2066":     `x\u202ey\u2066`,
		"\xff\x1bü\ufffd":    "\xff" + `\u001b` + "ü\ufffd",
		"ü – 日本":             "ü – 日本",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

package shelltext

import "testing"

// TestLinesStay: statements stand on the lines on which they were given, whatever was left out.
func TestLinesStay(t *testing.T) {
	for text, want := range map[string]string{
		"a; b":                              "a; b",
		"a & b":                             "a & b",
		"# says\n\n\na\n# more\nb;c":        "\n\n\na\n\nb; c",
		"(a; b); { c; d; }; e":              "(a; b); { c; d; }; e",
		"if a; then b; fi; c":               "if a; then b; fi; c",
		"for x in 1 2\ndo\na\n\nb\ndone\nc": "for x in 1 2; do\n\ta\n\n\tb\ndone\n\nc",
		"a <<X; b\ntext\nX\nc":              "a <<X\ntext\nX\nb; c",
		"a \\\n  b\n\nc":                    "a \\\n\tb\n\nc",
		"x='1\n2\n'; c":                     "x='1\n2\n'; c",
		"f() {\n  a\n}\n\n\nf":              "f() {\n\ta\n}\n\n\nf",
	} {
		if _, got, err := Parse(text, Bash, 1<<10, false); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

package answer

import "testing"

// TestPlain: text of a document stays on its line and shows what it holds.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain":              "plain",
		"two\nlines\tand":    "two lines and",
		"\x1b[2K\x1b[1Aover": "over",
		"a\u202eb\u200bc":    "abc",
		"bell\a\x7f\u009b1m": "bell",
		"not \xff UTF-8":     "not \ufffd UTF-8",
		"Grüße 漢字 👍":         "Grüße 漢字 👍",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

package excerpt

import (
	"strings"
	"testing"
)

func TestHead(t *testing.T) {
	full := 0
	h := Head{Limit: 4, Full: func() { full++ }}
	for _, part := range []string{"ab", "cd"} {
		if n, err := h.Write([]byte(part)); n != 2 || err != nil || h.Over {
			t.Fatal(n, err, h.Over)
		}
	}
	if n, err := h.Write([]byte("ef")); n != 2 || err != nil || !h.Over || string(h.Kept) != "abcd" || full != 1 {
		t.Errorf("%d %v %v %q %d", n, err, h.Over, h.Kept, full)
	}
}

// TestEnds writes a text in pieces of each size: what is kept does not hang on them.
func TestEnds(t *testing.T) {
	text := strings.Repeat("0123456789", 10)
	for _, tt := range []struct {
		limit int
		want  string
	}{
		{100, text},
		{200, text},
		{20, text[:4] + "\n[atip-exec: 80 bytes omitted]\n" + text[84:]},
		{99, text[:19] + "\n[atip-exec: 1 bytes omitted]\n" + text[20:]},
	} {
		for size := 1; size <= len(text); size++ {
			e := Ends{Limit: tt.limit}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				e.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			if got, cut := e.Bytes(); string(got) != tt.want || cut != (tt.want != text) {
				t.Errorf("limit %d, pieces of %d: %q %v", tt.limit, size, got, cut)
			}
		}
	}
}

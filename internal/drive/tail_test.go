package drive

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var all bytes.Buffer
	tl := &Tail{To: &all}
	want := ""
	for i, n := range []int{1, 10, 3000, 3000, 9000, 5, 0, 4096} {
		piece := strings.Repeat(string(rune('a'+i)), n)
		want += piece
		if _, err := io.WriteString(tl, piece); err != nil {
			t.Fatal(err)
		}
		if end := want[max(0, len(want)-tailSize):]; string(tl.Last) != end {
			t.Fatalf("after %d bytes the tail is wrong", len(want))
		}
	}
	if all.String() != want {
		t.Error("the stream was changed")
	}
}

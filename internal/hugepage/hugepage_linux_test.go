//go:build amd64 || arm64

package hugepage

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"
)

// advised reports whether the mapping that holds an address has the flag hg of proc_pid_smaps(5).
func advised(t *testing.T, at uintptr) bool {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		} else if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return strings.Contains(flags+" ", " hg ")
		}
	}
	return false
}

// TestNextObjectsLieInIt has a fresh process fill its heap and counts what lies where it asked
// for a huge page at its start.
func TestNextObjectsLieInIt(t *testing.T) {
	if os.Getpagesize() != 4096 {
		t.Skip("huge pages have another size here")
	}
	if os.Getenv("FILL") == "" {
		for range 4 {
			again := exec.Command(os.Args[0], "-test.run=^TestNextObjectsLieInIt$")
			again.Env = []string{"FILL=1"}
			if out, err := again.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		return
	}
	if asked == 0 || asked%size != 0 {
		t.Fatalf("asked for a huge page at %#x", asked)
	}
	if !advised(t, asked) {
		t.Errorf("the mapping at %#x has no advice", asked)
	}
	kept := make([][]byte, 0, 400)
	in := 0
	for range cap(kept) {
		kept = append(kept, make([]byte, 4096))
		if p := uintptr(unsafe.Pointer(&kept[len(kept)-1][0])); p >= asked && p < asked+size {
			in++
		}
	}
	if in < cap(kept)/4 {
		t.Errorf("%d of %d objects lie in the huge page", in, cap(kept))
	}
}

package sandbox

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		family uint16
		raw    []byte
		want   string
		local  bool
	}{
		{unix.AF_INET, []byte{2, 0, 1, 0xbb, 10, 0, 0, 1}, "10.0.0.1:443", false},
		{unix.AF_INET, []byte{2, 0, 0, 80, 127, 0, 0, 1}, "127.0.0.1:80", true},
		{unix.AF_INET, []byte{2, 0, 0}, "", false},
		{unix.AF_INET6, append([]byte{10, 0, 0, 80, 0, 0, 0, 0}, append(make([]byte, 15), 1)...), "[::1]:80", true},
		{unix.AF_INET6, append([]byte{10, 0, 0, 80, 0, 0, 0, 0}, append([]byte{0xfe, 0x80}, make([]byte, 14)...)...), "[fe80::]:80", false},
	} {
		if got, local := addressOf(tc.family, tc.raw); got != tc.want || local != tc.local {
			t.Errorf("%v: %q %v", tc.raw, got, local)
		}
	}
}

func TestDenialWords(t *testing.T) {
	d := Denial{Op: "write", Path: "/home/u/.cache/x", Guarantee: FilesWrite, Count: 2, Certain: true}
	d.outside(Write)
	if got := d.String(); got != "denied write /home/u/.cache/x: outside the write set; use the workspace, $TMPDIR or policy sandbox.write (2 times) [E4110]" {
		t.Error(got)
	}
	d = Denial{Op: "read", Path: "/home/u/.ssh/id\x1b[2J", Count: 1, Certain: true}
	d.outside(Read)
	if got := d.String(); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

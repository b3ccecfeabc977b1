package owner

import "testing"

func TestPrivateRoot(t *testing.T) {
	const ours = "521 446 0:43 / / ro,nosuid,nodev,relatime - tmpfs atip-exec rw,size=16384k,mode=755\n522 521 8:1 /usr /usr ro,nosuid - ext4 /dev/sda1 rw\n"
	for _, tc := range []struct {
		name, mounts string
		want         bool
	}{
		{"ours", ours, true},
		{"writable", "521 446 0:43 / / rw,nosuid - tmpfs atip-exec rw\n", false},
		{"another tmpfs", "521 446 0:43 / / ro,nosuid - tmpfs tmpfs rw\n", false},
		{"not the root", "521 446 0:43 / /tmp ro,nosuid - tmpfs atip-exec rw\n", false},
		{"covered", ours + "600 521 8:1 / / rw - ext4 /dev/sda1 rw\n", false},
		{"torn", "521 446", false},
		{"empty", "", false},
	} {
		if got := privateRoot([]byte(tc.mounts)); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func TestMapsRoot(t *testing.T) {
	for maps, want := range map[string]bool{
		"         0          0 4294967295\n": true, "      1000       1000          1\n": false,
		"": true, "x\n": true, "1000 1000 1\n0 0 1\n": true,
	} {
		if got := mapsRoot([]byte(maps)); got != want {
			t.Errorf("%q: %v", maps, got)
		}
	}
}

// TestOutside: outside of a run only uid 0 is root, whatever the mount says.
func TestOutside(t *testing.T) {
	if !IsRoot(0, "/nonexistent") || IsRoot(65534, "/proc/sys") || IsRoot(1000, "/") {
		t.Error("another uid counts as root")
	}
}

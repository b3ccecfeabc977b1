package owner

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

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

// TestForeignSandbox: in a user namespace without root, such as one of bubblewrap, what is root's on every
// system is root's, and elsewhere an owner from outside may be anybody.
func TestForeignSandbox(t *testing.T) {
	const variable = "ATIP_TEST_OWNERS"
	if os.Getenv(variable) != "" {
		for path, want := range map[string]bool{"/": true, "/usr": true, "/usr/bin/env": true, "/etc/passwd": true, "/proc": false, "/dev": false, "/usrlocal": false, "/home": false, "/srv/usr": false, "usr": false} {
			var st syscall.Stat_t
			uid := uint32(65534)
			if syscall.Stat(path, &st) == nil {
				uid = st.Uid
			}
			if got := IsRoot(uid, path); got != want {
				t.Errorf("%s of %d: %v", path, uid, got)
			}
		}
		own := uint32(os.Getuid())
		for _, path := range []string{"/usr", "/etc/passwd", "/home"} {
			if IsRoot(own, path) {
				t.Errorf("what the user could make at %s is root's", path)
			}
		}
		return
	}
	uid, gid := os.Getuid(), os.Getgid()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestForeignSandbox$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	if uid == 0 {
		uid, gid = 1000, 1000
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000, NoSetGroups: true}
	}
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestForeignSandbox") {
		t.Errorf("%v\n%s", err, out)
	}
}

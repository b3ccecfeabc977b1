package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// probeVersion changes whenever the probe or what it records does.
const probeVersion = 1

// remembered is the file in which the answer of the probe is kept.
type remembered struct {
	Key  string `json:"key"`
	Host Host   `json:"host"`
}

// Probe finds out by trying what this machine can enforce. The answer is kept for
// this boot, kernel, user, executable and set of namespaces; a cache that is stale,
// damaged or cannot be written changes nothing but the time.
func Probe(c Cache) (Host, error) {
	h := probe(c)
	h.state = c.Dir
	return h, nil
}

func probe(c Cache) Host {
	if c.Dir == "" {
		return try("")
	}
	path, key := filepath.Join(c.Dir, "sandbox.json"), probeKey(c)
	if h, ok := recall(path, key); ok {
		return h
	}
	h := try(c.Dir)
	remember(path, remembered{Key: key, Host: h})
	return h
}

// Forget drops the answer, for a start that failed where it promised otherwise.
func Forget(c Cache) {
	if c.Dir != "" {
		_ = os.Remove(filepath.Join(c.Dir, "sandbox.json"))
	}
}

func recall(path, key string) (Host, bool) {
	data, err := os.ReadFile(path)
	if err != nil || len(data) > 64<<10 {
		return Host{}, false
	}
	var r remembered
	if json.Unmarshal(data, &r) != nil || r.Key != key {
		return Host{}, false
	}
	// Asked anew each time, as it costs a microsecond and a nested run may differ.
	if abi, _, _ := landlockABI(); abi != r.Host.ABI {
		return Host{}, false
	}
	return r.Host, true
}

func remember(path string, r remembered) {
	data, err := json.Marshal(r)
	if err != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sandbox-")
	if err != nil {
		return
	}
	_, werr := f.Write(data)
	if cerr := f.Close(); werr != nil || cerr != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name())
	}
}

// probeKey is everything on which the answer depends.
func probeKey(c Cache) string {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	// Absent where securityfs is not mounted, which is then part of the key.
	lsm, _ := os.ReadFile("/sys/kernel/security/lsm")
	user, _ := os.Readlink("/proc/self/ns/user")
	mount, _ := os.Readlink("/proc/self/ns/mnt")
	var st unix.Stat_t
	_ = unix.Stat(c.Executable, &st)
	return fmt.Sprintf("%d %s %s %d %s %s %s %s %d:%d:%d:%d", probeVersion, strings.TrimSpace(string(boot)),
		unix.ByteSliceToString(uts.Release[:]), os.Getuid(), lsm, user, mount, c.Executable,
		st.Dev, st.Ino, st.Size, st.Mtim.Nano())
}

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rootName is the name of the file system that a private root is.
const rootName = "atip-exec"

// FindOuter says which run this process is inside of, nil for none. It believes a file
// only where nobody inside of a sandbox can put one, on a file system that is read-only, in
// memory, and has the name of ours; and only in a process that is confined for good.
func FindOuter() *Outer {
	fd, err := unix.Open(outerDir+"/outer.json", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	filter, err1 := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	kept, err2 := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err1 != nil || err2 != nil || filter != unix.SECCOMP_MODE_FILTER || kept != 1 {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxPlan || !onPrivateRoot(fd) {
		return nil
	}
	data := make([]byte, st.Size)
	if n, err := unix.Pread(fd, data, 0); err != nil || n != len(data) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var o Outer
	if d.Decode(&o) != nil || o.V != outerVersion || o.Tier != T3 {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return &o
}

// onPrivateRoot reports whether an open file lies on the root of a private root.
func onPrivateRoot(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil || st.Type != unix.TMPFS_MAGIC || st.Flags&unix.ST_RDONLY == 0 {
		return false
	}
	// The name is in the list of mounts only. The descriptor says which one it is.
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	_, rest, ok := strings.Cut("\n"+string(info), "\nmnt_id:")
	id, _, _ := strings.Cut(rest, "\n")
	if err != nil || !ok {
		return false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mounts)) {
		mount, options, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if !ok || strings.Fields(mount)[0] != strings.TrimSpace(id) {
			continue
		}
		f := strings.Fields(options)
		return len(f) > 1 && f[0] == "tmpfs" && f[1] == rootName
	}
	return false
}

// sayOuter leaves word for the runs inside. A directory of the host that was granted there
// stays as it is.
func (r *privateRoot) sayOuter(text string) {
	if text == "" {
		return
	}
	r.step("say what is outside", outerDir, func() error {
		if err := r.directory(outerDir); err != nil {
			if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
				return nil // runs inside then know less, and say so
			}
			return err
		}
		fd, err := unix.Open(r.base+outerDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var here, root unix.Stat_t
		if err := errors.Join(unix.Fstat(fd, &here), unix.Stat(r.base, &root)); err != nil {
			return err
		}
		if here.Dev != root.Dev {
			return nil // it came with a directory of the host
		}
		file, err := unix.Openat(fd, "outer.json", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(file), "outer.json")
		_, err = f.WriteString(text)
		return errors.Join(unwrapPath(err), unwrapPath(f.Close()))
	})
}

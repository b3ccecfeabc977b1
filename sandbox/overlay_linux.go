package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// layers is how many runs of one workspace can have layers at the same time. Two overlays
// must not share one.
const layers = 64

// takeLayers makes the directories of the layers and keeps them for this run: the lock ends
// with the wrapper.
func takeLayers(base string, list []Overlay) (*os.File, []Overlay, error) {
	for n := range layers {
		dir := filepath.Join(base, strconv.Itoa(n))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, &StepError{Step: "create layer", Path: dir, Err: unwrapPath(err)}
		}
		lock, err := os.OpenFile(dir+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, nil, &StepError{Step: "create layer", Path: dir, Err: unwrapPath(err)}
		}
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			lock.Close()
			continue
		}
		out := make([]Overlay, len(list))
		for i, o := range list {
			o.Upper = filepath.Join(dir, o.Name)
			for _, d := range [...]string{o.Upper + "/upper", o.Upper + "/work"} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					lock.Close()
					return nil, nil, &StepError{Step: "create layer", Path: d, Err: unwrapPath(err)}
				}
			}
			out[i] = o
		}
		return lock, out, nil
	}
	return nil, nil, &StepError{Step: "find a free layer", Path: base, Code: errcode.OutOfResources, Err: errors.New("too many runs of this workspace at once")}
}

// stack makes the overlays while the old root is there. They are attached with the rest.
func (r *privateRoot) stack() {
	for _, o := range r.profile.Overlays {
		if o.Upper == "" {
			continue
		}
		r.step("overlay", o.Lower, func() error {
			fd, err := overlayMount(o)
			if err == nil {
				r.binds = append(r.binds, bind{path: o.Lower, fd: fd, dir: true})
			}
			return err
		})
	}
}

func overlayMount(o Overlay) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	// userxattr is what an overlay in a user namespace has to be content with.
	err = unix.FsconfigSetFlag(fs, "userxattr")
	for _, option := range [...][2]string{{"lowerdir", o.Lower}, {"upperdir", o.Upper + "/upper"}, {"workdir", o.Upper + "/work"}} {
		if err != nil {
			break
		}
		// Opened here, so that a link that somebody has put on the way is an error and leads
		// nowhere. It also keeps apart what means something to the file system: colon, comma.
		var fd int
		fd, err = unix.Openat2(unix.AT_FDCWD, option[1], &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err == nil {
			defer unix.Close(fd)
			err = unix.FsconfigSetString(fs, option[0], "/proc/self/fd/"+strconv.Itoa(fd))
		}
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// tryOverlay says whether the stage can make one.
func tryOverlay(dir string, abi int) bool {
	if dir == "" {
		return false
	}
	o := Overlay{Lower: dir + "/in", Name: "try", Upper: dir + "/layer"}
	for _, d := range [...]string{o.Upper, o.Upper + "/upper", o.Upper + "/work"} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return false
		}
	}
	return tryNamespaces(abi, []Overlay{o}) == nil
}

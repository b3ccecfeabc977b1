package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"golang.org/x/sys/unix"
)

// privateRoot builds the root of a T3 run in this process's own mount namespace: what
// is not granted is not there. Each step names itself, so that a failure can be told.
type privateRoot struct {
	profile *Profile
	links   []link
	cwd     string // made, if nothing granted brings it
	console bool   // descriptor 0 is the terminal of the run
	base    string // where the new root is put together
	binds   []bind
	islands []string // read-only directories in writable ones
	err     error
}

// bind is a detached copy of a granted path.
type bind struct {
	path string
	fd   int
	dir  bool
}

// step runs f unless an earlier step failed.
func (r *privateRoot) step(name, path string, f func() error) {
	if r.err != nil {
		return
	}
	err := tripped(name)
	if err == nil {
		err = f()
	}
	var planned *StepError
	switch {
	case errors.As(err, &planned):
		r.err = planned
	case err != nil:
		r.err = &StepError{Step: name, Path: path, Err: err}
	}
}

// makeRoot replaces the root of the calling process.
func makeRoot(plan *stagePlan) error {
	cwd, err := filepath.EvalSymlinks(plan.Dir)
	if err != nil {
		cwd = plan.Dir
	}
	// The caller's may forbid what the root is made of: umask 777.
	defer unix.Umask(unix.Umask(0o022))
	r := &privateRoot{profile: &plan.Profile, links: plan.Links, cwd: cwd, console: plan.Terminal != Detached, base: "/tmp"}
	if unix.Access(r.base, unix.F_OK) != nil {
		r.base = "/usr"
	}
	r.step("make mounts private", "/", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") })
	r.clone()
	r.stack()
	r.island()
	r.step("mount root", r.base, func() error {
		return unix.Mount(rootName, r.base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=16m")
	})
	r.attach()
	r.devices()
	r.proc()
	r.protect()
	r.mask()
	r.hosts()
	r.loginPath()
	r.sayOuter(plan.Outer)
	for _, path := range append(r.islands, "/") {
		r.step("make read-only", path, func() error {
			return unix.MountSetattr(unix.AT_FDCWD, r.base+path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		})
	}
	r.step("enter root", "/", func() error { return unix.Chdir(r.base) })
	// The new root is stacked over the old one at the same place, and the old detached
	// from there (pivot_root(2), "pivot_root(".", ".")").
	r.step("pivot root", "/", func() error { return unix.PivotRoot(".", ".") })
	r.step("detach old root", "/", func() error { return unix.Unmount(".", unix.MNT_DETACH) })
	r.step("enter root", "/", func() error { return unix.Chdir("/") })
	if unix.Access(plan.Dir, unix.F_OK) != nil {
		plan.Dir = cwd // by a link in what is another directory here, such as /tmp
	}
	for _, path := range [...]string{"/", "/proc/sys"} {
		r.step("verify read-only", path, func() error { return readOnly(path) })
	}
	return r.err
}

func readOnly(path string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	if st.Flags&unix.ST_RDONLY == 0 {
		return errors.New("it is writable")
	}
	return nil
}

// clone takes detached copies of all granted paths while the old root is there. They
// must be recursive: mounts inherited from another user namespace are locked together.
// The settings of the machine come in one piece, also for root, whose forty grants below
// them are told apart by Landlock.
func (r *privateRoot) clone() {
	grants := r.profile.grants()
	slices.SortFunc(grants, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	for _, g := range grants {
		if subpath.Within(g.Path, "/proc") || g.Path == "/dev/ptmx" || g.Rights == List && g.Path != settings || r.inherits(g, grants) {
			continue
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
		if !subpath.Within(g.Path, "/dev") {
			attr.Attr_set |= unix.MOUNT_ATTR_NODEV
		}
		if g.Rights&(Write|Remove) == 0 {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		r.take(g.Path, g.Path, g.Dir, attr)
	}
	if r.console {
		// The devices of the run are others; ttyname(3) looks through /dev for its own.
		if name, err := os.Readlink("/proc/self/fd/0"); err == nil && subpath.Within(name, "/dev/pts") {
			r.take(name, "/dev/console", false, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC})
		}
	}
	if w := r.profile.Private; w != "" && r.profile.Tmp == TmpKept {
		for _, path := range [...]string{"/tmp", "/var/tmp"} {
			r.take(w+"/tmp", path, true, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
		}
	}
	if r.profile.Tmp == TmpRun {
		r.fresh("/tmp", "1777", max(r.profile.Limits.Shm, 4096))
		r.fresh("/var/tmp", "1777", max(r.profile.Limits.Shm, 4096))
	}
}

// inherits reports whether g comes along with a directory above it in the same mode.
func (r *privateRoot) inherits(g Grant, grants []Grant) bool {
	const writing = Write | Remove
	nearest := Grant{}
	for _, a := range grants {
		if a.Dir && a.Path != g.Path && subpath.Within(g.Path, a.Path) && (a.Rights != List || a.Path == settings) && len(a.Path) > len(nearest.Path) {
			nearest = a
		}
	}
	return nearest.Path != "" && (nearest.Rights&writing == 0) == (g.Rights&writing == 0)
}

func (r *privateRoot) take(from, to string, dir bool, attr unix.MountAttr) {
	r.step("copy mount", from, func() error {
		at, err := openPlanned("copy mount", from)
		if at < 0 {
			return err
		}
		defer unix.Close(at)
		fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
		if err != nil {
			return err
		}
		r.binds = append(r.binds, bind{path: to, fd: fd, dir: dir})
		return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	})
}

// island makes the read-only directories of the temporary ones.
func (r *privateRoot) island() {
	r.islands = islands(r.profile, r.cwd)
	for _, path := range r.islands {
		r.fresh(path, "755", 1<<20)
	}
}

// fresh puts an empty file system in memory on path.
func (r *privateRoot) fresh(path, mode string, size uint64) {
	r.step("make directory of its own", path, func() error {
		fd, err := emptyMount(mode, size)
		if err == nil {
			r.binds = append(r.binds, bind{path: path, fd: fd, dir: true})
		}
		return err
	})
}

// islands keep what lies beside a granted path below /tmp from being a part of the private
// /tmp, where a write would seem to succeed: the directory that leads to the path is one of
// its own, read-only like all that is not granted. They also keep the points of mounts out
// of the private directory, which outlives the run.
func islands(p *Profile, cwd string) []string {
	if p.Private == "" || p.Tmp == TmpHost {
		return nil
	}
	grants := p.grants()
	paths := make([]string, 0, len(grants)+len(p.Overlays)+2)
	for _, g := range grants {
		paths = append(paths, g.Path)
	}
	for _, o := range p.Overlays {
		paths = append(paths, o.Lower)
	}
	var out []string
	for _, path := range append(paths, p.Home, cwd) {
		top := beneathTemporary(path)
		if top != "" && (top != path || path == p.Home) && !slices.Contains(out, top) && !slices.Contains(paths, top) {
			out = append(out, top)
		}
	}
	return out
}

// beneathTemporary is the directory below /tmp or /var/tmp that leads to path, "" if it lies
// elsewhere.
func beneathTemporary(path string) string {
	for _, dir := range [...]string{"/tmp/", "/var/tmp/"} {
		if rest, ok := strings.CutPrefix(path, dir); ok {
			first, _, _ := strings.Cut(rest, "/")
			return dir + first
		}
	}
	return ""
}

// emptyMount is a file system in memory that is not mounted yet.
func emptyMount(mode string, size uint64) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range [...][2]string{{"mode", mode}, {"size", strconv.FormatUint(size, 10)}} {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// attach mounts the copies, shortest path first, and makes the links of the old root.
func (r *privateRoot) attach() {
	slices.SortStableFunc(r.binds, func(a, b bind) int { return strings.Compare(a.path, b.path) })
	for _, b := range r.binds {
		r.step("mount", b.path, func() error {
			if err := r.point(b.path, b.dir); err != nil {
				return err
			}
			return unix.MoveMount(b.fd, "", unix.AT_FDCWD, r.base+b.path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		})
		unix.Close(b.fd)
	}
	for _, l := range r.links {
		r.step("link", l.Name, func() error {
			at, err := r.within(filepath.Dir(l.Name))
			if at < 0 {
				return err
			}
			defer unix.Close(at)
			if err := unix.Symlinkat(l.Target, at, filepath.Base(l.Name)); err != nil && !errors.Is(err, unix.EEXIST) {
				return err
			}
			return nil
		})
	}
	for _, dir := range [...]string{"/proc", "/run", "/tmp", "/var/tmp", "/dev", "/root", "/home"} {
		r.step("make directory", dir, func() error { return r.directory(dir) })
	}
	// A working directory that is not granted is there and empty.
	for _, g := range r.profile.Read {
		if g.Rights == List {
			r.step("make directory", g.Path, func() error { return r.directory(g.Path) })
			if g.Dir {
				r.names(g.Path)
			}
		}
	}
	if r.cwd != "" && unix.Access(r.base+r.cwd, unix.F_OK) != nil {
		r.step("make directory", r.cwd, func() error { return r.directory(r.cwd) })
	}
}

// maxNames bounds the entries that stand for those of one directory.
const maxNames = 1024

// names puts what cannot be opened under the names in a directory of which only those are
// granted: to mount it would bring all that lies in it, with the sockets. A name that begins
// with a dot is left out, as a program that looks for its settings has to find none.
func (r *privateRoot) names(dir string) {
	nearest := bind{}
	for _, b := range r.binds {
		if b.dir && subpath.Within(dir, b.path) && len(b.path) >= len(nearest.path) {
			nearest = b
		}
	}
	if r.err != nil || subpath.Within(dir, "/dev") || nearest.path != "" && !slices.Contains(r.islands, nearest.path) {
		return // what was mounted has them, and the devices of a run are its own
	}
	f, err := regular.OpenDir(dir)
	if err != nil {
		return
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxNames)
	for _, e := range entries {
		name := filepath.Join(r.base, dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			_ = unix.Mkdir(name, 0)
		case e.Type()&os.ModeSymlink != 0:
			if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
				_ = unix.Symlink(target, name)
			}
		default:
			_ = unix.Mknod(name, unix.S_IFREG, 0)
		}
	}
}

// point makes what a mount is put on, unless a mount above has brought it.
func (r *privateRoot) point(path string, dir bool) error {
	if dir {
		return r.directory(path)
	}
	for try := 0; ; try++ {
		// Regular file or not, what is there will do. One is made, never written.
		err := unix.Mknod(r.base+path, unix.S_IFREG|0o600, 0)
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		if !errors.Is(err, unix.ENOENT) || try > 0 {
			return err
		}
		if err := r.directory(filepath.Dir(path)); err != nil {
			return err
		}
	}
}

// directory makes one in the new root, and those above it where they are missing.
func (r *privateRoot) directory(path string) error {
	err := unix.Mkdir(r.base+path, 0o755)
	if errors.Is(err, unix.ENOENT) && path != "/" {
		if err := r.directory(filepath.Dir(path)); err != nil {
			return err
		}
		err = unix.Mkdir(r.base+path, 0o755)
	}
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// within opens a directory of the new root itself and makes what is missing of it; at is -1 where something
// is mounted on the way, which has its own links. No link on the way is followed.
func (r *privateRoot) within(path string) (at int, err error) {
	if at, err = unix.Open(r.base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	for _, name := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' }) {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS}
		next, err := unix.Openat2(at, name, &how)
		if errors.Is(err, unix.ENOENT) {
			if err = unix.Mkdirat(at, name, 0o755); err == nil {
				next, err = unix.Openat2(at, name, &how)
			}
		}
		unix.Close(at)
		if err != nil {
			if errors.Is(err, unix.EXDEV) {
				err = nil
			}
			return -1, err
		}
		at = next
	}
	return at, nil
}

// unwrapPath leaves out the path of an error, which the step names already.
func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (r *privateRoot) devices() {
	dev := r.base + "/dev"
	r.step("make directory", "/dev/pts", func() error { return r.directory("/dev/pts") })
	r.step("make directory", "/dev/shm", func() error { return r.directory("/dev/shm") })
	r.step("mount", "/dev/pts", func() error {
		return unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	})
	r.step("mount", "/dev/shm", func() error {
		return unix.Mount("tmpfs", dev+"/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size="+strconv.FormatUint(max(r.profile.Limits.Shm, 4096), 10))
	})
	for _, l := range [...]link{{"/fd", "/proc/self/fd"}, {"/stdin", "/proc/self/fd/0"}, {"/stdout", "/proc/self/fd/1"},
		{"/stderr", "/proc/self/fd/2"}, {"/ptmx", "pts/ptmx"}} {
		r.step("link", "/dev"+l.Name, func() error { return unix.Symlink(l.Target, dev+l.Name) })
	}
}

// proc mounts a fresh proc. What it offers for writing to the whole machine is bound
// read-only, root or not; what shows kernel memory or keys is covered.
func (r *privateRoot) proc() {
	proc := r.base + "/proc"
	r.step("mount", "/proc", func() error {
		return unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	})
	for _, name := range [...]string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"} {
		r.over(proc+"/"+name, proc+"/"+name, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	}
	for _, name := range [...]string{"kcore", "keys", "key-users", "kmsg", "timer_list", "sched_debug", "latency_stats",
		"kpagecount", "kpageflags", "kpagecgroup"} {
		r.over(r.base+"/dev/null", proc+"/"+name, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID)
	}
}

// over binds from onto to, if there is such a name here.
func (r *privateRoot) over(from, to string, attr uint64) {
	if unix.Access(to, unix.F_OK) != nil || unix.Access(from, unix.F_OK) != nil {
		return
	}
	r.step("cover", strings.TrimPrefix(to, r.base), func() error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
			return err
		}
		return unix.MoveMount(fd, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
	})
}

// protect pins the protected names that are there: each is bound read-only, and each
// directory above it onto itself, because only a mount point cannot be renamed away.
// What holds a path that this run may change is left to the check.
func (r *privateRoot) protect() {
	pins := newPins(r.profile)
	for _, name := range append(slices.Clip(r.profile.Protect), r.profile.Pins...) {
		path := strings.TrimSuffix(name, "/")
		if fi, err := os.Lstat(r.base + path); err != nil || !pins.can(path, fi) {
			continue
		}
		for _, at := range pins.mounts(path) {
			attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
			if at == path {
				attr |= unix.MOUNT_ATTR_RDONLY
			}
			r.over(r.base+at, r.base+at, attr)
		}
	}
}

// mask covers secrets in granted directories by something that cannot be opened, so that
// no tool believes it has read or saved one.
func (r *privateRoot) mask() {
	paths := r.profile.Mask
	if slices.ContainsFunc(r.profile.Read, func(g Grant) bool { return g.Path == settings && g.Rights == List }) {
		paths = append(slices.Clip(paths), r.profile.Settings...)
	}
	if len(paths) == 0 {
		return
	}
	const file, directory = "/.masked", "/.masked.d"
	r.step("make mask", file, func() error {
		return errors.Join(unix.Mknod(r.base+file, unix.S_IFREG, 0), unix.Mkdir(r.base+directory, 0))
	})
	for _, path := range paths {
		cover := file
		var st unix.Stat_t
		if unix.Lstat(r.base+path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			cover = directory
		}
		r.over(r.base+cover, r.base+path, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	}
}

// hosts puts the run's own list of hosts over the machine's.
func (r *privateRoot) hosts() {
	if len(r.profile.Net.Direct) == 0 {
		return
	}
	r.step("write hosts", "/etc/hosts", func() error {
		machine, err := os.ReadFile(r.base + "/etc/hosts")
		if err != nil {
			return nil // none here, and the names lead nowhere
		}
		if err := os.WriteFile(r.base+"/.hosts", []byte(r.profile.Net.hostsFile(string(machine))), 0o444); err != nil {
			return unwrapPath(err)
		}
		return unwrapPath(os.Chmod(r.base+"/.hosts", 0o444))
	})
	r.over(r.base+"/.hosts", r.base+"/etc/hosts", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

// maxProfile bounds the system's start-up file of login shells.
const maxProfile = 64 << 10

// loginPath lets login shells keep PATH, wherever they are started: the system's start-up file sets
// that of a bare system, and the user's, which add to it, are not there.
func (r *privateRoot) loginPath() {
	const name, copied = "/etc/profile", "/.profile"
	text, err := os.ReadFile(r.base + name)
	if err != nil || len(text) > maxProfile {
		return
	}
	r.step("write profile", name, func() error {
		text := "atip_exec_path=$PATH\n" + string(text) + "\nPATH=$atip_exec_path\nexport PATH\nunset atip_exec_path\n"
		if err := os.WriteFile(r.base+copied, []byte(text), 0o444); err != nil {
			return unwrapPath(err)
		}
		return unwrapPath(os.Chmod(r.base+copied, 0o444))
	})
	r.over(r.base+copied, r.base+name, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

// insideGrants is the write set with what a private root adds: its own directories.
func insideGrants(p *Profile) []Grant {
	const all = Read | Write | Remove
	// The host's /dev/ptmx would make a terminal of the host.
	out := slices.DeleteFunc(slices.Clone(p.Write), func(g Grant) bool { return g.Path == "/dev/ptmx" })
	// All that is in the root is granted, so its names may be listed.
	out = append(out, []Grant{{"/", true, List, "private root"}, {outerDir, true, Read, "private root"}, {"/dev/pts", true, Read | Write | Ioctl, "private root"}, {"/dev/shm", true, all, "private root"}}...)
	if unix.Getuid() != 0 && !p.Untraced {
		// This proc shows the run alone, and what it writes in its own processes (a debugger
		// their memory) is its own business, unless one of them is judged. Root could write what is
		// the machine's.
		out = append(out, Grant{"/proc", true, Read | Write, "private root"})
	}
	if p.Private != "" {
		exec := Exec
		if p.SubprocessNo || p.Ceiling == ExecClosed {
			exec = 0
		}
		for _, o := range p.Overlays {
			if o.Upper != "" {
				out = append(out, Grant{o.Lower, true, all | exec, "cache"})
			}
		}
		out = append(out, Grant{"/tmp", true, all | exec, "private root"}, Grant{"/var/tmp", true, all | exec, "private root"})
	}
	return out
}

// rootLinks are the symbolic links of the root directory, such as /bin to usr/bin, and those by which a path
// leads somewhere: a project or a home directory on another disk, say.
func rootLinks(paths []string) []link {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil
	}
	var out []link
	targets := map[string]string{}
	follow := func(name string) string {
		target, known := targets[name]
		if !known {
			if target, _ = os.Readlink(name); target != "" {
				out = append(out, link{Name: name, Target: target})
			}
			targets[name] = target
		}
		return target
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			follow("/" + e.Name())
		}
	}
	for _, path := range paths {
		at, rest := "/", path
		for links := 0; rest != "" && links <= maxLinks; {
			var name string
			name, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
			next := filepath.Join(at, name)
			if target := follow(next); target != "" {
				if links++; filepath.IsAbs(target) {
					at = "/"
				}
				rest = target + "/" + rest
				continue
			}
			at = next
		}
	}
	return out
}

// maxLinks bounds the links on one path, as the kernel does.
const maxLinks = 40

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

// hold keeps a lock until the run has ended.
func (w *worker) hold(lock *os.File) {
	if lock != nil {
		w.held = append(w.held, lock)
	}
}

func release(locks []*os.File) {
	for _, f := range locks {
		f.Close()
	}
}

// privateTries bounds how often a directory is made anew under somebody who clears it away.
const privateTries = 100

// linkCaches makes the links of a profile, which lie in a directory that runs can write. So
// what one of them has put in their way goes, and leads nowhere. Where a link without a target
// is, nothing is left.
func linkCaches(private string, links []link) error {
	if len(links) == 0 {
		return nil
	}
	root, err := os.OpenRoot(private)
	if err != nil {
		return &StepError{Step: "link cache", Path: private, Err: unwrapPath(err)}
	}
	defer root.Close()
	for _, l := range links {
		if now, err := root.Readlink(l.Name); err == nil && now == l.Target {
			continue
		}
		dir := filepath.Dir(l.Name)
		if fi, err := root.Lstat(dir); err == nil && !fi.IsDir() {
			_ = root.Remove(dir)
		}
		err := root.MkdirAll(dir, 0o700)
		if err == nil {
			err = root.RemoveAll(l.Name)
		}
		if err == nil && l.Target != "" {
			err = root.Symlink(l.Target, l.Name)
		}
		if err != nil && !errors.Is(err, os.ErrExist) { // made by a run at the same time
			return &StepError{Step: "link cache", Path: private + "/" + l.Name, Err: unwrapPath(err)}
		}
	}
	return nil
}

// HoldPrivate makes the directory for temporary files and caches of a workspace and locks
// it against Clean until the returned file is closed; that is nil where dir is "" and where
// Clean can lock it no more than we can. Its time says when it was last used.
func HoldPrivate(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	for try := 0; ; try++ {
		if err := makePrivate(dir); err != nil {
			return nil, err
		}
		lock, err := lockPrivate(dir, unix.LOCK_SH)
		switch {
		case err == nil:
			// From here on nobody clears it away.
			if err := makeTemporary(dir); err != nil {
				lock.Close()
				return nil, err
			}
			return lock, nil
		case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.ENOENT):
			if err := awaitClean(filepath.Dir(dir)); err != nil {
				return nil, err
			}
			if try < privateTries {
				time.Sleep(2 * time.Millisecond)
				continue
			}
			// A command of an earlier run can hold on to it: it loses its protection from
			// being cleared, which is no reason not to run.
			return nil, makeTemporary(dir)
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil, makeTemporary(dir) // Clean cannot lock it either, and leaves it
		}
		return nil, &StepError{Step: "lock private directory", Path: dir, Err: err}
	}
}

// makePrivate creates the directory. Nobody else may own it: it is writable for the run
// and reused by the next one.
func makePrivate(dir string) error {
	if unix.UtimesNanoAt(unix.AT_FDCWD, dir, nil, unix.AT_SYMLINK_NOFOLLOW) != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return &StepError{Step: "create private directory", Path: dir, Err: errors.Unwrap(err)}
		}
	}
	return nil
}

// makeTemporary creates the directory for temporary files in it. What a run has put in its
// place goes, and is not followed.
func makeTemporary(dir string) error {
	tmp := filepath.Join(dir, "tmp")
	var st unix.Stat_t
	err := unix.Lstat(tmp, &st)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil
	}
	if err == nil {
		_ = unix.Unlink(tmp)
	}
	if err := unix.Mkdir(tmp, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return &StepError{Step: "create private directory", Path: tmp, Err: err}
	}
	return nil
}

// lockPrivate locks the directory that stands at dir, or says that it is another by now.
func lockPrivate(dir string, how int) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var opened, named unix.Stat_t
	err = unix.Flock(fd, how|unix.LOCK_NB)
	if err == nil {
		err = unix.Fstat(fd, &opened)
	}
	if err == nil {
		err = unix.Lstat(dir, &named)
	}
	if err == nil && (opened.Ino != named.Ino || opened.Dev != named.Dev) {
		err = unix.ENOENT
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

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

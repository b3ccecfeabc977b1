package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/sandbox/seccomp"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// newestABI is the last Landlock version whose rights this package knows; a newer
// kernel is driven as this one.
const newestABI = 10

// handledFS is every file system right of an ABI. What is handled and not granted is
// refused, so a right left out here would be a hole.
func handledFS(abi int) uint64 {
	last := [...]uint64{0, ll.AccessFSMakeSym, ll.AccessFSRefer, ll.AccessFSTruncate, ll.AccessFSTruncate,
		ll.AccessFSIoctlDev, ll.AccessFSIoctlDev, ll.AccessFSIoctlDev, ll.AccessFSIoctlDev, ll.AccessFSResolveUnix,
		ll.AccessFSResolveUnix}
	if abi <= 0 {
		return 0
	}
	return last[min(abi, newestABI)]<<1 - 1
}

// handledNet refuses TCP and, where the kernel can, UDP. The system call filter does
// not rely on it: MPTCP and Fast Open pass these hooks.
func handledNet(abi int) uint64 {
	switch {
	case abi >= 10:
		return ll.AccessNetBindTCP | ll.AccessNetConnectTCP | ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	case abi >= 4:
		return ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	return 0
}

// landlockRights maps rights to the kernel's, masked by what the ABI knows and, for a
// file, by what a file can have: a directory right on a file is EINVAL.
func landlockRights(r Rights, dir bool, abi int) uint64 {
	var out uint64
	if r&Read != 0 {
		out |= ll.AccessFSReadFile | ll.AccessFSReadDir
	}
	if r&List != 0 {
		out |= ll.AccessFSReadDir
	}
	if r&Exec != 0 {
		out |= ll.AccessFSExecute
	}
	if r&Write != 0 {
		out |= ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
			ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	}
	if r&Remove != 0 {
		out |= ll.AccessFSRemoveFile | ll.AccessFSRemoveDir
	}
	if r&Ioctl != 0 {
		out |= ll.AccessFSIoctlDev
	}
	if r&Connect != 0 {
		out |= ll.AccessFSResolveUnix
	}
	if !dir {
		out &= ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
	}
	return out & handledFS(abi)
}

// landlockABI asks the kernel. ENOSYS means not built in, EOPNOTSUPP not enabled at boot.
func landlockABI() (abi, errata int, why string) {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, 0, "this kernel has no Landlock (5.13 or newer is needed)"
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, 0, "Landlock is not enabled: add it to the kernel parameter lsm="
	case err != nil:
		return 0, 0, "Landlock is not usable: " + err.Error()
	}
	if e, err := ll.LandlockGetErrata(); err == nil {
		errata = e
	}
	return abi, errata, ""
}

// createRuleset makes an empty ruleset: it refuses all that this ABI can refuse. The
// kernel opens every ruleset with CLOEXEC.
func createRuleset(mode NetMode, abi int) (int, error) {
	attr := ll.RulesetAttr{HandledAccessFS: handledFS(abi)}
	if mode != NetFull {
		attr.HandledAccessNet = handledNet(abi)
	}
	if abi >= scopeABI {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	rs, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return -1, &StepError{Step: "landlock_create_ruleset", Err: err}
	}
	return rs, nil
}

// buildRuleset opens all that p grants and returns the ruleset's descriptor. extra are
// files granted by descriptor: the terminal of the run.
func buildRuleset(p *Profile, abi int, extra []*os.File) (int, error) {
	rs, err := createRuleset(p.Net.Mode, abi)
	if err != nil {
		return -1, err
	}
	return fillRuleset(rs, p.grants(), abi, extra)
}

// fillRuleset adds rules; if one fails, it closes the ruleset.
func fillRuleset(rs int, grants []Grant, abi int, extra []*os.File) (int, error) {
	for _, g := range grants {
		if err := addRule(rs, g, abi); err != nil {
			unix.Close(rs)
			return -1, err
		}
	}
	for _, f := range extra {
		rule := ll.PathBeneathAttr{AllowedAccess: landlockRights(Read|Write|Ioctl, false, abi), ParentFd: int(f.Fd())}
		// A terminal that is a pipe or socket lies on no file system and needs no rule.
		if err := ll.LandlockAddPathBeneathRule(rs, &rule, 0); err != nil && !errors.Is(err, unix.EBADFD) {
			unix.Close(rs)
			return -1, &StepError{Step: "landlock_add_rule", Path: f.Name(), Err: err}
		}
	}
	return rs, nil
}

// addRule opens the path as the plan named it. A link on the way means that somebody
// changed the path since, and the rule would open something else.
func addRule(rs int, g Grant, abi int) error {
	rule := ll.PathBeneathAttr{AllowedAccess: landlockRights(g.Rights, g.Dir, abi)}
	if rule.AllowedAccess == 0 {
		return nil // ENOMSG; a device of this kind needs a right that the ABI lacks
	}
	fd, err := openPlanned("open rule", g.Path)
	if fd < 0 {
		return err
	}
	defer unix.Close(fd)
	rule.ParentFd = fd
	err = ll.LandlockAddPathBeneathRule(rs, &rule, 0)
	if errors.Is(err, unix.EINVAL) {
		// A directory when it was planned, a file now.
		return &StepError{Step: "landlock_add_rule", Path: g.Path, Code: errcode.PathChanged, Err: err}
	}
	if err != nil {
		return &StepError{Step: "landlock_add_rule", Path: g.Path, Err: err}
	}
	return nil
}

// openPlanned opens a path of the plan, in which no link is followed: the plan has resolved
// them all. One that is gone since the plan is -1, without an error: the run has less, never
// more.
func openPlanned(step, path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ENOSYS) {
		// openat2 is filtered out by some container runtimes; the last component is
		// still not followed.
		fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EACCES):
		return -1, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return -1, &StepError{Step: step, Path: path, Code: errcode.PathChanged, Err: err}
	case err != nil:
		return -1, &StepError{Step: step, Path: path, Err: err}
	}
	return fd, nil
}

// restrictSelf confines the calling thread, never the others.
func restrictSelf(rs int, logged bool) error {
	var flags uint32
	if logged {
		// Otherwise nothing is recorded once the program has been executed.
		flags = ll.FlagRestrictSelfLogNewExecOn
	}
	err := ll.LandlockRestrictSelf(rs, flags)
	if errors.Is(err, unix.E2BIG) {
		return &StepError{Step: "landlock_restrict_self", Code: errcode.TooDeep, Err: errors.New("nested too deep: the kernel stacks at most 16 layers")}
	}
	if err != nil {
		return &StepError{Step: "landlock_restrict_self", Err: err}
	}
	return nil
}

// HostFiles is the file system of this machine, as it is while one profile is derived:
// what was looked up once is not looked up again.
func HostFiles() Files { return &hostFiles{known: make(map[string]found, 64)} }

type hostFiles struct{ known map[string]found }

// found is the answer for a path whose parent is canonical.
type found struct {
	path string
	dir  bool
	err  error
}

// Resolve costs one lstat for each name that was not seen yet: the parent is resolved
// first, and a name that is no link in a canonical directory is canonical.
func (h *hostFiles) Resolve(path string) (string, bool, error) {
	if !filepath.IsAbs(path) {
		f := h.open(path)
		return f.path, f.dir, f.err
	}
	f := h.resolve(filepath.Clean(path))
	return f.path, f.dir, f.err
}

func (h *hostFiles) resolve(path string) found {
	if path == "/" {
		return found{path: "/", dir: true}
	}
	if f, ok := h.known[path]; ok {
		return f
	}
	f := h.lookup(path)
	h.known[path] = f
	return f
}

func (h *hostFiles) lookup(path string) found {
	parent := h.resolve(filepath.Dir(path))
	switch {
	case parent.err != nil:
		return parent
	case !parent.dir:
		return found{err: unix.ENOTDIR}
	}
	name := path
	if dir := filepath.Dir(path); dir != parent.path {
		name = filepath.Join(parent.path, filepath.Base(path))
	}
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return found{err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return h.open(name)
	}
	return found{path: name, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

// open follows links by opening the path and asking the kernel for its name.
func (h *hostFiles) open(path string) found {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return found{err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return found{err: err}
	}
	name, err := descriptorName(fd)
	if err != nil {
		return found{err: err}
	}
	if st.Nlink == 0 || name == "" || name[0] != '/' {
		return found{err: errors.New("it has no name any more")}
	}
	return found{path: name, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

// Directory is what a path leads to: its name without links and its identity, both of the same
// directory even if somebody changes the path meanwhile.
func Directory(path string) (canonical string, id DirID, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", DirID{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", DirID{}, err
	}
	if canonical, err = descriptorName(fd); err == nil && (st.Nlink == 0 || !filepath.IsAbs(canonical)) {
		err = errors.New("it has no name any more")
	}
	return canonical, DirID{st.Dev, st.Ino}, err
}

// check refuses an open directory that is another than the one that was judged.
func (id DirID) check(fd int, path string) error {
	if id == (DirID{}) {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &StepError{Step: "change directory", Path: path, Err: err}
	}
	if id != (DirID{st.Dev, st.Ino}) {
		return &StepError{Step: "change directory", Path: path, Code: errcode.PathChanged, Err: errors.New("it is another directory now than the one that was judged")}
	}
	return nil
}

// Loader implements Files.
func (h *hostFiles) Loader(path string) []string { return loaderOf(path) }

// descriptorName is what /proc calls an open descriptor.
func descriptorName(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// filter chooses the system call filter of the setup.
func (s *Setup) filter() seccomp.Choice {
	p := &s.profile
	if s.tier == T3 {
		// Sockets are bounded by the network namespace and the private root, metadata by
		// read-only mounts, and other processes are not there.
		return seccomp.Choice{Inet: p.Net.Mode != NetNone, Unix: true, Metadata: true, Truncate: true, Fork: !p.SubprocessNo, Private: true}
	}
	return seccomp.Choice{
		Inet:     p.Net.Mode == NetFull,
		Unix:     len(p.Unix) > 0 && s.host.ABI >= resolveUnixABI,
		Metadata: p.HostWrite,
		Truncate: s.host.ABI >= truncateABI,
		Fork:     !p.SubprocessNo,
	}
}

// program names the filter without installing it. Ids and ticket are placeholders.
func (s *Setup) program() Program {
	_, name, sha, err := seccomp.Load(s.filter(), 1, 1, 1)
	if err != nil {
		return Program{Name: name}
	}
	return Program{Name: name, SHA256: sha}
}

package seccomp

// Flags and requests as the kernel has them on amd64 and arm64. They are spelled
// out here because the table must compile on every system.
const (
	cloneThread     = 0x00010000
	cloneNamespaces = 0x7e020000 // CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
	cloneNewTime    = 0x00000080 // valid for unshare only: in clone it is part of the exit signal
	msgFastOpen     = 0x20000000
	oTruncMode      = 0x00000203 // O_TRUNC | O_ACCMODE
	oTruncRead      = 0x00000200
	oTruncNoAccess  = 0x00000203
	ptraceAttach    = 16
	ptraceSeize     = 0x4206
	sIFMT           = 0xf000
	sIFCHR          = 0x2000
	sIFBLK          = 0x6000
	sockTypeMask    = 0xf
	sockStream      = 1
	sockRaw         = 3
	sockPacket      = 10
	afUnix          = 1
	afInet          = 2
	afInet6         = 10
	afNetlink       = 16
)

// table is data only, so that it costs no package initialisation.
var table = []Rule{
	// Namespaces and mounts: the ways to build a world in which the other layers
	// mean something else. The flags of clone3 lie in memory where a filter cannot
	// look; ENOSYS makes Go and glibc fall back to clone.
	{Group: "A", Answer: answerEPERM, Calls: []string{
		"mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig",
		"fsmount", "fspick", "mount_setattr", "setns"}},
	{Group: "A", Answer: answerEPERM, Calls: []string{"open_tree_attr"}, Number: 467},
	{Group: "A", Answer: answerEPERM, Calls: []string{"unshare"},
		Tests: []ArgTest{{Arg: 0, Op: OpAny, Mask: cloneNamespaces | cloneNewTime}}},
	{Group: "A", Answer: answerEPERM, Calls: []string{"clone"},
		Tests: []ArgTest{{Arg: 0, Op: OpAny, Mask: cloneNamespaces}}},
	{Group: "A", Answer: answerENOSYS, Calls: []string{"clone3"}},

	// Administration of the machine.
	{Group: "B", Answer: answerEPERM, Calls: []string{
		"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
		"swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime",
		"clock_adjtime", "adjtimex", "sethostname", "setdomainname", "iopl", "ioperm", "syslog",
		"vhangup", "fanotify_init", "fanotify_mark", "name_to_handle_at", "modify_ldt",
		"lookup_dcookie", "nfsservctl", "uselib", "ustat", "sysfs", "_sysctl"}},

	// Attack surface. ENOSYS where programs have another way.
	{Group: "C", Answer: answerENOSYS, Calls: []string{
		"io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key"}},
	{Group: "C", Answer: answerEPERM, Calls: []string{
		"bpf", "perf_event_open", "userfaultfd", "memfd_secret", "open_by_handle_at", "pidfd_getfd",
		"process_madvise", "kcmp", "migrate_pages", "move_pages"}},
	{Group: "C", Answer: answerEPERM, Calls: []string{"personality"},
		Tests: []ArgTest{{Arg: 0, Op: OpOther, Values: [3]uint32{0, 8, 0xffffffff}}}},

	// Devices.
	{Group: "D", Answer: answerEPERM, Calls: []string{"mknod"},
		Tests: []ArgTest{{Arg: 1, Op: OpMasked, Mask: sIFMT, Value: sIFCHR}}},
	{Group: "D", Answer: answerEPERM, Calls: []string{"mknod"},
		Tests: []ArgTest{{Arg: 1, Op: OpMasked, Mask: sIFMT, Value: sIFBLK}}},
	{Group: "D", Answer: answerEPERM, Calls: []string{"mknodat"},
		Tests: []ArgTest{{Arg: 2, Op: OpMasked, Mask: sIFMT, Value: sIFCHR}}},
	{Group: "D", Answer: answerEPERM, Calls: []string{"mknodat"},
		Tests: []ArgTest{{Arg: 2, Op: OpMasked, Mask: sIFMT, Value: sIFBLK}}},

	// Settings of other processes. With PRIO_USER (2) and IOPRIO_WHO_USER (3) a
	// target of 0 is everything the user runs.
	{Group: "E", Answer: answerEPERM, Calls: []string{"prlimit64"},
		Tests: []ArgTest{{Arg: 0, Op: OpNot}, {Arg: 2, Op: OpNot}}},
	{Group: "E-others", Answer: answerEPERM, Calls: []string{"setpriority", "ioprio_set"},
		Tests: []ArgTest{{Arg: 1, Op: OpNot}}},
	{Group: "E-others", Answer: answerEPERM, Calls: []string{"setpriority"},
		Tests: []ArgTest{{Arg: 0, Op: OpEqual, Value: 2}}},
	{Group: "E-others", Answer: answerEPERM, Calls: []string{"ioprio_set"},
		Tests: []ArgTest{{Arg: 0, Op: OpEqual, Value: 3}}},
	{Group: "E-others", Answer: answerEPERM, Calls: []string{
		"sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"},
		Tests: []ArgTest{{Arg: 0, Op: OpNot}}},

	// Terminal: TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS. CVE-2019-10063 is why the
	// comparison takes 32 bits: the kernel ignores what is above, a filter does not.
	{Group: "F", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x5412}}},
	{Group: "F", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x541c}}},
	{Group: "F", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x5423}}},
	{Group: "F", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x541d}}},

	// Sockets. Exactly one of the four family groups is in a complete program.
	{Group: "G-none", Answer: answerEAFNOSUPPORT, Calls: []string{"socket"}},
	{Group: "G-unix", Answer: answerEAFNOSUPPORT, Calls: []string{"socket"},
		Tests: []ArgTest{{Arg: 0, Op: OpOutside, Mask: 1 << afUnix}}},
	{Group: "G-inet", Answer: answerEAFNOSUPPORT, Calls: []string{"socket"},
		Tests: []ArgTest{{Arg: 0, Op: OpOutside, Mask: 1<<afInet | 1<<afInet6 | 1<<afNetlink}}},
	{Group: "G-inet-unix", Answer: answerEAFNOSUPPORT, Calls: []string{"socket"},
		Tests: []ArgTest{{Arg: 0, Op: OpOutside, Mask: 1<<afUnix | 1<<afInet | 1<<afInet6 | 1<<afNetlink}}},
	// MPTCP and SCTP pass Landlock's TCP rights.
	{Group: "G-type", Answer: answerEPROTONOSUPPORT, Calls: []string{"socket"}, Tests: []ArgTest{
		{Arg: 1, Op: OpMasked, Mask: sockTypeMask, Value: sockStream},
		{Arg: 2, Op: OpOutside, Mask: 1<<0 | 1<<6}}},
	{Group: "G-inet-type", Answer: answerEPROTONOSUPPORT, Calls: []string{"socket"}, Tests: []ArgTest{
		{Arg: 0, Op: OpEqual, Value: afNetlink},
		{Arg: 2, Op: OpNot}}},
	// Netlink itself is opened as SOCK_RAW by libc and Go, so raw is bound to a family.
	{Group: "G-inet-type", Answer: answerEPERM, Calls: []string{"socket"}, Tests: []ArgTest{
		{Arg: 0, Op: OpEqual, Value: afInet},
		{Arg: 1, Op: OpMasked, Mask: sockTypeMask, Value: sockRaw}}},
	{Group: "G-inet-type", Answer: answerEPERM, Calls: []string{"socket"}, Tests: []ArgTest{
		{Arg: 0, Op: OpEqual, Value: afInet},
		{Arg: 1, Op: OpMasked, Mask: sockTypeMask, Value: sockPacket}}},
	{Group: "G-inet-type", Answer: answerEPERM, Calls: []string{"socket"}, Tests: []ArgTest{
		{Arg: 0, Op: OpEqual, Value: afInet6},
		{Arg: 1, Op: OpMasked, Mask: sockTypeMask, Value: sockRaw}}},
	{Group: "G-inet-type", Answer: answerEPERM, Calls: []string{"socket"}, Tests: []ArgTest{
		{Arg: 0, Op: OpEqual, Value: afInet6},
		{Arg: 1, Op: OpMasked, Mask: sockTypeMask, Value: sockPacket}}},
	{Group: "G", Answer: answerEOPNOTSUPP, Calls: []string{"sendto", "sendmmsg"},
		Tests: []ArgTest{{Arg: 3, Op: OpAny, Mask: msgFastOpen}}},
	{Group: "G", Answer: answerEOPNOTSUPP, Calls: []string{"sendmsg"},
		Tests: []ArgTest{{Arg: 2, Op: OpAny, Mask: msgFastOpen}}},
	{Group: "G", Answer: answerEOPNOTSUPP, Calls: []string{"socketpair"},
		Tests: []ArgTest{{Arg: 0, Op: OpNot, Value: afUnix}}},

	// SysV and POSIX IPC, which no file system right bounds.
	{Group: "H", Answer: answerENOSYS, Calls: []string{
		"shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd",
		"msgrcv", "msgctl", "mq_open", "mq_unlink"}},

	// Metadata, which Landlock has no right for. FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR
	// work on a descriptor that was opened for reading.
	{Group: "I", Answer: answerEPERM, Calls: []string{
		"chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "utime", "utimes",
		"futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr",
		"lremovexattr", "fremovexattr"}},
	{Group: "I", Answer: answerEPERM, Calls: []string{"fchmodat2"}, Number: 452},
	{Group: "I", Answer: answerEPERM, Calls: []string{"setxattrat"}, Number: 463},
	{Group: "I", Answer: answerEPERM, Calls: []string{"removexattrat"}, Number: 466},
	{Group: "I", Answer: answerEPERM, Calls: []string{"file_setattr"}, Number: 469},
	{Group: "I", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x40086602}}},
	{Group: "I", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x401c5820}}},

	// Truncation before Landlock ABI 3. Access mode 3 opens for neither reading nor
	// writing in Landlock's eyes, and O_TRUNC still empties the file.
	{Group: "M", Answer: answerEACCES, Calls: []string{"open"},
		Tests: []ArgTest{{Arg: 1, Op: OpMasked, Mask: oTruncMode, Value: oTruncRead}}},
	{Group: "M", Answer: answerEACCES, Calls: []string{"open"},
		Tests: []ArgTest{{Arg: 1, Op: OpMasked, Mask: oTruncMode, Value: oTruncNoAccess}}},
	{Group: "M", Answer: answerEACCES, Calls: []string{"openat"},
		Tests: []ArgTest{{Arg: 2, Op: OpMasked, Mask: oTruncMode, Value: oTruncRead}}},
	{Group: "M", Answer: answerEACCES, Calls: []string{"openat"},
		Tests: []ArgTest{{Arg: 2, Op: OpMasked, Mask: oTruncMode, Value: oTruncNoAccess}}},
	{Group: "M", Answer: answerENOSYS, Calls: []string{"truncate", "openat2"}},

	// No process but one's own. The kernel drops the upper half of clone's flags, so
	// our own fork carries a number there that the program cannot know; whoever
	// guesses dies of it.
	{Group: "N", Answer: answerEPERM, Calls: []string{"fork", "vfork"}},
	{Group: "N", Answer: answerENOSYS, Calls: []string{"clone3", "memfd_create"}},
	{Group: "N", Answer: answerEPERM, Calls: []string{"clone"}, Tests: []ArgTest{
		{Arg: 0, Op: OpMasked, Mask: cloneThread}, {Arg: 0, Op: OpHigh}}},
	{Group: "N", Answer: AnswerKill, Calls: []string{"clone"}, Tests: []ArgTest{
		{Arg: 0, Op: OpMasked, Mask: cloneThread}, {Arg: 0, Op: OpHighOther, Value: PatchTicket}}},

	// Where starts are decided, no process leads another one that was judged: whoever could write its
	// memory would change what it was judged to do. What is left is a child that asks its parent to trace it,
	// as strace and gdb start programs: it is traced before its execve, which is then refused where
	// words decide it.
	{Group: "P", Answer: answerEPERM, Calls: []string{"ptrace"}, Tests: []ArgTest{{Arg: 0, Op: OpEqual, Value: ptraceAttach}}},
	{Group: "P", Answer: answerEPERM, Calls: []string{"ptrace"}, Tests: []ArgTest{{Arg: 0, Op: OpEqual, Value: ptraceSeize}}},
	{Group: "P", Answer: answerEPERM, Calls: []string{"process_vm_writev"}},

	// The guard of the wrapper, whose worker thread is in the command's Landlock
	// domain and could be signalled by it.
	{Group: "guard", Answer: answerEPERM, Calls: []string{
		"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"},
		Tests: []ArgTest{{Arg: 0, Op: OpEqual, Value: PatchWrapperPID}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{
		"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"},
		Tests: []ArgTest{{Arg: 0, Op: OpEqual, Value: PatchWorkerTID}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{"tgkill", "rt_tgsigqueueinfo"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: PatchWrapperPID}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{"tgkill", "rt_tgsigqueueinfo"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: PatchWorkerTID}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{"fcntl"}, // F_SETOWN
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 8}, {Arg: 2, Op: OpEqual, Value: PatchWrapperPID}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{"fcntl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 8}, {Arg: 2, Op: OpEqual, Value: PatchWorkerTID}}},
	// F_SETOWN_EX, FIOSETOWN and SIOCSPGRP take the pid from memory.
	{Group: "guard", Answer: answerEPERM, Calls: []string{"fcntl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 15}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x8901}}},
	{Group: "guard", Answer: answerEPERM, Calls: []string{"ioctl"},
		Tests: []ArgTest{{Arg: 1, Op: OpEqual, Value: 0x8902}}},
	// The descriptor hides the pid; callers fall back to kill.
	{Group: "guard", Answer: answerENOSYS, Calls: []string{"pidfd_send_signal"}},
}

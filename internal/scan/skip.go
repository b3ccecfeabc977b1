package scan

import "strings"

// never says why a program is not started to ask it about itself, whatever its flags:
// a shell or an interpreter takes words as code, a wrapper as a command, and some do
// harm under any name.
func never(name string) string {
	switch base := strings.TrimRight(name, "0123456789.-"); base {
	case "sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "osh", "pdksh", "pwsh", "rbash", "rc", "tcsh", "yash", "zsh", "elvish", "xonsh":
		return "a shell"
	case "awk", "bun", "clisp", "deno", "erl", "expect", "gawk", "gdb", "ghci", "groovy", "guile", "iex", "irb", "java", "jshell", "julia", "lua", "luajit", "mawk", "nawk", "node", "nodejs",
		"ocaml", "octave", "perl", "php", "pypy", "python", "R", "racket", "Rscript", "ruby", "sbcl", "scala", "tclsh", "wish", "jrunscript", "original-awk":
		return "an interpreter"
	case "at", "batch", "chroot", "chrt", "doas", "entr", "env", "eatmydata", "faketime", "fakeroot", "firejail", "flock", "gosu", "ionice", "ltrace", "nice", "nohup", "nsenter", "numactl",
		"parallel", "pkexec", "prlimit", "run-parts", "runcon", "runuser", "screen", "script", "setarch", "setpriv", "setsid", "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "systemd-run",
		"taskset", "time", "timeout", "tmux", "tsp", "unshare", "uvx", "watch", "xargs", "xvfb-run", "bwrap", "i386", "x86_64", "su-exec", "dbus-run-session", "ssh-agent":
		return "a wrapper that runs what it is given"
	case "halt", "init", "kexec", "poweroff", "reboot", "shutdown", "telinit", "systemctl", "loginctl", "rtcwake", "dd", "mkfs", "wipefs", "fdisk", "parted", "kill", "killall", "pkill", "skill":
		return "a program that could stop the machine or destroy a disk"
	}
	if strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "fsck") {
		return "a program that could stop the machine or destroy a disk"
	}
	if name == "atip" || name == "atip-exec" || name == "atip-sh" {
		return "this program"
	}
	return ""
}

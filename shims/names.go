package shims

import "strings"

// applet reports whether a program is another tool when called by another name, so
// that the document of that tool describes it. Only names which the program is
// known to look for count: under any other, xz is xz.
func applet(program, name string) bool {
	switch program {
	case "busybox", "busybox.static", "toybox", "coreutils":
		return true
	case "systemctl":
		switch name {
		case "halt", "init", "poweroff", "reboot", "shutdown", "telinit":
			return true
		}
	case "kmod":
		switch name {
		case "insmod", "lsmod", "modprobe", "rmmod":
			return true
		}
	case "pgrep":
		return name == "pkill"
	case "xz":
		return name == "xzcat" || name == "lzcat"
	case "zstd":
		return name == "zstdcat"
	case "lz4":
		return name == "lz4cat"
	}
	return false
}

// isName reports whether name can be a file name below our directories.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 200 && !strings.ContainsAny(name, "/\x00")
}

// isDigest reports whether s is a lower-case hexadecimal SHA-256.
func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

package gate

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// image is what the kernel makes of a start: the program that runs, and its words.
type image struct {
	dev, ino uint64
	argv     []string
	env      []string
	fileOnly bool // words and environment may be any
}

// Limits of scripts (fs/binfmt_script.c, fs/exec.c).
const (
	lineSize  = 256
	maxScript = 5
)

// image is that of a file that is no script.
func (n named) image(argv, env []string) image {
	if len(argv) == 0 {
		argv = []string{""} // since Linux 5.18
	}
	return image{dev: n.id.Dev, ino: n.id.Ino, argv: argv, env: env}
}

// expect works out the image of a start, through the "#!" lines of scripts.
func expect(n named, argv, env []string, root int) (image, unix.Errno) {
	for depth := 0; ; depth++ {
		interpreter, arg, script := scriptLine(n.fd)
		if depth > 0 {
			unix.Close(n.fd)
		}
		if !script {
			return n.image(argv, env), 0
		}
		if len(argv) == 0 {
			argv = []string{""}
		}
		if depth == maxScript {
			return image{}, unix.ELOOP
		}
		words := []string{interpreter}
		if arg != "" {
			words = append(words, arg)
		}
		argv = append(append(words, n.text), argv[1:]...)
		if !strings.HasPrefix(interpreter, "/") {
			return image{}, unix.ENOENT // relative to a directory that another thread can change
		}
		fd, err := unix.Openat2(root, interpreter, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
		if err != nil {
			return image{}, unix.ENOENT
		}
		var errno unix.Errno
		if n, errno = regular(fd, interpreter, interpreter); errno != 0 {
			return image{}, errno
		}
	}
}

// scriptLine reads the first line of a script as the kernel does. A file that may be executed and
// not read counts as none: a script of this kind cannot be read by its interpreter either.
func scriptLine(path int) (interpreter, arg string, script bool) {
	var buf [lineSize]byte
	n := 0
	if fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(path), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0); err == nil {
		n, _ = unix.Pread(fd, buf[:], 0)
		unix.Close(fd)
	}
	if n < 2 || buf[0] != '#' || buf[1] != '!' {
		return "", "", false
	}
	line := buf[2:n]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	if i := bytes.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	rest := strings.Trim(string(line), " \t")
	if rest == "" {
		return "", "", false
	}
	interpreter = rest
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		interpreter, arg = rest[:i], strings.TrimLeft(rest[i:], " \t")
	}
	return interpreter, arg, true
}

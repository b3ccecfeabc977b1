package gate

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// image is what the kernel makes of a start: the program that runs, and its words.
type image struct {
	dev, ino uint64
	argv     []string
	env      []string
}

// Limits of scripts (fs/binfmt_script.c, fs/exec.c).
const (
	lineSize  = 256
	maxScript = 5
)

// expect works out the image of a start, through the "#!" lines of scripts.
func expect(n named, argv, env []string, root int) (image, unix.Errno) {
	if len(argv) == 0 {
		argv = []string{""} // since Linux 5.18
	}
	file, text := n.file, n.text
	for depth := 0; ; depth++ {
		interpreter, arg, script := scriptLine(file)
		if !script {
			var st unix.Stat_t
			err := unix.Fstat(int(file.Fd()), &st)
			if file != n.file {
				file.Close()
			}
			if err != nil {
				return image{}, unix.EACCES
			}
			return image{uint64(st.Dev), st.Ino, argv, env}, 0
		}
		if file != n.file {
			file.Close()
		}
		if depth == maxScript {
			return image{}, unix.ELOOP
		}
		words := []string{interpreter}
		if arg != "" {
			words = append(words, arg)
		}
		argv = append(append(words, text), argv[1:]...)
		if !strings.HasPrefix(interpreter, "/") {
			return image{}, unix.ENOENT // relative to a directory that another thread can change
		}
		fd, err := unix.Openat2(root, interpreter, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
		if err != nil {
			return image{}, unix.ENOENT
		}
		next, errno := reopen(fd, interpreter, interpreter)
		unix.Close(fd)
		if errno != 0 {
			return image{}, errno
		}
		file, text = next.file, interpreter
	}
}

// scriptLine reads the first line of a script as the kernel does.
func scriptLine(f *os.File) (interpreter, arg string, script bool) {
	var buf [lineSize]byte
	n, _ := f.ReadAt(buf[:], 0)
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

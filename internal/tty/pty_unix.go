//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package tty

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size of a terminal that nobody looks at.
const (
	defaultRows = 24
	defaultCols = 80
)

// Pair is a pseudo-terminal: the command gets Slave, we keep Master.
type Pair struct {
	Master *os.File // read through Read, which knows the end
	Slave  *os.File // to be closed when the command has it

	outer  *os.File      // the terminal in front of the user, nil for none
	saved  *unix.Termios // its settings before us
	screen *unix.Winsize // of OpenScreen: the size of outer when it was looked at last

	mu     sync.Mutex
	raw    bool
	closed bool
	done   chan struct{} // closed by Close
	wakeR  *os.File      // readable after Close: ends the wait for keys
	wakeW  *os.File
	size   chan os.Signal
}

// OpenPty opens a pseudo-terminal with the size and settings of outer. Without an
// outer terminal nobody types: no echo, and lines end as the command ends them.
func OpenPty(outer *os.File) (p *Pair, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, &Error{Op: "open", Code: code(err), Err: err}
	}
	if master, err = pollable(master); err != nil {
		_ = slave.Close()
		return nil, err
	}
	p = &Pair{Master: master, Slave: slave, done: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = p.Close()
		}
	}()
	// The command shares this description, and tools do not expect EAGAIN.
	if err := unix.SetNonblock(int(slave.Fd()), false); err != nil {
		return nil, &Error{Op: "set blocking", Err: err}
	}
	if outer != nil && IsTerminal(outer.Fd()) {
		p.outer = outer
		if p.saved, err = modes(int(outer.Fd())); err != nil {
			return nil, err
		}
		if err := setModes(int(slave.Fd()), p.saved); err != nil {
			return nil, err
		}
		return p, p.resize()
	}
	settings, err := modes(int(slave.Fd()))
	if err != nil {
		return nil, err
	}
	settings.Lflag &^= unix.ECHO | unix.ECHONL
	settings.Oflag &^= unix.ONLCR
	if err := setModes(int(slave.Fd()), settings); err != nil {
		return nil, err
	}
	return p, p.setSize(&unix.Winsize{Row: defaultRows, Col: defaultCols})
}

// OpenScreen opens a pseudo-terminal for output alone: what is printed on it arrives as it was
// printed, and it has the size of outer. The keys are outer's own, so nothing is relayed. A command in
// front of outer is told of another size, not we who are behind it: Read notices it as soon as the command
// prints something, which is what a program that fills the screen does then.
func OpenScreen(outer *os.File) (*Pair, error) {
	p, err := OpenPty(outer)
	if err != nil {
		return nil, err
	}
	settings, err := modes(int(p.Slave.Fd()))
	if err == nil {
		settings.Oflag &^= unix.OPOST
		settings.Lflag &^= unix.ECHO | unix.ECHONL
		err = setModes(int(p.Slave.Fd()), settings)
	}
	if err == nil && p.outer != nil {
		p.screen, err = unix.IoctlGetWinsize(int(outer.Fd()), unix.TIOCGWINSZ)
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// pollable returns f under another number, non-blocking, so that a close ends a
// read: package pty leaves its files blocking.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, &Error{Op: "open", Code: code(err), Err: err}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// HasOuter reports whether somebody looks at the terminal. Without, the command
// should be told TERM=dumb unless it has a TERM.
func (p *Pair) HasOuter() bool { return p.outer != nil }

// resize copies the size of the outer terminal; the kernel tells the command.
func (p *Pair) resize() error {
	size, err := unix.IoctlGetWinsize(int(p.outer.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return &Error{Op: "get size", Err: err}
	}
	if size.Row == 0 || size.Col == 0 {
		size.Row, size.Col = defaultRows, defaultCols
	}
	return p.setSize(size)
}

func (p *Pair) setSize(size *unix.Winsize) error {
	err := p.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	if err != nil {
		return &Error{Op: "set size", Err: err}
	}
	return nil
}

// control runs f on the master. Not with Fd, which would make it blocking.
func (p *Pair) control(f func(fd int) error) error {
	conn, err := p.Master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// Relay puts the outer terminal into raw mode and starts to copy what comes from
// stdin to the command and the size of the outer terminal to the inner. It
// returns at once; Close ends it. The caller may close stdin.
func (p *Pair) Relay(stdin *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.wakeR != nil {
		return &Error{Op: "relay", Err: os.ErrClosed}
	}
	in, err := unix.FcntlInt(stdin.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return &Error{Op: "relay", Code: code(err), Err: err}
	}
	if err := p.setRaw(); err != nil {
		_ = unix.Close(in)
		return err
	}
	if p.wakeR, p.wakeW, err = os.Pipe(); err != nil {
		_ = unix.Close(in)
		return &Error{Op: "relay", Code: code(err), Err: err}
	}
	go p.keys(in, int(p.wakeR.Fd()))
	if p.outer != nil {
		p.size = make(chan os.Signal, 1)
		signal.Notify(p.size, syscall.SIGWINCH)
		go p.followSize()
		// It may have changed between the opening and Notify.
		if err := p.resize(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pair) followSize() {
	for {
		select {
		case <-p.size:
			_ = p.resize()
		case <-p.done:
			return
		}
	}
}

// keys copies stdin to the command. Bytes are keys: that ^C is an interrupt is for
// the inner line discipline to decide.
func (p *Pair) keys(in, wake int) {
	defer unix.Close(in)
	defer p.wakeR.Close()
	buffer := make([]byte, 4096)
	midLine := false
	for waitReadable(in, wake) {
		n, err := unix.Read(in, buffer)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case n <= 0:
			p.endOfKeys(midLine)
			return
		}
		if _, err := p.Master.Write(buffer[:n]); err != nil {
			return
		}
		midLine = buffer[n-1] != '\n' && buffer[n-1] != '\r'
	}
}

// endOfKeys tells the command that its input has ended. Closing the master would
// be SIGHUP; in canonical mode VEOF is the end, for one read, so that it is given
// again for whoever reads next. After an unfinished line the first VEOF only
// delivers that line.
func (p *Pair) endOfKeys(midLine bool) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if eof, ok := p.eofKey(); ok {
			keys := []byte{eof}
			if midLine {
				keys = []byte{eof, eof}
			}
			if _, err := p.Master.Write(keys); err != nil {
				return
			}
			midLine = false
		}
		select {
		case <-tick.C:
		case <-p.done:
			return
		}
	}
}

// eofKey returns the key that ends the input, if there is one now.
func (p *Pair) eofKey() (key byte, ok bool) {
	err := p.control(func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, getTermios)
		if err == nil && t.Lflag&unix.ICANON != 0 && t.Cc[unix.VEOF] != disabled {
			key, ok = t.Cc[unix.VEOF], true
		}
		return err
	})
	return key, ok && err == nil
}

// Read reads what the command prints. The end of the last process that has the
// terminal open reads as EIO on Linux.
func (p *Pair) Read(b []byte) (int, error) {
	n, err := p.Master.Read(b)
	if err != nil && errors.Is(err, syscall.EIO) {
		err = io.EOF
	}
	if p.screen != nil {
		p.followScreen()
	}
	return n, err
}

// followScreen takes over another size of the outer terminal, and tells who is in front of it once more:
// whoever asked at the first signal was given the size before.
func (p *Pair) followScreen() {
	size, err := unix.IoctlGetWinsize(int(p.outer.Fd()), unix.TIOCGWINSZ)
	if err != nil || *size == *p.screen {
		return
	}
	p.screen = size
	if p.resize() != nil {
		return
	}
	if group, err := foreground(int(p.outer.Fd())); err == nil && group > 0 && group != unix.Getpgrp() {
		_ = unix.Kill(-group, unix.SIGWINCH)
	}
}

// Foreground returns the group that is in front of the inner terminal, which is
// the one a forwarded signal is for; 0 if unknown.
func (p *Pair) Foreground() int {
	group := 0
	err := p.control(func(fd int) (err error) {
		group, err = foreground(fd)
		return err
	})
	if err != nil {
		return 0
	}
	return group
}

// Pause gives the outer terminal its settings back, before we are stopped.
func (p *Pair) Pause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restore()
}

// Resume takes the outer terminal again after Pause.
func (p *Pair) Resume() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.outer == nil {
		return nil
	}
	// In the background the terminal is somebody else's.
	if group, err := foreground(int(p.outer.Fd())); err == nil && group != unix.Getpgrp() {
		return nil
	}
	if err := p.setRaw(); err != nil {
		return err
	}
	return p.resize()
}

func (p *Pair) setRaw() error {
	if p.outer == nil {
		return nil
	}
	t := *p.saved
	// cfmakeraw, which each system spells out in termios(3).
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := setModes(int(p.outer.Fd()), &t); err != nil {
		return err
	}
	p.raw = true
	return nil
}

func (p *Pair) restore() error {
	if !p.raw {
		return nil
	}
	p.raw = false
	return setModes(int(p.outer.Fd()), p.saved)
}

// Close ends the relay, restores the outer terminal and hangs up the inner one.
// It may be called again, so that it can be deferred for panics.
func (p *Pair) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	close(p.done)
	if p.size != nil {
		signal.Stop(p.size)
	}
	if p.wakeW != nil {
		// The read end is closed by the goroutine that waits on it.
		_ = p.wakeW.Close()
	}
	err := p.restore()
	_ = p.Slave.Close()
	_ = p.Master.Close()
	return err
}

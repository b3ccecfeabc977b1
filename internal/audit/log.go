package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"time"
)

// Log is an open audit directory.
//
// Every writer does, under an exclusive flock on the lock file:
//
//	read the name of the newest daily file from the lock file
//	take the later of it and today: a clock set back must not fork the chain
//	read the last line, hash it
//	append the record with one write; if it was cut short, truncate it away
//
// A writer killed inside the write leaves a torn last line. The next writer ends
// it, records that in a line of its own and goes on.
type Log struct {
	dir string
	now func() time.Time

	mu   sync.Mutex
	lock *os.File
	day  string
	file *os.File
}

// Open opens the log below dir, creating the directory with mode 0700.
func Open(dir string) (*Log, error) {
	if !filepath.IsAbs(dir) {
		// Where no home is known the record would land wherever the command was typed.
		return nil, &Error{Op: "open", Path: dir, Err: errors.New("not an absolute path")}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &Error{Op: "create", Path: dir, Err: err}
	}
	if err := privateDir(dir); err != nil {
		return nil, &Error{Op: "open", Path: dir, Err: err}
	}
	p := filepath.Join(dir, lockName)
	lock, err := openPrivate(p, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, &Error{Op: "open", Path: p, Err: err}
	}
	return &Log{dir: dir, lock: lock, now: time.Now}, nil
}

// Close closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil
	}
	if l.file != nil {
		l.file.Close()
	}
	err := l.lock.Close()
	l.lock, l.file = nil, nil
	return err
}

// Reserve makes sure that full records can still be written when the run ends: a
// full disk is an error now, before the child starts, not later.
func (l *Log) Reserve() error {
	return l.locked("reserve", func() error {
		if err := l.today(); err != nil {
			return err
		}
		return reserve(l.file)
	})
}

// Append writes one record, a map or struct that marshals to a JSON object, and
// returns its id. Append adds v, id, t and prev; a map's own "id" is kept.
func (l *Log) Append(rec any) (id string, err error) {
	id, inner, err := body(rec)
	if err != nil {
		return "", &Error{Op: "append", Path: l.dir, Err: err}
	}
	const overhead = 512 // v, id, t, prev and a newline
	if inner, err = fit(inner, maxLine-overhead-len(id)); err != nil {
		return "", &Error{Op: "append", Path: l.dir, Err: err}
	}
	err = l.locked("append", func() error { return l.append(id, inner) })
	if err != nil {
		return "", err
	}
	return id, nil
}

func (l *Log) locked(op string, do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return &Error{Op: op, Path: l.dir, Err: errClosed}
	}
	if err := lockFile(l.lock); err != nil {
		return &Error{Op: op, Path: l.lock.Name(), Err: err}
	}
	defer unlockFile(l.lock)
	if err := do(); err != nil {
		path := l.dir
		if l.file != nil {
			path = l.file.Name()
		}
		return &Error{Op: op, Path: path, Err: err}
	}
	return nil
}

// today opens the daily file to append to.
func (l *Log) today() error {
	day := l.now().UTC().Format("20060102")
	newest := l.newest()
	if newest > day {
		day = newest
	}
	if day == l.day && l.file != nil {
		return nil
	}
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	if day != newest {
		// Before the file exists: a lock file that names a day without a file
		// is harmless, the reverse is not.
		if _, err := l.lock.WriteAt([]byte(day), 0); err != nil {
			return err
		}
	}
	f, err := openPrivate(filepath.Join(l.dir, day+suffix), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	l.day, l.file = day, f
	if newest != "" && newest != day {
		trim(filepath.Join(l.dir, newest+suffix))
	}
	return nil
}

// newest is the day of the newest file, from the lock file or, if that says
// nothing sensible, from the directory.
func (l *Log) newest() string {
	var buf [dayLen]byte
	if n, _ := l.lock.ReadAt(buf[:], 0); n == dayLen && digits(string(buf[:])) {
		return string(buf[:])
	}
	names, err := dayFiles(l.dir)
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[len(names)-1][:dayLen]
}

func (l *Log) append(id string, inner []byte) error {
	if err := l.today(); err != nil {
		return err
	}
	fi, err := l.file.Stat()
	if err != nil {
		return err
	}
	size := fi.Size()
	last, torn, err := l.last(size)
	if err != nil {
		return err
	}
	now := l.now()
	prev := firstPrev
	if last != nil {
		prev = hashLine(last)
	}
	var out []byte
	if torn {
		mark := line(NewID(), now, prev, []byte(`"kind":"`+kindTorn+`"`))
		if size > 0 {
			out = append(out, '\n') // the end of yesterday's file ends its line as well
		}
		out = append(append(out, mark...), '\n')
		prev = hashLine(mark)
	}
	out = append(out, line(id, now, prev, inner)...)
	out = append(out, '\n')
	n, err := l.file.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	if err != nil {
		l.file.Truncate(size) // we hold the lock: nobody wrote after us
		return err
	}
	return nil
}

// last returns the last line of the chain: of this file, or, if it is empty, of
// the newest file before it. torn says that the line lacks its newline.
func (l *Log) last(size int64) (last []byte, torn bool, err error) {
	if size > 0 {
		return lastLine(l.file, size)
	}
	names, err := dayFiles(l.dir)
	if err != nil {
		return nil, false, err
	}
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] >= l.day+suffix {
			continue
		}
		last, torn, err := lastOf(filepath.Join(l.dir, names[i]))
		if last != nil || err != nil {
			return last, torn, err
		}
	}
	return nil, false, nil
}

// lastOf returns the last line of another daily file, nil if it is empty.
func lastOf(p string) (last []byte, torn bool, err error) {
	f, err := openPrivate(p, os.O_RDONLY)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return nil, false, err
	}
	return lastLine(f, fi.Size())
}

// firstChunk holds most records: a record of a plain command has five kilobytes.
const firstChunk = 12 << 10

// lastLine reads backwards from the end of f.
func lastLine(f *os.File, size int64) (last []byte, torn bool, err error) {
	var buf []byte
	for chunk := int64(firstChunk); ; chunk *= 4 {
		n := min(chunk, size)
		buf = make([]byte, n)
		if _, err := f.ReadAt(buf, size-n); err != nil {
			return nil, false, err
		}
		torn = buf[n-1] != '\n'
		text := buf
		if !torn {
			text = buf[:n-1]
		}
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			return text[i+1:], torn, nil
		}
		if n == size {
			return text, torn, nil
		}
	}
}

// dayFiles lists the daily files, oldest first.
func dayFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if dayName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	return names, nil
}

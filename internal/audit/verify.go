package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// Summary is what Verify found. A chain shows changes and gaps inside; that whole
// lines were cut off at its end shows only against a Head noted elsewhere.
type Summary struct {
	Files    int     `json:"files"`
	Records  int     `json:"records"`
	Torn     int     `json:"torn"`                // lines cut by a crash, each acknowledged by the next writer
	TornTail bool    `json:"torn_tail,omitempty"` // the last line is cut and nobody wrote since
	Pruned   bool    `json:"pruned,omitempty"`    // the first line names a predecessor that is no longer there
	First    string  `json:"first,omitempty"`     // time of the first record
	Last     string  `json:"last,omitempty"`
	Head     string  `json:"head,omitempty"` // sha256 of the last line
	Broken   []Break `json:"broken,omitempty"`
}

// Break is one place where the chain does not hold.
type Break struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// OK reports whether the chain holds.
func (s Summary) OK() bool { return len(s.Broken) == 0 }

// maxBreaks bounds the list: after a few the log is broken and that is all.
const maxBreaks = 100

// header is what the chain needs of a line.
type header struct {
	V    int    `json:"v"`
	ID   string `json:"id"`
	T    string `json:"t"`
	Prev string `json:"prev"`
	Kind string `json:"kind"`
}

// Verify checks the whole chain below dir. The error is about reading; a broken
// chain is in the Summary.
func Verify(dir string) (Summary, error) {
	at, err := Take(dir)
	if err != nil {
		return Summary{}, err
	}
	return at.Verify(nil)
}

// Snapshot is the log at one moment between two writes: what is appended later is not
// part of it, so that it can be read twice.
type Snapshot struct {
	dir   string
	names []string
	sizes []int64
}

// Take takes a snapshot of the log below dir.
func Take(dir string) (Snapshot, error) {
	names, sizes, err := snapshot(dir)
	return Snapshot{dir: dir, names: names, sizes: sizes}, err
}

// Verify checks the whole chain and calls fn, unless it is nil, for each complete line,
// oldest first, until fn fails: what is checked is what fn was given. The line is valid
// until fn returns.
func (at Snapshot) Verify(fn func(line []byte) error) (Summary, error) {
	s := Summary{Files: len(at.names)}
	v := verifier{s: &s}
	err := at.lines(func(name string, text []byte, ended bool) error {
		if name != v.file {
			v.file, v.line = name, 0
		}
		v.check(text, ended)
		if fn == nil || !ended {
			return nil
		}
		return fn(text)
	})
	if err != nil {
		return s, err
	}
	if v.pending {
		s.TornTail, s.Head = v.pendingTorn, v.prev
		if !v.pendingTorn {
			v.broken("not a record")
		}
	}
	return s, nil
}

type verifier struct {
	s       *Summary
	file    string
	line    int
	started bool
	prev    string
	// pending: the line before was not a record; only a torn mark excuses it.
	pending, pendingTorn bool
	pendingAt            Break
}

func (v *verifier) broken(why string) {
	if len(v.s.Broken) < maxBreaks {
		v.s.Broken = append(v.s.Broken, Break{File: v.file, Line: v.line, Why: why})
	}
}

func (v *verifier) check(text []byte, ended bool) {
	v.line++
	var h header
	dec := json.NewDecoder(bytes.NewReader(text))
	err := dec.Decode(&h)
	_, more := dec.Token()
	valid := ended && err == nil && more == io.EOF && h.V == 1 && h.ID != "" && h.T != ""
	if v.pending {
		if !valid || h.Kind != kindTorn || h.Prev != v.prev {
			if len(v.s.Broken) < maxBreaks {
				v.s.Broken = append(v.s.Broken, v.pendingAt)
			}
		} else {
			v.s.Torn++
		}
		v.pending = false
	}
	sum := hashLine(text)
	if !valid {
		v.pending, v.pendingTorn = true, !ended
		v.pendingAt = Break{File: v.file, Line: v.line, Why: "not a record"}
		v.started, v.prev = true, sum
		return
	}
	switch {
	case !v.started:
		v.s.Pruned = h.Prev != firstPrev
	case h.Prev != v.prev:
		v.broken("prev is not the hash of the line before")
	}
	v.started, v.prev = true, sum
	v.s.Records++
	v.s.First = cmp.Or(v.s.First, h.T)
	v.s.Last, v.s.Head = h.T, sum
}

// Read calls fn for each complete line below dir, oldest first, until fn fails.
// The line is valid until fn returns.
func Read(dir string, fn func(line []byte) error) error {
	at, err := Take(dir)
	if err != nil {
		return err
	}
	return at.Read(fn)
}

// Read calls fn for each complete line, as the function Read does, and checks nothing.
func (at Snapshot) Read(fn func(line []byte) error) error {
	return at.lines(func(_ string, text []byte, ended bool) error {
		if !ended {
			return nil
		}
		return fn(text)
	})
}

func (at Snapshot) lines(fn func(name string, text []byte, ended bool) error) error {
	for i, name := range at.names {
		err := eachLine(filepath.Join(at.dir, name), at.sizes[i], func(text []byte, ended bool) error { return fn(name, text, ended) })
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshot lists the daily files with their sizes at one moment between writes.
func snapshot(dir string) (names []string, sizes []int64, err error) {
	if lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0); err == nil {
		defer lock.Close()
		if err := lockFile(lock); err != nil {
			return nil, nil, &Error{Op: "lock", Path: lock.Name(), Err: err}
		}
		defer unlockFile(lock)
	}
	if names, err = dayFiles(dir); err != nil {
		return nil, nil, &Error{Op: "list", Path: dir, Err: err}
	}
	for _, name := range names {
		fi, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return nil, nil, &Error{Op: "list", Path: dir, Err: err}
		}
		sizes = append(sizes, fi.Size())
	}
	return names, sizes, nil
}

// eachLine calls fn for the lines in the first size bytes of p; ended is false
// for a last line without its newline.
func eachLine(p string, size int64, fn func(text []byte, ended bool) error) error {
	f, err := openPrivate(p, os.O_RDONLY)
	if err != nil {
		return &Error{Op: "read", Path: p, Err: err}
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.LimitReader(f, size), maxLine)
	var long []byte
	for {
		text, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			if len(long) > 16*maxLine {
				return &Error{Op: "read", Path: p, Err: errTooLong}
			}
			long = append(long, text...)
			continue
		}
		if err != nil && err != io.EOF {
			return &Error{Op: "read", Path: p, Err: err}
		}
		if len(long) > 0 {
			text = append(long, text...)
			long = nil
		}
		if len(text) == 0 {
			return nil
		}
		ended := text[len(text)-1] == '\n'
		if fnErr := fn(bytes.TrimSuffix(text, []byte{'\n'}), ended); fnErr != nil {
			return fnErr
		}
		if err == io.EOF {
			return nil
		}
	}
}

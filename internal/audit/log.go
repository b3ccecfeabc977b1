// Package audit keeps the log of runs: one JSON line per record in daily files,
// each line naming the SHA-256 of the line before it, across files. Writers need
// no daemon: one flock and one write per record.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
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

// Encoded is a record that is a JSON object already, without v, id, t and prev. It
// may have been encoded while there was time, before its last fields were known.
type Encoded struct {
	ID     string
	Object []byte
}

// body marshals rec to the inside of a JSON object and takes out an id, which
// together with v, t and prev is written by the log itself.
func body(rec any) (id string, inner []byte, err error) {
	if e, ok := rec.(Encoded); ok {
		// A newline between its tokens would make two lines of one record.
		if !json.Valid(e.Object) || e.Object[0] != '{' || e.Object[len(e.Object)-1] != '}' || bytes.IndexByte(e.Object, '\n') >= 0 {
			return "", nil, errNotObject
		}
		if e.ID == "" {
			e.ID = NewID()
		}
		return e.ID, e.Object[1 : len(e.Object)-1], nil
	}
	if m, ok := rec.(map[string]any); ok {
		id, _ = m["id"].(string)
		copied := make(map[string]any, len(m))
		for k, v := range m {
			switch k {
			case "v", "id", "t", "prev":
			default:
				copied[k] = v
			}
		}
		rec = copied
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rec); err != nil {
		return "", nil, err
	}
	raw := bytes.TrimRight(buf.Bytes(), "\n")
	if len(raw) < 2 || raw[0] != '{' {
		return "", nil, errNotObject
	}
	if id == "" {
		id = NewID()
	}
	return id, raw[1 : len(raw)-1], nil
}

// line assembles one line without its newline.
func line(id string, t time.Time, prev string, inner []byte) []byte {
	out := make([]byte, 0, len(inner)+192)
	out = append(out, `{"v":1,"id":`...)
	out = appendString(out, id)
	out = append(out, `,"t":"`...)
	out = t.UTC().AppendFormat(out, "2006-01-02T15:04:05.000000Z")
	out = append(out, `","prev":"`...)
	out = append(out, prev...)
	out = append(out, '"')
	if len(inner) > 0 {
		out = append(out, ',')
		out = append(out, inner...)
	}
	return append(out, '}')
}

func appendString(out []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil {
		return strconv.AppendQuote(out, s)
	}
	return append(out, q...)
}

func hashLine(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fit cuts long fields until the record is at most limit bytes. What was cut says
// so in its place and in "cut", the number of fields.
func fit(inner []byte, limit int) ([]byte, error) {
	if len(inner) <= limit {
		return inner, nil
	}
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(append(append([]byte{'{'}, inner...), '}')))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	for field, items := fieldLimit, 256; field >= 16; field, items = field/4, max(items/4, 4) {
		cut := 0
		small := shorten(m, field, items, &cut).(map[string]any)
		small["cut"] = cut
		_, out, err := body(small)
		if err != nil {
			return nil, err
		}
		if len(out) <= limit {
			return out, nil
		}
	}
	return nil, errTooLong
}

// shorten returns v with strings of at most field bytes and arrays and objects of
// at most items entries.
func shorten(v any, field, items int, cut *int) any {
	switch v := v.(type) {
	case string:
		if len(v) <= field {
			return v
		}
		*cut++
		end := field
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		return v[:end] + "…[" + strconv.Itoa(len(v)-end) + " bytes cut]"
	case []any:
		n := min(len(v), items)
		out := make([]any, 0, n+1)
		for _, e := range v[:n] {
			out = append(out, shorten(e, field, items, cut))
		}
		if n < len(v) {
			*cut++
			out = append(out, "…["+strconv.Itoa(len(v)-n)+" entries cut]")
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			// The fields of a record are few; only data keyed by names gets long.
			if len(out) == max(items, 64) {
				*cut++
				out["…"] = strconv.Itoa(len(v)-len(out)) + " entries cut"
				break
			}
			out[k] = shorten(e, field, items, cut)
		}
		return out
	}
	return v
}

// startedDir holds one file for each run between its intent and its record. Its run
// holds the lock of the file, so a file that can be locked belongs to a dead run: no
// process id is compared, and a reboot leaves no doubt.
const startedDir = "started"

// unlocked begins the name of a mark that has no lock yet.
const unlocked = "."

// maxStarted bounds what is read of such a file, and how many one run settles.
const maxStarted = 8 << 10

// Started is the mark of a run that has begun and has no record yet.
type Started struct {
	path string
	file *os.File
}

// Begin marks run as started. about is a JSON object that Settle puts into the record of
// a run that was killed; it must hold no secret and at most 8 KiB.
func (l *Log) Begin(run string, about []byte) (*Started, error) {
	dir := filepath.Join(l.dir, startedDir)
	path := filepath.Join(dir, run)
	// It gets its name when it is locked: a name without a lock is a dead run to others.
	unnamed := filepath.Join(dir, unlocked+run)
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := openPrivate(unnamed, flags)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Mkdir(dir, 0o700); err == nil || errors.Is(err, os.ErrExist) {
			f, err = openPrivate(unnamed, flags)
		}
	}
	if err != nil {
		return nil, &Error{Op: "mark", Path: path, Err: err}
	}
	s := &Started{path: unnamed, file: f}
	err = tryLock(f)
	if err == nil && len(about) <= maxStarted {
		_, err = f.Write(about)
	}
	if err == nil {
		if err = os.Rename(unnamed, path); err == nil {
			s.path = path
		}
	}
	if err != nil {
		s.End()
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, nil // nothing here tells a dead run from one that runs
		}
		return nil, &Error{Op: "mark", Path: path, Err: err}
	}
	return s, nil
}

// End takes the mark away: the run has its record, or nothing was started.
func (s *Started) End() {
	if s == nil || s.file == nil {
		return
	}
	os.Remove(s.path)
	s.file.Close()
	s.file = nil
}

// Settle writes a record of kind "killed" for each run whose process is gone without
// one, and takes its mark away. It returns the runs.
func (l *Log) Settle() ([]string, error) {
	dir, err := os.Open(filepath.Join(l.dir, startedDir))
	if err != nil {
		return nil, nil // no run has begun yet
	}
	names, _ := dir.Readdirnames(maxStarted)
	dir.Close()
	var settled []string
	for _, name := range names {
		if strings.HasPrefix(name, unlocked) {
			continue
		}
		ok, err := l.settle(name)
		if err != nil {
			return settled, err
		}
		if ok {
			settled = append(settled, name)
		}
	}
	return settled, nil
}

func (l *Log) settle(run string) (bool, error) {
	path := filepath.Join(l.dir, startedDir, run)
	f, err := openPrivate(path, os.O_RDWR)
	if err != nil {
		return false, nil // it ended meanwhile
	}
	defer f.Close()
	if tryLock(f) != nil {
		return false, nil // it runs
	}
	if _, err := os.Lstat(path); err != nil {
		return false, nil // another run has settled it
	}
	if !l.has(run) {
		about, err := io.ReadAll(io.LimitReader(f, maxStarted))
		object := bytes.TrimSpace(about)
		if err != nil || len(object) < 2 || object[0] != '{' || object[len(object)-1] != '}' {
			object = []byte("{}")
		}
		head := []byte(`{"kind":"killed","run":`)
		head = appendString(head, run)
		if len(object) > 2 {
			head = append(head, ',')
		}
		if _, err := l.Append(Encoded{ID: run + "-killed", Object: append(head, object[1:]...)}); err != nil {
			return false, err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return true, err
	}
	return true, nil
}

// has reports whether the newest two daily files hold a record of the run: it was killed
// between its record and the end of its mark.
func (l *Log) has(run string) bool {
	names, _ := dayFiles(l.dir)
	want := appendString([]byte(`"id":`), run)
	for _, name := range names[max(0, len(names)-2):] {
		raw, err := os.ReadFile(filepath.Join(l.dir, name))
		if err == nil && bytes.Contains(raw, want) {
			return true
		}
	}
	return false
}

// Error says that the log cannot be written or read. Before the start of a
// command it means that the command must not start.
type Error struct {
	Op, Path string
	Err      error
}

func (e *Error) Error() string { return fmt.Sprintf("audit: %s %q: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded. Exit status 73.
func (e *Error) FaultCode() string { return errcode.AuditWrite }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"op": e.Op, "path": e.Path, "cause": fmt.Sprint(e.Err)}
}

// Limits of the log.
const (
	maxLine    = 64 << 10 // a record, with its newline
	fieldLimit = 4 << 10  // what remains of a string that had to be cut
	lockName   = "lock"
	suffix     = ".jsonl"
	dayLen     = len("20060102")
	firstPrev  = "" // prev of the very first line
	kindTorn   = "torn"
)

var (
	errClosed    = errors.New("the log is closed")
	errNotOurs   = errors.New("not a private regular file of this user")
	errLocked    = errors.New("another process holds the lock for too long")
	errNotObject = errors.New("the record is not a JSON object")
	errTooLong   = errors.New("the record exceeds 64 KiB even with its fields cut")
)

// dayName reports whether name is a daily file.
func dayName(name string) bool {
	if len(name) != dayLen+len(suffix) || name[dayLen:] != suffix {
		return false
	}
	return digits(name[:dayLen])
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) == dayLen
}

// idDigits is Crockford's base 32: no I, L, O, U, and sorted like its values.
const idDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a new identifier in the form of a ULID: 48 bits of milliseconds
// and 80 random bits in 26 characters, so that ids sort by time.
func NewID() string { return newID(time.Now()) }

func newID(t time.Time) string {
	var raw [16]byte
	ms := uint64(t.UnixMilli())
	for i := range 6 {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	random(raw[6:])
	// 128 bits are 25.6 digits of 5 bits: the first digit holds the top 3.
	var out [26]byte
	var bits uint
	var acc uint32
	pos := len(out)
	for i := len(raw) - 1; i >= 0; i-- {
		acc |= uint32(raw[i]) << bits
		for bits += 8; bits >= 5; bits -= 5 {
			pos--
			out[pos] = idDigits[acc&31]
			acc >>= 5
		}
	}
	out[0] = idDigits[acc&31]
	return string(out[:])
}

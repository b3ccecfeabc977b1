// Package install changes the settings of coding agents so that their commands go through
// atip-exec, remembers what it changed, and takes it back byte by byte.
package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/jsonedit"
	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// cannotChange says why a settings file, or a directory of ours, cannot be changed; fix is the
// next step, "" for that of the table.
func cannotChange(path, why, fix string) error {
	e := errcode.InFile(errcode.AgentSettings, path, why)
	e.Fix = fix
	return e
}

// Wired is one agent whose settings lead to us.
type Wired struct {
	Agent  string        `json:"agent"`
	Scope  wiring.Scope  `json:"scope"`
	Mode   wiring.Mode   `json:"mode"`
	File   string        `json:"file"`
	Backup string        `json:"backup,omitempty"` // of the file as it was; "" if there was none
	After  string        `json:"after"`            // sha256 of the file as it was written
	Edits  []wiring.Edit `json:"edits"`            // with their values
	Old    []string      `json:"old"`              // values that were replaced, "" for none
	Had    []int         `json:"had"`              // keys of each path that were there
	Made   []string      `json:"made,omitempty"`   // directories made for the file
	At     time.Time     `json:"at"`
}

// journal is what is remembered, in one file.
type journal struct {
	V       int      `json:"v"`
	Program string   `json:"program"`
	Made    []string `json:"made,omitempty"` // directories made for the shared files
	Wired   []Wired  `json:"wired"`
	Shims   []string `json:"shims,omitempty"` // tools with a wrapper
}

// empty is a journal in which nothing is installed.
func (j journal) empty() bool { return len(j.Wired)+len(j.Shims) == 0 }

// Store is our data directory, held against a second installation.
type Store struct {
	data    string
	program string
	journal journal
	unlock  func()
}

// tools are the programs of the system that the hook file uses.
func tools() (timeout, head string, err error) {
	found := map[string]string{}
	for _, name := range []string{"timeout", "head"} {
		for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				found[name] = filepath.Join(dir, name)
				break
			}
		}
		if found[name] == "" {
			return "", "", &errcode.Error{Code: errcode.AgentSettings, Msg: "the program " + name + " of the system is missing; the hook file needs it", Fix: "install coreutils", Details: map[string]any{"file": ""}}
		}
	}
	return found["timeout"], found["head"], nil
}

// Open reads what is installed below our data directory. With change the directory is made and
// held until Close.
func Open(data, program string, change bool) (*Store, error) {
	s := &Store{data: data, program: program, unlock: func() {}}
	if !change {
		return s, s.read()
	}
	var made []string
	for range 100 {
		now, err := mkdirs(data)
		made = append(made, now...)
		if err != nil {
			return nil, cannotChange(data, "cannot be made: "+reason(err), "make your home directory writable")
		}
		unlock, same, err := lock(data)
		if err != nil {
			return nil, cannotChange(data, "cannot be locked: "+reason(err), "")
		}
		if !same {
			unlock()
			continue // another installation removed it meanwhile
		}
		s.unlock = unlock
		if err := s.read(); err != nil {
			unlock()
			return nil, err
		}
		if s.journal.Made = append(s.journal.Made, made...); len(made) > 0 && !s.journal.empty() {
			// Another installation used what this one made before it had the lock.
			if err := s.write(); err != nil {
				unlock()
				return nil, cannotChange(s.file(), "cannot be written: "+reason(err), "")
			}
		}
		return s, nil
	}
	return nil, cannotChange(data, "is made and removed all the time", "")
}

// Close lets others install again. Directories that were made for nothing are removed.
func (s *Store) Close() {
	s.clear()
	s.unlock()
}

func (s *Store) file() string { return filepath.Join(s.data, "wiring.json") }

func (s *Store) read() error {
	raw, err := regular.ReadNoFollow(s.file(), 16<<20)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s.journal)
	}
	for _, w := range s.journal.Wired {
		if len(w.Old) != len(w.Edits) || len(w.Had) != len(w.Edits) {
			err = errors.New("is not whole")
		}
	}
	if err == nil && s.journal.V != 1 {
		err = fmt.Errorf("has version %d", s.journal.V)
	}
	if err != nil {
		return cannotChange(s.file(), "cannot be read: "+reason(err), "remove it, take the lines that name "+s.data+" out of the settings of your agents, and run `atip init` again")
	}
	return nil
}

func (s *Store) write() error {
	s.journal.V, s.journal.Program = 1, s.program
	raw, err := json.MarshalIndent(s.journal, "", "  ")
	if err != nil {
		return err
	}
	return newfile.Replace(s.file(), raw, 0o600)
}

// Wired lists what is installed.
func (s *Store) Wired() []Wired { return slices.Clone(s.journal.Wired) }

func (s *Store) find(agent string, scope wiring.Scope, file string) int {
	return slices.IndexFunc(s.journal.Wired, func(w Wired) bool { return w.Agent == agent && w.Scope == scope && w.File == file })
}

// Change is what an installation would do to a settings file.
type Change struct {
	Wired
	Before, After []byte
	Exists        bool
	Changed       bool // the file, or what is remembered of it

	adopted bool // something of ours is in Before, which must not come back
}

// Plan works out the settings file of an agent, from the one that is there.
func (s *Store) Plan(host wiring.Host, scope wiring.Scope, mode wiring.Mode, file string) (Change, error) {
	c := Change{Wired: Wired{Agent: host.Name, Scope: scope, Mode: mode, File: file}}
	var err error
	if c.Before, c.Exists, err = settings(file); err != nil {
		return c, err
	}
	base := c.Before
	if at := s.find(host.Name, scope, file); at >= 0 {
		old := s.journal.Wired[at]
		if base, err = s.without(old, c.Before); err != nil {
			return c, err
		}
		c.Made = old.Made
	}
	c.After = base
	for _, e := range host.Edits(mode) {
		value := jsonedit.Compact(e.Fill(s.data, host.Name, mode))
		d, err := jsonedit.Parse(c.After)
		if err != nil {
			return c, malformed(file, err)
		}
		old, had, ours := "", d.Has(e.Path), wiring.Ours(s.data, value)
		if e.Append {
			if d, err = s.unstale(&c, d, e.Path, value); err == nil && !slices.Contains(d.Items(e.Path...), value) {
				c.After, err = d.Append(e.Path, value)
			}
		} else if old = d.Get(e.Path...); old != value {
			c.After, err = d.Set(e.Path, value)
		} else if !ours {
			continue // it was there before us, and stays
		} else {
			old, c.adopted = "", true
		}
		if err != nil {
			return c, cannotChange(file, err.Error(), "correct it; `atip init "+host.Name+" --print` shows what belongs into it")
		}
		e.Value = value
		c.Edits, c.Old, c.Had = append(c.Edits, e), append(c.Old, old), append(c.Had, had)
	}
	c.Changed = !bytes.Equal(c.After, c.Before) || s.find(host.Name, scope, file) < 0
	return c, nil
}

// unstale takes out what an installation that is no longer remembered left in an array.
func (s *Store) unstale(c *Change, d *jsonedit.Doc, path []string, value string) (*jsonedit.Doc, error) {
	for i := len(d.Items(path...)) - 1; i >= 0; i-- {
		item := d.Items(path...)[i]
		if !wiring.Ours(s.data, item) {
			continue
		}
		if c.adopted = true; item == value {
			continue
		}
		c.After = d.RemoveItem(path, i)
		var err error
		if d, err = jsonedit.Parse(c.After); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Apply carries a change out: the shared files, a backup, what is remembered, and the settings
// last, so that they never lead to something that is not there.
func (s *Store) Apply(c Change) error {
	if err := s.share(); err != nil {
		return err
	}
	if !c.Changed {
		return nil
	}
	made, err := mkdirs(filepath.Dir(c.File))
	if err != nil {
		return cannotChange(c.File, "cannot be written: "+reason(err), "")
	}
	c.Made = append(c.Made, made...)
	c.At = time.Now().UTC().Truncate(time.Second)
	at, base, stale := s.find(c.Agent, c.Scope, c.File), c.Before, ""
	if at >= 0 {
		if base, err = s.without(s.journal.Wired[at], c.Before); err != nil {
			return err
		}
		stale = s.journal.Wired[at].Backup
		c.Exists = stale != "" || len(base) > 0
	}
	if c.Exists {
		name := c.Agent + "-" + string(c.Scope) + "-" + sum([]byte(c.File))[:8] + "-" + c.At.Format("20060102-150405.000") + filepath.Ext(c.File)
		c.Backup = filepath.Join(s.data, "backup", name)
		if _, err := mkdirs(filepath.Dir(c.Backup)); err != nil {
			return cannotChange(c.Backup, "cannot be written: "+reason(err), "")
		}
		if err := newfile.Replace(c.Backup, base, 0o600); err != nil {
			return cannotChange(c.Backup, "cannot be written: "+reason(err), "")
		}
	}
	if c.Wired.After = sum(c.After); c.adopted {
		c.Wired.After = ""
	}
	if at < 0 {
		s.journal.Wired = append(s.journal.Wired, c.Wired)
	} else {
		s.journal.Wired[at] = c.Wired
	}
	if err := s.write(); err != nil {
		return cannotChange(s.file(), "cannot be written: "+reason(err), "")
	}
	if stale != "" && stale != c.Backup {
		os.Remove(stale)
	}
	mode := fs.FileMode(0o600) // settings may hold keys
	if info, err := os.Lstat(c.File); err == nil {
		mode = info.Mode().Perm()
	}
	if err := newfile.Replace(c.File, c.After, mode); err != nil {
		return cannotChange(c.File, "cannot be written: "+reason(err), "")
	}
	return nil
}

// share writes the files that all agents use, where they differ from what they should be.
func (s *Store) share() error {
	timeout, head, err := tools()
	if err != nil {
		return err
	}
	for _, f := range wiring.Files(s.data, s.program, timeout, head) {
		if (file{f}).wrong() == "" {
			continue
		}
		if err := writeFile(f); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes an installation back.
func (s *Store) Remove(w Wired) error {
	at := s.find(w.Agent, w.Scope, w.File)
	if at < 0 {
		return nil
	}
	now, exists, err := settings(w.File)
	if err != nil {
		return err
	}
	before, err := s.without(w, now)
	if err != nil {
		return err
	}
	switch {
	case !exists:
	case w.Backup == "" && sum(now) == w.After:
		err = os.Remove(w.File)
	case !bytes.Equal(before, now):
		info, serr := os.Lstat(w.File)
		if err = serr; err == nil {
			err = newfile.Replace(w.File, before, info.Mode().Perm())
		}
	}
	if err != nil {
		return cannotChange(w.File, "cannot be written: "+reason(err), "")
	}
	s.journal.Wired = slices.Delete(s.journal.Wired, at, at+1)
	if err := s.write(); err != nil {
		return cannotChange(s.file(), "cannot be written: "+reason(err), "")
	}
	if w.Backup != "" {
		os.Remove(w.Backup)
	}
	rmdirs(w.Made)
	return nil
}

// clear removes what all agents share, once none uses it, and what all wrappers share.
func (s *Store) clear() {
	if s.journal.V != 0 && len(s.journal.Wired) == 0 {
		for _, f := range wiring.Files(s.data, s.program, "", "") {
			os.Remove(f.Path)
		}
	}
	for _, dir := range []string{"backup", "as", "bin", "libexec", filepath.Base(place.WrappersOf(""))} {
		os.Remove(filepath.Join(s.data, dir)) // if it is empty
	}
	if !s.journal.empty() {
		return
	}
	if s.journal.V != 0 {
		os.Remove(s.file())
	}
	rmdirs(s.journal.Made)
}

// without is a settings file without what an installation put into it: the bytes that were
// there if it was not touched since, else the file with only our values taken out.
func (s *Store) without(w Wired, now []byte) ([]byte, error) {
	if sum(now) == w.After {
		if w.Backup == "" {
			return nil, nil
		}
		raw, err := regular.ReadNoFollow(w.Backup, 16<<20)
		if err == nil {
			return raw, nil
		}
	}
	for i := len(w.Edits) - 1; i >= 0; i-- {
		e := w.Edits[i]
		d, err := jsonedit.Parse(now)
		if err != nil {
			return nil, malformed(w.File, err)
		}
		switch {
		case e.Append:
			if at := slices.Index(d.Items(e.Path...), e.Value); at >= 0 {
				now = d.RemoveItem(e.Path, at)
			}
		case d.Get(e.Path...) != e.Value:
		case w.Old[i] == "":
			now = d.Remove(e.Path)
		default:
			if now, err = d.Set(e.Path, w.Old[i]); err != nil {
				return nil, malformed(w.File, err)
			}
		}
		// Objects and arrays that were made for it go, too, unless they are in use.
		for depth := len(e.Path); depth > w.Had[i]; depth-- {
			if d, err = jsonedit.Parse(now); err != nil {
				return nil, malformed(w.File, err)
			}
			if held := d.Get(e.Path[:depth]...); held == "{}" || held == "[]" {
				now = d.Remove(e.Path[:depth])
			}
		}
	}
	return now, nil
}

// Faults says what keeps an installation from working, without starting anything; none if all
// is in its place.
func (s *Store) Faults(w Wired) []string {
	var out []string
	now, exists, err := settings(w.File)
	switch {
	case err != nil:
		return []string{err.Error()}
	case !exists:
		return []string{w.File + " is gone"}
	}
	d, err := jsonedit.Parse(now)
	if err != nil {
		return []string{malformed(w.File, err).Error()}
	}
	for _, e := range w.Edits {
		if e.Append && !slices.Contains(d.Items(e.Path...), e.Value) || !e.Append && d.Get(e.Path...) != e.Value {
			out = append(out, w.File+" no longer leads to atip-exec")
			break
		}
	}
	timeout, head, err := tools()
	if err != nil {
		out = append(out, err.Error())
	}
	for _, f := range wiring.Files(s.data, s.program, timeout, head) {
		if why := (file{f}).wrong(); why != "" {
			out = append(out, f.Path+" "+why)
		}
	}
	if info, err := os.Stat(s.program); err != nil || info.Mode()&0o111 == 0 {
		out = append(out, s.program+" is gone or cannot be executed")
	}
	return out
}

func sum(raw []byte) string {
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:])
}

func malformed(file string, err error) error {
	return cannotChange(file, err.Error(), "correct the file; nothing was changed")
}

// reason is an error without the path, which stands before it already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err.Error()
	}
	return err.Error()
}

// Fresh is the settings file of an agent that has none.
func Fresh(data string, host wiring.Host, mode wiring.Mode) ([]byte, error) {
	c, err := (&Store{data: data}).Plan(host, wiring.User, mode, filepath.Join(data, "absent", "settings"))
	return c.After, err
}

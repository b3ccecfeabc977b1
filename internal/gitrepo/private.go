package gitrepo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// Settings are the judged settings of a repository, held as a value: what happens to its
// files later changes nothing here.
type Settings struct {
	repo     Repository
	judged   string // the bytes of the configuration file
	own      string // what is put before the kept part
	text     string // what git is shown: own, then the kept part
	verbatim bool   // the kept part is the file as it is
	refs     *Refs  // what git is shown of the references; nil for the repository's own
}

// Frozen are the settings for a run that sends references and makes none: it sees these, and
// not what another run makes of them meanwhile. What it notes of the other side and of
// upstreams comes back, no other setting.
func (s Settings) Frozen(f *Refs) Settings {
	s.refs = f
	return s
}

// Settings takes those of the repository that keep admits. They were read as c.
func (r Repository) Settings(c *Config, keep func(Setting) bool) (Settings, error) {
	s := Settings{repo: r, verbatim: true}
	raw, err := Read(filepath.Join(r.Common, "config"), maxConfig)
	if err != nil && !missing(err) {
		return s, err
	}
	s.judged = string(raw)
	var kept []Setting
	for _, one := range c.Settings {
		section, _, _ := Split(one.Key)
		switch {
		case one.Scope != ScopeRepository:
		case one.Key == "core.worktree", one.Key == "extensions.worktreeconfig", section == "include", section == "includeif", !keep(one):
			s.verbatim = false // what is included stands here by itself
		default:
			s.verbatim = s.verbatim && one.File == filepath.Join(r.Common, "config")
			kept = append(kept, one)
		}
	}
	// What was judged is what is kept: both come from the same bytes, or nothing is.
	now, err := Parse(s.judged)
	if err != nil {
		return s, err
	}
	s.verbatim = s.verbatim && slices.EqualFunc(now, kept, func(a, b Setting) bool { return a.Key == b.Key && a.Value == b.Value && a.Bare == b.Bare })
	if r.WorkTree != "" {
		s.own = Format([]Setting{{Key: "core.worktree", Value: r.WorkTree}})
	}
	if s.text = s.own + Format(kept); s.verbatim {
		s.text = s.own + s.judged
	}
	return s, nil
}

// Text is what git is shown.
func (s Settings) Text() string { return s.text }

// Format writes settings as a file that git reads as these.
func Format(settings []Setting) string {
	var b strings.Builder
	for _, one := range settings {
		section, sub, name := Split(one.Key)
		if sub == "" {
			b.WriteString("[" + section + "]\n")
		} else {
			b.WriteString("[" + section + " \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + "\"]\n")
		}
		if one.Bare {
			b.WriteString("\t" + name + "\n")
			continue
		}
		b.WriteString("\t" + name + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(one.Value) + "\"\n")
	}
	return b.String()
}

// shared are the names of a common directory that a private one leads to. Hooks and
// configuration are not among them, nor what is named in files (remotes, branches).
func shared() []string {
	return []string{"objects", "info", "shallow", "worktrees", "modules", "lfs", "rr-cache", "svn"}
}

// references are the shared names that hold references.
func references() []string { return []string{"refs", "packed-refs", "reftable", "logs"} }

// Copy is a common directory of one run: git finds the data of the repository there and
// the judged settings, not the file that another run may be changing.
type Copy struct {
	s    Settings
	dir  string
	root *os.Root // of the repository
}

// Copy makes the directory dir, which no other run can write.
func (s Settings) Copy(dir string) (*Copy, error) {
	root, err := os.OpenRoot(s.repo.Common)
	if err != nil {
		return nil, err
	}
	c := &Copy{s: s, dir: dir, root: root}
	err = os.MkdirAll(dir, 0o700)
	names := shared()
	if s.refs == nil {
		names = append(names, references()...)
	} else if err == nil {
		err = s.refs.freeze(dir, s.repo)
	}
	for _, name := range names {
		if err != nil {
			break
		}
		// These two are files, which git makes through a link that leads nowhere yet.
		if _, no := root.Lstat(name); no == nil || name == "packed-refs" || name == "shallow" {
			err = os.Symlink(filepath.Join(s.repo.Common, name), filepath.Join(dir, name))
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config"), []byte(s.text), 0o600)
	}
	if err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// Variables lead git to a copy in dir.
func (s Settings) Variables(dir string) [][2]string {
	if s.refs != nil {
		return [][2]string{{"GIT_DIR", dir}}
	}
	return [][2]string{{"GIT_DIR", s.repo.Dir}, {"GIT_COMMON_DIR", dir}}
}

// Remove takes the copy away.
func (c *Copy) Remove() {
	c.root.Close()
	os.RemoveAll(c.dir)
}

// Return brings back into the repository what the run made of its copy: settings that are
// inert, such as the upstream of a branch, and directories that the repository did not have,
// or, of frozen references, those of remotes. It returns what is left behind.
func (c *Copy) Return() error {
	if c.s.refs != nil {
		return errors.Join(c.returnRefs(), c.returnSettings())
	}
	for _, name := range [...]string{"logs", "lfs", "rr-cache"} {
		at := filepath.Join(c.dir, name)
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			if _, err := c.root.Lstat(name); missing(err) {
				_ = os.Rename(at, filepath.Join(c.s.repo.Common, name))
			}
		}
	}
	return c.returnSettings()
}

func (c *Copy) returnSettings() error {
	raw, err := regular.ReadNoFollow(filepath.Join(c.dir, "config"), maxConfig)
	if err != nil {
		return err
	}
	text := string(raw)
	if text == c.s.text {
		return nil
	}
	if !InertChange(c.s.text, text) || c.s.refs != nil && !onlyUpstream(c.s.text, text) {
		return errors.New("the command changed settings of the repository that can run code: they are left out")
	}
	before, _ := Parse(c.s.text)
	after, _ := Parse(text)
	added, removed := slices.Clone(after), false
	for _, old := range before {
		if i := slices.Index(added, old); i >= 0 {
			added = slices.Delete(added, i, i+1)
		} else {
			removed = true
		}
	}
	rest, whole := strings.CutPrefix(text, c.s.own)
	own, err := Parse(rest)
	whole = whole && err == nil && c.s.verbatim && len(own)+strings.Count(c.s.own, "\n\t") == len(after)
	return c.change("config", maxConfig, func(raw []byte) (string, error) {
		now := string(raw)
		switch {
		case raw == nil:
			return "", errors.New("settings of the repository are not written back: it has none any more")
		case whole && now == c.s.judged:
			return rest, nil
		case removed:
			return "", errors.New("settings of the repository changed meanwhile: what the command removed of them stays")
		}
		if now != "" && !strings.HasSuffix(now, "\n") {
			now += "\n"
		}
		return now + Format(added), nil
	})
}

// change replaces a file of the repository under git's own lock; now is nil if it is not there.
// Nothing on the way is followed: another run may put links there.
func (c *Copy) change(name string, limit int64, f func(now []byte) (string, error)) error {
	lock, err := c.root.OpenFile(name+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("%s of the repository is not written: %w", name, err)
	}
	taken := true
	defer func() {
		lock.Close()
		if taken {
			_ = c.root.Remove(name + ".lock")
		}
	}()
	var now []byte
	switch info, err := c.root.Lstat(name); {
	case missing(err):
	case err != nil || !info.Mode().IsRegular() || info.Size() > limit:
		return fmt.Errorf("%s of the repository is not written: it is no regular file", name)
	default:
		in, err := regular.OpenIn(c.root, name)
		if err != nil {
			return err
		}
		now, err = io.ReadAll(io.LimitReader(in, limit))
		in.Close()
		if err == nil {
			err = lock.Chmod(info.Mode().Perm())
		}
		if err != nil {
			return err
		}
		if now == nil {
			now = []byte{}
		}
	}
	text, err := f(now)
	if err != nil {
		return err
	}
	if _, err = lock.WriteString(text); err == nil {
		err = lock.Close()
	}
	if err == nil {
		err = c.root.Rename(name+".lock", name)
		taken = err != nil
	}
	return err
}

// onlyUpstream reports whether all that changed from one text to another is which branch of
// which remote a branch belongs to.
func onlyUpstream(old, new string) bool {
	rest := func(text string) []Setting {
		list, _ := Parse(text)
		return slices.DeleteFunc(list, func(s Setting) bool {
			section, sub, name := Split(s.Key)
			return section == "branch" && sub != "" && (name == "remote" || name == "merge" || name == "rebase")
		})
	}
	return slices.Equal(rest(old), rest(new))
}

// returnRefs brings back the references of remotes that the run has changed, if they are still
// what they were.
func (c *Copy) returnRefs() error {
	made, err := Repository{Dir: c.dir, Common: c.dir}.Refs()
	if err != nil {
		return err
	}
	changed := map[string]string{}
	for name, value := range made.all {
		if c.s.refs.all[name] != value && ObjectID(value) {
			changed[name] = value
		}
	}
	for name := range c.s.refs.all {
		if _, ok := made.all[name]; !ok {
			changed[name] = ""
		}
	}
	if len(changed) == 0 {
		return nil
	}
	now, err := c.s.repo.Refs()
	if err != nil {
		return err
	}
	var left, gone []string
	for name, value := range changed {
		switch {
		case !strings.HasPrefix(name, "refs/remotes/") || !filepath.IsLocal(name) || filepath.Clean(name) != name:
		case now.all[name] == value:
		case now.all[name] != c.s.refs.all[name]:
			left = append(left, name) // a fetch was faster, and it knows better
		case value == "":
			gone = append(gone, name)
		case c.setRef(name, value) != nil:
			left = append(left, name)
		}
	}
	if len(gone) > 0 && c.removeRefs(gone) != nil {
		left = append(left, gone...)
	}
	if len(left) > 0 {
		slices.Sort(left)
		return errors.New("not updated, `git fetch` does it: " + strings.Join(left, ", "))
	}
	return nil
}

// plain refuses a path of the repository that leads through a link.
func (c *Copy) plain(path string) error {
	for at := path; at != "."; at = filepath.Dir(at) {
		if info, err := c.root.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link", at)
		}
	}
	return nil
}

// setRef writes one loose reference, and what git noted of it in its log.
func (c *Copy) setRef(name, value string) error {
	if err := c.plain(name); err != nil {
		return err
	}
	if err := c.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	err := c.change(name, maxPointer, func(now []byte) (string, error) {
		if was := strings.TrimSpace(string(now)); now != nil && was != c.s.refs.all[name] {
			return "", errors.New("it changed meanwhile")
		}
		return value + "\n", nil
	})
	if err != nil {
		return err
	}
	// A log is a help, and no part of the reference.
	log := "logs/" + name
	text, err := regular.ReadNoFollow(filepath.Join(c.dir, log), maxConfig)
	if err != nil || c.plain(log) != nil || c.root.MkdirAll(filepath.Dir(log), 0o777) != nil {
		return nil
	}
	if f, err := c.root.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666); err == nil {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			_, _ = f.Write(text)
		}
		f.Close()
	}
	return nil
}

// removeRefs takes references out of the packed ones and away as files.
func (c *Copy) removeRefs(names []string) error {
	err := c.change("packed-refs", maxPacked, func(now []byte) (string, error) {
		var kept strings.Builder
		skip := false
		for line := range strings.Lines(string(now)) {
			if line[0] != '^' {
				_, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				skip = slices.Contains(names, name)
			}
			if !skip {
				kept.WriteString(line)
			}
		}
		return kept.String(), nil
	})
	for _, name := range names {
		if err == nil {
			err = c.plain(name)
		}
		if err != nil {
			return err
		}
		if err = c.root.Remove(name); missing(err) {
			err = nil
		}
		if c.plain("logs/"+name) == nil {
			_ = c.root.Remove("logs/" + name)
		}
	}
	return err
}

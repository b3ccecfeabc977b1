package install

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// wrapper is the file of a tool.
func (s *Store) wrapper(tool string) file {
	return file{wiring.Wrapper(place.WrappersOf(s.data), s.program, tool)}
}

// Shims lists the tools that have a wrapper.
func (s *Store) Shims() []string { return slices.Clone(s.journal.Shims) }

// ShimFile is the wrapper of a tool.
func (s *Store) ShimFile(tool string) string { return s.wrapper(tool).Path }

// ShimFault says what keeps the wrapper of a tool from working, "" if nothing does.
func (s *Store) ShimFault(tool string) string {
	f := s.wrapper(tool)
	if why := f.wrong(); why != "" {
		return f.Path + " " + why
	}
	if info, err := os.Stat(s.program); err != nil || info.Mode()&0o111 == 0 {
		return s.program + " is gone or cannot be executed"
	}
	return ""
}

// foreign refuses a wrapper's place that holds something else.
func (f file) foreign() error {
	info, err := os.Lstat(f.Path)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil && info.Mode().IsRegular() {
		if raw, rerr := regular.ReadNoFollow(f.Path, 1<<20); rerr == nil && wiring.IsWrapper(string(raw)) {
			return nil
		}
	}
	return cannotChange(f.Path, "was not written by `atip shim`", "move it away")
}

// CheckShim refuses a tool (wiring.Wrappable) in whose place something else lies.
func (s *Store) CheckShim(tool string) error {
	return s.wrapper(tool).foreign()
}

// AddShim writes the wrapper of a tool, if it is not there as it should be.
func (s *Store) AddShim(tool string) (changed bool, err error) {
	if err := s.CheckShim(tool); err != nil {
		return false, err
	}
	f := s.wrapper(tool)
	known := slices.Contains(s.journal.Shims, tool)
	if known && f.wrong() == "" {
		return false, nil
	}
	if !known {
		s.journal.Shims = append(s.journal.Shims, tool)
		slices.Sort(s.journal.Shims)
		if err := s.write(); err != nil {
			return false, cannotChange(s.file(), "cannot be written: "+reason(err), "make your home directory writable")
		}
	}
	return true, writeFile(f.File)
}

// RemoveShim takes the wrapper of a tool away.
func (s *Store) RemoveShim(tool string) error {
	f := s.wrapper(tool)
	if err := f.foreign(); err != nil {
		return err
	}
	if err := os.Remove(f.Path); err != nil && !os.IsNotExist(err) {
		return cannotChange(f.Path, "cannot be removed: "+reason(err), "")
	}
	s.journal.Shims = slices.DeleteFunc(s.journal.Shims, func(t string) bool { return t == tool })
	if err := s.write(); err != nil {
		return cannotChange(s.file(), "cannot be written: "+reason(err), "")
	}
	return nil
}

// Repair writes again what belongs to the installations that are remembered and lies in our own
// directory. Settings of agents stay as they are: whoever took our lines out may have meant it.
// The files of another program that is still there stay, too.
func (s *Store) Repair() (done []string, err error) {
	if s.journal.Program != s.program {
		if info, err := os.Stat(s.journal.Program); err == nil && info.Mode()&0o111 != 0 {
			return nil, nil
		}
	}
	var files []file
	if len(s.journal.Wired) > 0 {
		timeout, head, err := tools()
		if err != nil {
			return nil, err
		}
		for _, f := range wiring.Files(s.data, s.program, timeout, head) {
			files = append(files, file{f})
		}
	}
	for _, tool := range s.journal.Shims {
		if f := s.wrapper(tool); f.foreign() == nil {
			files = append(files, f)
		}
	}
	for _, f := range files {
		why := f.wrong()
		if why == "" {
			continue
		}
		if err := writeFile(f.File); err != nil {
			return done, err
		}
		done = append(done, f.Path+" "+why+"; it was written again")
	}
	if s.journal.Program != s.program {
		was := s.journal.Program
		if err := s.write(); err != nil {
			return done, cannotChange(s.file(), "cannot be written: "+reason(err), "")
		}
		done = append(done, was+" is gone; agents and wrappers lead to "+s.program)
	}
	return done, nil
}

// writeFile makes one of the files of an installation.
func writeFile(f wiring.File) error {
	_, err := mkdirs(filepath.Dir(f.Path))
	if err == nil && f.Link != "" {
		err = replaceLink(f.Path, f.Link)
	} else if err == nil {
		err = newfile.Replace(f.Path, []byte(f.Text), 0o755)
	}
	if err != nil {
		return cannotChange(f.Path, "cannot be written: "+reason(err), "make your home directory writable")
	}
	return nil
}
